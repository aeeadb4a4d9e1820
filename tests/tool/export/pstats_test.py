"""Tests that an exported profile shows the same calls as cProfile: pstats_test.py LOTUS_TOOL

A recursive program runs under cProfile, and again under sys.setprofile, from which a log is written.
"""
import contextlib
import cProfile
import io
import os
import pstats
import re
import subprocess
import sys
import tempfile

MS = 10**6


def leaf():
    pass


def walk(depth):
    leaf()
    for _ in range(2 if depth > 0 else 0):
        other(depth - 1)
        walk(depth - 1)


def other(depth):
    if depth > 1:
        walk(depth - 2)


def program():
    walk(5)
    other(4)
    leaf()


OPERATIONS = {f.__code__: f.__name__ for f in (leaf, walk, other, program)}


def log_lines():
    """Returns a line for each call, in the order of their ends. Each begin and each end takes 1 ms."""
    now, begun, lines = [10**15], [], []

    def on_event(frame, event, _):
        if frame.f_code not in OPERATIONS or event not in ("call", "return"):
            return
        now[0] += MS
        if event == "call":
            begun.append(now[0])
        else:
            lines.append(f"S{OPERATIONS[frame.f_code]},{begun[-1]},{now[0] - begun.pop()}\n")

    sys.setprofile(on_event)
    program()
    sys.setprofile(None)
    return lines


def counts(stats):
    """Returns {function: (primitive calls, calls, {caller: (calls, primitive calls)})} of the operations."""
    def name(function):
        return function[2].removeprefix("S")

    known = set(OPERATIONS.values())
    return {name(f): (primitive, calls,
                      {name(c): by[:2] for c, by in callers.items() if name(c) in known})
            for f, (primitive, calls, _, _, callers) in stats.stats.items() if name(f) in known}


def callers_printed(stats):
    """Returns what print_callers() prints for `walk`: for each caller "calls/primitive", or "calls" if both are equal."""
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        stats.stream = text
        stats.print_callers("walk")
    return sorted((m.group(2).removeprefix("S"), m.group(1)) for m in re.finditer(
        r"(\d+(?:/\d+)?) +[\d.]+ +[\d.]+ +\S*?\(?(\w+)\)?$", text.getvalue(), re.MULTILINE))


def main():
    tool = sys.argv[1]
    profile = cProfile.Profile()
    profile.runcall(program)
    by_python = pstats.Stats(profile)
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "lotustrace_log_worker_pid_7"), "w", encoding="ascii") as log:
            log.writelines(log_lines())
        exported = os.path.join(folder, "run.prof")
        subprocess.run([tool, "export", folder, "--format", "pstats", "-o", exported], check=True)
        by_lotus = pstats.Stats(exported)
    recursive = counts(by_python)["walk"][2]["walk"]
    assert recursive[0] != recursive[1], recursive  # else nothing is tested
    faults = 0
    for what, ours, theirs in (("counts", counts(by_lotus), counts(by_python)),
                               ("print_callers", callers_printed(by_lotus), callers_printed(by_python))):
        if ours != theirs:
            print(f"FAILED: {what}: {ours}, but cProfile has {theirs}")
            faults += 1
    print(f"walk is called by itself {recursive[0]} times, {recursive[1]} of them primitive")
    return faults


if __name__ == "__main__":
    sys.exit(main())
