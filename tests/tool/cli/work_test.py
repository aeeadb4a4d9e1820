"""Tests that the tool's work grows at most as n log n for any log of n lines: work_test.py LOTUS_TOOL [SHAPE...]

Counts with valgrind the instructions of a command for a log and for a log of twice the length; times are
not measured. The instructions for an empty log are subtracted from both. Then counts the bytes on the heap
that a command needs for each of many different names.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

BEGIN = 1_700_000_000 * 10**9
LINES = 1000
MOST = 2.7  # limit of the ratio: n log n gives less than 2.2, n squared gives 4
NAMES = 1 << 15


def worker(lines):
    return {'lotustrace_log_worker_pid_7': lines}


def backwards(n):
    """Operations in reverse order: each ends before the one on the previous line."""
    return worker(f'SRead,{BEGIN + (n - i) * 1000},500' for i in range(n))


def crosswise(n):
    """Operations that all overlap, but none is inside another."""
    return worker(f'SRead,{BEGIN + i * 10},{10 * n}' for i in range(n))


def deep(n):
    """Operations that are each inside the next one."""
    return worker(f'SRead,{BEGIN + n - i},{2 * i}' for i in range(n))


def deep_names(n):
    """Operations that are each inside the next one, with 97 different names."""
    return worker(f'SRead{i % 97},{BEGIN + n - i},{2 * i}' for i in range(n))


def instant(n):
    """Operations that all have the same start and duration."""
    return worker(f'SRead,{BEGIN},1000' for _ in range(n))


def names(n):
    """Operations that all have different names."""
    return worker(f'SRead{i},{BEGIN + i * 1000},500' for i in range(n))


def one_batch(n):
    """Waits and preprocessings that all have the same batch number."""
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
    instant: ('report',), names: ('stats', 'report', 'viz'), one_batch: ('top', 'stats'),
}

NAME_BYTES = {'stats': 200, 'top': 350, 'viz': 200, 'export': 120}  # at most, for a name with one record


def counted(tool, shape, command, n, valgrind, look_for):
    """Runs a command on a log of n lines under valgrind; returns the last number in its output or file."""
    with tempfile.TemporaryDirectory() as folder:
        run = os.path.join(folder, 'run')
        os.mkdir(run)
        for name, lines in shape(n).items():
            with open(os.path.join(run, name), 'w', encoding='ascii') as log:
                log.writelines(line + '\n' for line in lines)
        words = COMMANDS[command](run, os.path.join(folder, 'out'))
        file = os.path.join(folder, 'counted')
        done = subprocess.run(['valgrind', *(option.format(file=file) for option in valgrind), tool, *words],
                              capture_output=True, text=True, check=False)
        said = done.stderr
        if os.path.exists(file):
            with open(file, encoding='utf-8') as lines:
                said = lines.read()
        numbers = [int(number) for number in re.findall(look_for, said)]
        if not numbers:
            sys.exit(f'{" ".join(words)}: {done.returncode}\n{done.stderr[-2000:]}')
        return max(numbers)


def instructions(tool, shape, command, n):
    return counted(tool, shape, command, n, ['--tool=callgrind', '--callgrind-out-file=/dev/null'],
                   r'Collected : (\d+)')


def bytes_at_peak(tool, shape, command, n):
    # Without an exact peak, the difference of two peaks varies by a tenth.
    return counted(tool, shape, command, n,
                   ['--tool=massif', '--peak-inaccuracy=0.0', '--massif-out-file={file}'], r'mem_heap_B=(\d+)')


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
    for command, most in NAME_BYTES.items():
        if wanted and names.__name__ not in wanted:
            continue
        few, many = (bytes_at_peak(tool, names, command, n) for n in (NAMES, 2 * NAMES))
        each = (many - few) / NAMES
        bad = each > most
        faults += bad
        print(f'{"FAILED: " if bad else ""}{command}: {each:.0f} bytes a name', flush=True)
    return 1 if faults else 0


if __name__ == '__main__':
    sys.exit(main())
