#!/usr/bin/env python3
"""Measures `lotus-tool accelerator` on a large trace: scale.py TOOL TRACE.json[.gz] [GB].

Repeats the events of a real trace, each time later and with other correlation ids, until the trace
has about GB gigabytes (1), and prints CPU time, speed and memory. The limits are 256 MiB and
100 MB/s per core; exits with 1 if one is not kept.
"""

import gzip
import json
import os
import subprocess
import sys
import tempfile
import time


def write_repeated(source, path, size):
    opened = gzip.open(source) if source.endswith(".gz") else open(source, "rb")
    with opened as file:
        trace = json.load(file)
    events = [e for e in trace.pop("traceEvents") if isinstance(e.get("ts"), (int, float))]
    length = max(e["ts"] + e.get("dur", 0) for e in events) - min(e["ts"] for e in events)
    ids = 1 + max(e.get("args", {}).get("correlation", 0) for e in events)
    with open(path, "w") as out:
        out.write(json.dumps(trace)[:-1] + ', "traceEvents": [\n')
        before = ""
        while out.tell() < size:
            for event in events:
                out.write(before + json.dumps(event))
                before = ",\n"
                event["ts"] += length
                if "correlation" in event.get("args", {}):
                    event["args"]["correlation"] += ids
        out.write("\n]}\n")


def main():
    tool, source = sys.argv[1:3]
    size = float(sys.argv[3] if len(sys.argv) > 3 else 1) * 1e9
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "large.json")
        write_repeated(source, path, size)
        size = os.path.getsize(path)
        start = time.monotonic()
        process = subprocess.Popen([tool, "accelerator", path, "--json"],
                                   stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.monotonic() - start
    cpu = usage.ru_utime + usage.ru_stime
    mib = usage.ru_maxrss / 1024
    print(f"{size / 1e9:.2f} GB: {cpu:.1f} s of CPU, {wall:.1f} s, {size / 1e6 / cpu:.0f} MB/s, "
          f"{mib:.0f} MiB")
    return 1 if status or mib > 256 or size / 1e6 / cpu < 100 else 0


if __name__ == "__main__":
    sys.exit(main())
