"""Tests that Prometheus' own parsers read the output of top --openmetrics: openmetrics_test.py LOTUS_TOOL ENGINES"""
import os
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "compatibility"))
from python_packages import package  # noqa: E402

TOOL, ENGINES = sys.argv[1:3]
package(ENGINES, "prometheus_client")
from prometheus_client.openmetrics import parser as openmetrics  # noqa: E402
from prometheus_client import parser as prometheus  # noqa: E402

MS = 10**6


def write_run(folder, batches, wait_ms):
    """Writes a run that has just ended: 10 ms per batch, of which the consumer waits for wait_ms."""
    os.makedirs(folder)
    begin = time.time_ns() - batches * 10 * MS - 500 * MS
    with open(f"{folder}/lotustrace_log_worker_pid_11", "w") as worker, \
            open(f"{folder}/lotustrace_log_main_pid_10", "w") as main:
        for i in range(batches):
            at = begin + i * 10 * MS
            made = max(wait_ms, 1)
            worker.write(f"SDecode,{at},{made * MS - 1000}\nSBatchPreprocessed_{i},{at},{made * MS}\n")
            main.write(f"SBatchWait_{i},{at},{wait_ms * MS + 100}\n"
                       f"SBatchConsumed_{i},{at + wait_ms * MS + 200},1000\n")


def parsed(text):
    """Returns samples by (name, run, verdict); both parsers must return the same."""
    read = {}
    for parser in (openmetrics, prometheus):
        samples = {}
        for family in parser.text_string_to_metric_families(text):
            assert family.type == "gauge" and family.documentation, family
            for s in family.samples:
                assert s.timestamp is None, s
                key = (s.name, s.labels["run"], s.labels.get("verdict"))
                assert key not in samples, key
                samples[key] = s.value
        read[parser] = samples
    assert read[openmetrics] == read[prometheus]
    return read[openmetrics]


def main():
    with tempfile.TemporaryDirectory() as folder:
        slow = f'{folder}/a "slow" \\ one\n'
        write_run(slow, 100, 9)
        fast = folder + "/fast"
        write_run(fast, 100, 0)
        escaped = slow.replace("\n", "%0A")  # another folder than `slow`, and another series
        write_run(escaped, 100, 0)
        file = folder + "/lotus.prom"
        subprocess.run([TOOL, "top", slow, escaped, fast, "--once", "--openmetrics", file], check=True)
        with open(file) as written:
            text = written.read()
        samples = parsed(text)
        runs = {run for _, run, _ in samples}
        assert len(runs) == 3, runs
        a = next(run for run in runs if run != fast and "%25" not in run)
        assert a.startswith(f'{folder}/a "slow" \\ one'), a
        batches = samples["lotus_batches_per_second", a, None] * samples["lotus_window_seconds", a, None]
        assert 98 < batches < 102, samples
        assert samples["lotus_wait_ratio", a, None] > 0.85, samples
        assert samples["lotus_wait_ratio", fast, None] < 0.05, samples
        assert samples["lotus_recording", a, None] == 0
        assert samples["lotus_verdict", a, "preprocessing-bound"] == 1, text
        assert samples["lotus_verdict", fast, "consumer-bound"] == 1, text
        assert sum(v for (name, run, _), v in samples.items() if name == "lotus_verdict" and run == a) == 1

        empty = folder + "/empty"
        os.mkdir(empty)
        printed = subprocess.run([TOOL, "top", empty, "--once", "--openmetrics", "-"], check=True,
                                 capture_output=True, text=True).stdout
        assert parsed(printed) == {} or all(v == 0 for v in parsed(printed).values()), printed

        # Without --once, the file is rewritten again and again, and readers always see a complete
        # file.
        os.remove(file)
        writer = subprocess.Popen([TOOL, "top", slow, "--interval", "10ms", "--openmetrics", file])
        seen = set()
        deadline = time.monotonic() + 60
        while len(seen) < 3 and time.monotonic() < deadline:
            if os.path.exists(file):
                with open(file) as written:
                    seen.add(os.fstat(written.fileno()).st_ino)
                    parsed(written.read())
        writer.terminate()
        writer.wait()
        assert len(seen) >= 2, seen
        # The file has the same permissions as other output files, so that the collector's user can
        # read it.
        assert os.stat(file).st_mode & 0o777 == 0o666 & ~os.umask(0), oct(os.stat(file).st_mode)
    return 0


sys.exit(main())
