#!/usr/bin/env python3
"""Measures by how much sampling with `lotus-tool run` slows a program.

bench/threads/sampled_cost.py TOOL [--pairs 10] -- PROGRAM ARGUMENT...
Runs the program under `TOOL run` with and without --no-threads, in turn. Prints the ratios with/without of the
program's run time and of its CPU time (user and system): the median of the pairs, and the ratio of the shortest runs.
The run time is that of the program alone, without the start of the tool and its output. Measure on an idle machine: the
load average is printed too.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time


def timed(result, command):
    """Runs the command, and writes its run time and CPU time in seconds."""
    begin = time.monotonic()
    status = subprocess.call(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wall = time.monotonic() - begin
    used = os.times()
    with open(result, 'w', encoding='ascii') as file:
        json.dump([wall, used.children_user + used.children_system], file)
    return status


def measured(tool, work, command, more):
    result = work + '/times'
    subprocess.run([tool, 'run', '-q', *more, '--dir', work + '/run', '--', sys.executable, __file__, '--timed', result,
                    *command], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    subprocess.run(['rm', '-rf', work + '/run'], check=True)
    with open(result, encoding='ascii') as file:
        return json.load(file)


def main():
    if sys.argv[1:2] == ['--timed']:
        return timed(sys.argv[2], sys.argv[3:])
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('tool')
    parser.add_argument('--pairs', type=int, default=10)
    dashes = sys.argv.index('--')
    options, command = parser.parse_args(sys.argv[1:dashes]), sys.argv[dashes + 1:]
    tool = os.path.abspath(options.tool)
    with_sampling, without = [], []
    with tempfile.TemporaryDirectory() as work:
        for pair in range(options.pairs):
            for is_sampled in (pair % 2 == 0, pair % 2 == 1):
                times = measured(tool, work, command, [] if is_sampled else ['--no-threads'])
                (with_sampling if is_sampled else without).append(times)
    print(f'{os.path.basename(command[0])}: {options.pairs} pairs, load average {os.getloadavg()[0]:.1f}')
    for index, what in enumerate(['run time', 'CPU time']):
        ratios = [a[index] / b[index] for a, b in zip(with_sampling, without)]
        least = min(a[index] for a in with_sampling) / min(b[index] for b in without)
        print(f'  {what}: median {statistics.median(ratios):.3f}, shortest {least:.3f} '
              f'(without: {min(b[index] for b in without):.2f} s)')
    return 0


if __name__ == '__main__':
    sys.exit(main())
