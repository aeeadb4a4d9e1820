"""The tool's work grows with a log's length as n log n, whatever stands in it: work_test.py LOTUS_TOOL [SHAPE...]

Counted are instructions, by valgrind, of a command on a log and on one of twice its length; nothing is
timed. What a command does for an empty log is taken off both.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

BEGIN = 1_700_000_000 * 10**9
LINES = 1000
MOST = 2.7  # n log n: below 2.2; n squared: 4, as far as it counts


def worker(lines):
    return {'lotustrace_log_worker_pid_7': lines}


def backwards(n):
    """Ends run backwards: each operation was before the one above it."""
    return worker(f'SRead,{BEGIN + (n - i) * 1000},500' for i in range(n))


def crosswise(n):
    """Each overlaps all others, and none lies in another."""
    return worker(f'SRead,{BEGIN + i * 10},{10 * n}' for i in range(n))


def deep(n):
    """Each lies in the next one."""
    return worker(f'SRead,{BEGIN + n - i},{2 * i}' for i in range(n))


def deep_names(n):
    """The same, and hardly a name comes twice on the way."""
    return worker(f'SRead{i % 97},{BEGIN + n - i},{2 * i}' for i in range(n))


def instant(n):
    """All are the same time."""
    return worker(f'SRead,{BEGIN},1000' for _ in range(n))


def names(n):
    """None has a name that another has."""
    return worker(f'SRead{i},{BEGIN + i * 1000},500' for i in range(n))


def one_batch(n):
    """All waits and all work are for one batch number."""
    return {
        'lotustrace_log_main_pid_1': (f'SBatchWait_7,{BEGIN + i * 1000},100' for i in range(n // 2)),
        'lotustrace_log_worker_pid_2': (f'SBatchPreprocessed_7,{BEGIN + i * 1000},500' for i in range(n // 2)),
    }


COMMANDS = {
    'stats': lambda run, out: ['stats', run],
    'profile': lambda run, out: ['stats', run, '--style', 'profile'],
    'export': lambda run, out: ['export', run, '--format', 'csv', '-o', out],
    'viz': lambda run, out: ['viz', run, '-o', out],
    'report': lambda run, out: ['report', run, '-o', out],
    'top': lambda run, out: ['top', run, '--once'],
}
CHECKED = {
    backwards: ('stats',), crosswise: ('export', 'viz'), deep: ('viz', 'profile'), deep_names: ('profile',),
    instant: ('report',), names: ('stats',), one_batch: ('top', 'stats'),
}


def instructions(tool, shape, command, n):
    with tempfile.TemporaryDirectory() as folder:
        run = os.path.join(folder, 'run')
        os.mkdir(run)
        for name, lines in shape(n).items():
            with open(os.path.join(run, name), 'w', encoding='ascii') as log:
                log.writelines(line + '\n' for line in lines)
        words = COMMANDS[command](run, os.path.join(folder, 'out'))
        done = subprocess.run(['valgrind', '--tool=callgrind', '--callgrind-out-file=/dev/null', tool, *words],
                              capture_output=True, text=True, check=False)
        said = re.search(r'Collected : (\d+)', done.stderr)
        if not said:
            sys.exit(f'{" ".join(words)}: {done.returncode}\n{done.stderr[-2000:]}')
        return int(said[1])


def main():
    tool, wanted = sys.argv[1], sys.argv[2:]
    if not shutil.which('valgrind'):
        print('skipped: no valgrind')
        return 0
    faults = 0
    for shape, commands in CHECKED.items():
        if wanted and shape.__name__ not in wanted:
            continue
        for command in commands:
            none, one, two = (instructions(tool, shape, command, n) for n in (8, LINES, 2 * LINES))
            ratio = (two - none) / (one - none)
            bad = ratio > MOST
            faults += bad
            print(f'{"FAILED: " if bad else ""}{command}, {shape.__name__}: {ratio:.2f} times the work for twice '
                  f'the lines, {(two - none) / (2 * LINES):,.0f} instructions a line', flush=True)
    return 1 if faults else 0


if __name__ == '__main__':
    sys.exit(main())
