#!/usr/bin/env python3
"""Compares `lotus-tool accelerator` with HolisticTraceAnalysis (HTA) on traces.

    python3 -m venv hta && hta/bin/pip install HolisticTraceAnalysis
    hta/bin/python bench/accelerator/against_hta.py build/bin/lotus-tool TRACE.json.gz...

Both tools read every trace. The kernel span, compute, other and idle time, and the parts of every
stream's idle time, must differ by at most 1 us or 0.1 %. Prints time and memory of both, and exits
with 1 if a figure differs. A trace that HTA cannot analyze is reported and not counted. HTA counts
events of the category cuda_sync as work of the device; they are removed from its table before.
"""

import json
import logging
import multiprocessing
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import warnings


def figures_of_hta(trace):
    """Returns {name: us} as HTA computes them. HTA needs the trace in a folder of its own."""
    from hta.trace_analysis import TraceAnalysis
    with tempfile.TemporaryDirectory() as folder:
        copy = shutil.copy(trace, folder)
        analysis = TraceAnalysis(trace_files={0: copy}, trace_dir=folder)
        # HTA counts synchronization events of the profiler as work of the device, but they are
        # waits.
        waits = analysis.t.symbol_table.get_sym_id_map().get("cuda_sync")
        events = analysis.t.traces[0]
        analysis.t.traces[0] = events[events["cat"].ne(waits)]
        whole = analysis.get_temporal_breakdown(visualize=False).iloc[0]
        found = {"kernel_time": whole["kernel_time(us)"], "compute": whole["compute_time(us)"],
                 "non_compute": whole["non_compute_time(us)"], "idle": whole["idle_time(us)"]}
        # Like get_temporal_breakdown, treats all devices of a trace as one.
        idle = analysis.get_idle_time_breakdown(ranks=[0], visualize=False)[0]
        for _, row in idle.iterrows():
            found[f"stream {row['stream']} {row['idle_category']}"] = row["idle_time"]
        return {name: float(us) for name, us in found.items()}


def measure(function, *arguments):
    """Runs a function in a process of its own; returns (result, seconds, MiB)."""
    def run(pipe):
        warnings.simplefilter("ignore")
        logging.disable(logging.CRITICAL)
        start = time.monotonic()
        try:
            result = function(*arguments)
        except Exception as error:  # HTA may raise any exception if it does not understand a trace
            result = f"{type(error).__name__}: {error}"
        seconds = time.monotonic() - start
        usage = [resource.getrusage(who).ru_maxrss
                 for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        pipe.send((result, seconds, max(usage) / 1024))
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("fork").Process(target=run, args=(theirs,))
    process.start()
    result = ours.recv()
    process.join()
    return result


def figures_of_lotus(trace):
    """Returns [{name: us}] for all devices, and (seconds, MiB)."""
    start = time.monotonic()
    process = subprocess.Popen([sys.argv[1], "accelerator", trace, "--json"],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    out, err = process.stdout.read(), process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.monotonic() - start
    if status:
        return err.decode().strip(), seconds, usage.ru_maxrss / 1024
    devices = []
    for device in json.loads(out)["devices"]:
        found = {name: device[name + "_us"]
                 for name in ("kernel_time", "compute", "non_compute", "idle")}
        for stream in device["streams"]:
            for name, us in stream["idle"].items():
                found[f"stream {stream['stream']} {name[:-3]}"] = us
        devices.append(found)
    return devices, seconds, usage.ru_maxrss / 1024


def main():
    wrong = 0
    for trace in sys.argv[2:]:
        name = os.path.basename(trace)
        theirs, their_s, their_mib = measure(figures_of_hta, trace)
        ours, our_s, our_mib = figures_of_lotus(trace)
        if isinstance(theirs, str) or isinstance(ours, str):
            told = [text for text in (theirs, ours) if isinstance(text, str)]
            print(f"{name}: not compared: " + " | ".join(text.split("\n")[0][:150] for text in told))
            continue
        differing = []
        if len(ours) > 1:
            print(f"{name}: not compared: {len(ours)} devices, which HTA takes for one")
            continue
        for what in sorted(set(theirs) | set(ours[0])):
            a, b = ours[0].get(what, 0), theirs.get(what, 0)
            if abs(a - b) > max(1, abs(b) / 1000):
                differing.append(f"  {what}: {a} us, HTA {b} us")
        print(f"{name}: {len(ours[0])} figures, {len(differing)} differ; lotus-tool {our_s:.2f} s "
              f"{our_mib:.0f} MiB, HTA {their_s:.2f} s {their_mib:.0f} MiB")
        print("\n".join(differing), end="\n" if differing else "")
        wrong += len(differing)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
