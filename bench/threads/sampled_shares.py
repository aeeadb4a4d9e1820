#!/usr/bin/env python3
"""Compares the shares that `lotus-tool run` sees from outside with those that a program measures itself.

bench/threads/sampled_shares.py TOOL PROGRAM PLUGIN [--seconds 60]
PROGRAM is sampled_shares, which loads PLUGIN, sampled_plugin. Prints for each group of threads, state and function
both shares and their difference in points. Shares of functions are of the group's CPU time, all others of its time.
"""
import argparse
import collections
import json
import os
import subprocess
import sys
import tempfile

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument('tool')
parser.add_argument('program')
parser.add_argument('plugin')
parser.add_argument('--seconds', type=float, default=60)
options = parser.parse_args()

with tempfile.TemporaryDirectory() as work:
    run = subprocess.run([os.path.abspath(options.tool), 'run', '-q', '--dir', work + '/run', '--',
                          os.path.abspath(options.program), str(options.seconds), os.path.abspath(options.plugin)],
                         stdout=subprocess.PIPE, check=True, text=True)
    seen = json.loads(subprocess.run([options.tool, 'threads', work + '/run', '--json'], stdout=subprocess.PIPE,
                                     check=True, text=True).stdout)
print(seen['headline'])
sums = collections.defaultdict(lambda: collections.defaultdict(float))
for line in run.stdout.splitlines():
    _, start, kind, name, ns = line.split(' ')
    sums[start][kind, name] += float(ns)
largest = 0
print(f'{"group":14} {"what":24} {"measured":>8} {"sampled":>8} {"points":>7} {"samples":>8}')


def plain(name):
    return name.replace('(anonymous namespace)::', '')


def row(group, what, measured, sampled, samples):
    global largest
    points = 100 * (sampled - measured)
    largest = max(largest, abs(points))
    print(f'{group:14} {what:24} {100 * measured:7.1f}% {100 * sampled:7.1f}% {points:+7.1f} {samples:8}')


for group in seen['groups']:
    own = sums.get(group['start'])
    if own is None:
        print(f"{group['start']}: not of the program")
        continue
    time = own['all', '-']
    cpu = sum(ns for (kind, _), ns in own.items() if kind == 'cpu')
    row(group['start'], 'running', cpu / time, group['running'], group['looks'])
    row(group['start'], 'for a CPU', own['queue', '-'] / time, group['run_queue'], group['looks'])
    for (kind, name), ns in sorted(own.items()):
        if kind == 'cpu' and ns / cpu >= 0.02 and cpu / time >= 0.02:
            share = sum(f['share'] for f in group['functions'] if plain(f['name']) == name)
            row(group['start'], 'runs in ' + name, ns / cpu, share, group['cpu_samples'])
        if kind == 'wait' and ns / time >= 0.02:
            share = sum(b['share'] for b in group['blocked'] if plain(b['function']) == name)
            row(group['start'], 'waits in ' + name, ns / time, share, group['looks'])
print(f'largest difference: {largest:.1f} points')
sys.exit(0)
