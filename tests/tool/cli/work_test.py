"""Tests that the tool's work grows at most as n log n for any log of n lines: work_test.py LOTUS_TOOL WORK_PROGRAM
[SHAPE...]

Counts with valgrind the instructions of a command for a short log and for a log of 16 times the length; times
are not measured. The instructions for an almost empty log are subtracted from both. A part that grows with the square
of the length is found if it takes a fourteenth of the work for the short log. All commands run in one process,
WORK_PROGRAM. Then counts the bytes on the heap that a command needs for each of many different names.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

BEGIN = 1_700_000_000 * 10**9
LINES = 1000
TIMES = 16
MOST = 2 * TIMES  # limit of the ratio: n log n gives about 1.5 * TIMES, n squared gives TIMES * TIMES
NAMES = 70_000
SIDE_LOG = '.lotus_beside_lotustrace_log_pid_7'
MEMUSAGE = 'libmemusage.so'


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


def equal_starts(n):
    """Operations that all have the same start but different durations."""
    return worker(f'SRead{i % 97},{BEGIN},{1000 + i}' for i in range(n))


def damaged(n):
    """Lines of which every second one is not a record."""
    return worker(f'SRead,{BEGIN + i * 1000},500' if i % 2 else 'damaged %%% line' for i in range(n))


def threads(n):
    """Operations of different threads, each of which has a log with only one line."""
    return {f'lotustrace_log_worker_pid_{i + 10}': [f'SRead,{BEGIN + i * 1000},500'] for i in range(n // 16)}


def counters(n):
    """Counters that all have different names and one value."""
    values = (f'counter,SCounter{i},{BEGIN + i * 1000},{i},0' for i in range(n))
    return {**worker([f'SRead,{BEGIN},1000']), SIDE_LOG: values}


def stages(n, name, start, duration):
    """Spans of stages; each of them has a line in the worker's log and one in the side log."""
    spans = [(name(i), start(i), duration(i)) for i in range(n // 2)]
    return {
        **worker(f'S{of},{at},{ns}' for of, at, ns in spans),
        SIDE_LOG: (f'stage,S{of},{at},{ns},{i // 5}' for i, (of, at, ns) in enumerate(spans)),
    }


def stage_names(n):
    """Batches each of which passes through stages of its own."""
    return stages(n, lambda i: f'Stage{i}', lambda i: BEGIN + i * 1000, lambda i: 500)


def stages_deep(n):
    """Spans of stages that are each inside the next one."""
    return stages(n // 4, lambda i: f'Stage{i % 5}', lambda i: BEGIN + n - i, lambda i: 2 * i)


def stages_crosswise(n):
    """Spans of stages that all overlap, but none is inside another."""
    return stages(n, lambda i: f'Stage{i % 5}', lambda i: BEGIN + i * 10, lambda i: 10 * n)


def parts_of_a_batch(n):
    """Spans of one batch in two threads: a long one, and others that all overlap each other inside it."""
    spans = [('Whole', BEGIN, 30 * n)] + [('Part', BEGIN + 1 + i * 10, 10 * n) for i in range(n // 2)]
    logs = {'lotustrace_log_main_pid_1': [f'SBatchWait_{i},{BEGIN + 31 * n},100' for i in range(3)]}
    for pid, of in (2, spans[:1]), (3, spans[1:]):
        logs[f'lotustrace_log_worker_pid_{pid}'] = [f'S{name},{at},{ns}' for name, at, ns in of]
        logs[f'.lotus_beside_lotustrace_log_pid_{pid}'] = [f'stage,S{name},{at},{ns},0' for name, at, ns in of]
    return logs


def asynchronous(n):
    """Asynchronous operations that are all open at the same time."""
    spans = [(BEGIN + i * 10, 10 * n) for i in range(n // 2)]
    return {
        **worker(f'SRead,{at},{ns}' for at, ns in spans),
        SIDE_LOG: (f'piece,SRead,{at},{ns},{i}' for i, (at, ns) in enumerate(spans)),
    }


def batches(n):
    """Batches that are all dispatched first, then preprocessed and received one after the other."""
    consumer = [f'SBatchQueued_{i},{BEGIN + i},1000' for i in range(n // 4)]
    for i in range(n // 4):
        consumer += [f'SBatchWait_{i},{BEGIN + i * 1000},600', f'SBatchConsumed_{i},{BEGIN + i * 1000 + 900},1000']
    return {
        'lotustrace_log_main_pid_1': consumer,
        'lotustrace_log_worker_pid_2': (f'SBatchPreprocessed_{i},{BEGIN + i * 1000},500' for i in range(n // 4)),
    }


def one_batch(n):
    """Waits and preprocessings that all have the same batch number."""
    return {
        'lotustrace_log_main_pid_1': (f'SBatchWait_7,{BEGIN + i * 1000},100' for i in range(n // 2)),
        'lotustrace_log_worker_pid_2': (f'SBatchPreprocessed_7,{BEGIN + i * 1000},500' for i in range(n // 2)),
    }


COMMANDS = {
    'stats': lambda run, out: ['stats', run],
    'profile': lambda run, out: ['stats', run, '--style', 'profile'],
    'slowest': lambda run, out: ['stats', run, '--slowest', '3'],
    'diagnose': lambda run, out: ['diagnose', run],
    'whatif': lambda run, out: ['whatif', run, '--workers', '2'],
    'compare': lambda run, out: ['compare', run, run],
    'export': lambda run, out: ['export', run, '--format', 'csv', '-o', out],
    'sqlite': lambda run, out: ['export', run, '--format', 'sqlite', '-o', out],
    'unpack': lambda run, out: ['unpack', run, '-o', out],
    'viz': lambda run, out: ['viz', run, '-o', out],
    'report': lambda run, out: ['report', run, '-o', out],
    'top': lambda run, out: ['top', run, '--once'],
}
CHECKED = {
    backwards: ('stats', 'sqlite', 'unpack'), crosswise: ('export', 'viz', 'diagnose'), deep: ('viz', 'profile'),
    deep_names: ('profile',), instant: ('report',), names: ('stats', 'report', 'viz', 'compare', 'diagnose'),
    equal_starts: ('profile', 'viz'), damaged: ('stats',), threads: ('unpack', 'report', 'top'),
    counters: ('stats',), stage_names: ('diagnose',), stages_deep: ('slowest',), stages_crosswise: ('diagnose',),
    parts_of_a_batch: ('diagnose', 'whatif'),
    asynchronous: ('viz',), batches: ('whatif', 'export'), one_batch: ('top', 'stats', 'diagnose'),
}

# At most, for a name with one record. A report contains only 2,000 names and a comparison 10,000, so further names
# need no memory for their figures. top reads at most 8 MiB of a log, so with a million names it needs less than 100
# bytes for each.
NAME_BYTES = {'stats': 200, 'top': 200, 'viz': 200, 'export': 120, 'diagnose': 200, 'whatif': 200, 'report': 200,
              'compare': 200}


def write_run(run, shape, n):
    os.mkdir(run)
    for name, lines in shape(n).items():
        with open(os.path.join(run, name), 'w', encoding='ascii') as log:
            log.writelines(line + '\n' for line in lines)


def instructions(work_program, shapes):
    """Returns the instructions of each command for an almost empty log, and of each shape and command for two lengths."""
    with tempfile.TemporaryDirectory() as folder:
        keys, lines = [], []

        def measure(key, command, shape, n):
            run = os.path.join(folder, f'{shape.__name__}_{n}')
            if not os.path.exists(run):
                write_run(run, shape, n)
            keys.append(key)
            lines.append('\t'.join(COMMANDS[command](run, os.path.join(folder, f'out{len(keys)}'))) + '\n')

        for shape in shapes:
            for command in CHECKED[shape]:
                if (command,) not in keys:
                    measure(None, command, shape, 8)  # what only the first command of its kind does
                    measure((command,), command, shape, 8)
                for n in (LINES, TIMES * LINES):
                    measure((shape, command, n), command, shape, n)
        counts = os.path.join(folder, 'counts')
        done = subprocess.run(
            ['valgrind', '--tool=callgrind', f'--callgrind-out-file={counts}', '--zero-before=measured_command',
             '--dump-after=measured_command', work_program], input=''.join(lines), capture_output=True, text=True,
            check=False)
        if done.returncode != 0:
            sys.exit(f'{done.returncode}\n{done.stderr[-2000:]}')
        found = {}
        for i, key in enumerate(keys, 1):
            with open(f'{counts}.{i}', encoding='utf-8') as file:
                found[key] = int(re.search(r'^totals: (\d+)$', file.read(), re.MULTILINE)[1])
        return found


def bytes_at_peak(tool, shape, command, n):
    """Returns how many bytes on the heap a command had at most, as glibc's libmemusage.so counts them."""
    with tempfile.TemporaryDirectory() as folder:
        run = os.path.join(folder, 'run')
        write_run(run, shape, n)
        words = COMMANDS[command](run, os.path.join(folder, 'out'))
        done = subprocess.run([tool, *words], env={**os.environ, 'LD_PRELOAD': MEMUSAGE}, capture_output=True,
                              text=True, check=False)
        peak = re.search(r'heap peak: (\d+)', done.stderr)
        if done.returncode != 0 or not peak:
            sys.exit(f'{" ".join(words)}: {done.returncode}\n{done.stderr[-2000:]}')
        return int(peak[1])


def main():
    tool, work_program, wanted = sys.argv[1], sys.argv[2], sys.argv[3:]
    if not shutil.which('valgrind'):
        print('skipped: no valgrind')
        return 0
    faults = 0
    shapes = [shape for shape in CHECKED if not wanted or shape.__name__ in wanted]
    found = instructions(work_program, shapes)
    for shape in shapes:
        for command in CHECKED[shape]:
            few, many = (found[shape, command, n] - found[command,] for n in (LINES, TIMES * LINES))
            ratio = many / few
            bad = ratio > MOST
            faults += bad
            print(f'{"FAILED: " if bad else ""}{command}, {shape.__name__}: {ratio:.1f} times the work for {TIMES} '
                  f'times the lines, {many / (TIMES * LINES):,.0f} instructions a line', flush=True)
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
