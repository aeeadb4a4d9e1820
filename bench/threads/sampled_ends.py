#!/usr/bin/env python3
"""Checks that sampling does not change how programs end.

bench/threads/sampled_ends.py TOOL PROGRAM... [--rounds 1000]
Each PROGRAM is a build of tests/tool/threads/planted_ends.c. In each round, one of them ends in one of several
ways, with threads and killed children: alone, and under `TOOL run`. In some rounds the tool looks at it with
`attach`, or the tool is killed with SIGKILL while the program runs. Checks that the exit status and the signal are
the same, that both or neither leave a core, and that nothing is left running. Prints how many rounds there were of each kind.
"""
import argparse
import collections
import glob
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ENDS = ['exit', 'kill', 'term', 'abort', 'segv', 'profiled']
MARK = 'LOTUS_SAMPLED_ENDS'


def left_running(mark):
    """Returns the processes that have the mark in their environment, and are no zombies."""
    wanted = f'{MARK}={mark}'.encode()
    found = []
    for path in glob.glob('/proc/[0-9]*/environ'):
        try:
            with open(path, 'rb') as file:
                if wanted in file.read().split(b'\0'):
                    found.append(path.split('/')[2])
        except OSError:
            pass  # the process has ended, or belongs to another user
    return found


def cores(folder):
    found = glob.glob(folder + '/core*')
    for path in found:
        os.remove(path)
    return len(found)


def in_shell(status):
    return 128 - status if status < 0 else status


class Round:
    def __init__(self, tool, number, work):
        self.tool = tool
        self.work = work
        self.mark = f'{os.getpid()}.{number}'
        self.environment = {**os.environ, MARK: self.mark}
        self.environment.pop('LOTUS_LOG_FILE', None)

    def start(self, command):
        with open(self.work + '/output', 'ab') as output:
            return subprocess.Popen(command, cwd=self.work, env=self.environment, stdin=subprocess.DEVNULL,
                                    stdout=output, stderr=output)

    def alone(self, command):
        return in_shell(self.start(command).wait(60)), cores(self.work)

    def run(self, command):
        return in_shell(self.start([self.tool, 'run', '-q', '--dir', 'run', '--', *command]).wait(60)), cores(self.work)

    def attached(self, command, kill):
        program = self.start(command)
        tool = self.start([self.tool, 'attach', '-q', str(program.pid), '--dir', 'run'])
        if kill:
            time.sleep(random.uniform(0, 0.05))
            tool.kill()
        status = in_shell(program.wait(60))
        tool.wait(60)
        return status, cores(self.work)

    def killed_tool(self, command):
        """The program must end by itself, although the tool is gone."""
        tool = self.start([self.tool, 'run', '-q', '--dir', 'run', '--', *command])
        time.sleep(random.uniform(0, 0.06))
        tool.kill()
        tool.wait(60)

    def left(self, patience_s=20):
        until = time.time() + patience_s
        while left_running(self.mark) and time.time() < until:
            time.sleep(0.02)
        return left_running(self.mark)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('tool')
    parser.add_argument('programs', nargs='+')
    parser.add_argument('--rounds', type=int, default=1000)
    parser.add_argument('--seed', type=int, default=1)
    options = parser.parse_args()
    random.seed(options.seed)
    resource.setrlimit(resource.RLIMIT_CORE, (resource.getrlimit(resource.RLIMIT_CORE)[1],) * 2)
    work = tempfile.mkdtemp(prefix='lotus-sampled-ends-')
    counts = collections.Counter()
    wrong = []
    begin = time.time()
    for number in range(options.rounds):
        program = options.programs[number % len(options.programs)]
        end = random.choice(ENDS)
        command = [os.path.abspath(program), end, str(random.randrange(10000))]
        one = Round(os.path.abspath(options.tool), number, work)
        kind = random.choices(['run', 'attach', 'attach, tool killed', 'run, tool killed'], [6, 1, 1, 1])[0]
        if kind == 'run, tool killed':
            one.killed_tool(command)
        else:
            expected = one.alone(command)
            if kind == 'run':
                seen = one.run(command)
            else:
                seen = one.attached(command, kind == 'attach, tool killed')
            if seen != expected:
                wrong.append(f'{kind}: {" ".join(command)}: status and cores {seen}, alone {expected}')
        left = one.left()
        cores(work)  # removes core files that belong to programs whose end the tool did not see
        if left:
            wrong.append(f'{kind}: {" ".join(command)}: still running: {" ".join(left)}')
            for pid in left:
                os.kill(int(pid), signal.SIGKILL)
        counts[kind] += 1
        counts[os.path.basename(program)] += 1
        counts['ends by ' + end] += 1
        shutil.rmtree(work + '/run', ignore_errors=True)
    shutil.rmtree(work)
    print(f'{options.rounds} rounds in {time.time() - begin:.0f} s, {len(wrong)} wrong')
    for what, count in sorted(counts.items()):
        print(f'  {count:5} {what}')
    for text in wrong:
        print(text)
    return 1 if wrong else 0


if __name__ == '__main__':
    sys.exit(main())
