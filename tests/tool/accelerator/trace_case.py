"""Runs `lotus-tool accelerator` (argv[1] is the tool) on traces, and checks what it finds."""

import json
import os
import subprocess
import sys
import tempfile
import unittest

from odd_traces import training

TOOL = sys.argv[1]


def write(path, recording):
    data = recording if isinstance(recording, (str, bytes)) else recording.text()
    with open(path, "wb") as file:
        file.write(data if isinstance(data, bytes) else data.encode())
    return path


class Case(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = holder.name

    def run_tool(self, recording, *options, name="t.json"):
        path = write(os.path.join(self.folder, name), recording)
        return subprocess.run([TOOL, "accelerator", path, *options], capture_output=True, text=True)

    def analyze(self, recording, *options):
        done = self.run_tool(recording, *options, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        found = json.loads(done.stdout)
        found["cause"] = {}
        for of in found["idle_causes"]:
            found["cause"][of["cause"]] = found["cause"].get(of["cause"], 0) + of["us"]
        self.assertEqual(sum(found["cause"].values()), sum(d["idle_us"] for d in found["devices"]))
        return found

    def check(self, recording, verdict, *options, us=None, note=None, span=None, **causes):
        """@param us     the time of the verdict
        @param span   the time of which the verdict takes its share
        @param note   a part of what is said about the trace; None: nothing may be said"""
        found = self.analyze(recording, *options)
        self.assertEqual(found["verdict"], verdict, found["headline"])
        for cause, expected in causes.items():
            self.assertEqual(found["cause"][cause.replace("_", "-")], expected, found["cause"])
        if us is not None:
            self.assertEqual(found["cause_us"], us)
        if span is not None:
            self.assertEqual(found["judged_us"], span)
        if note is None:
            self.assertEqual(found["notes"], [])
        else:
            self.assertIn(note, " ".join(found["notes"]))
        return found

    def reference(self, recording, note=None):
        """Checks the figures of ten steps that wait for 6,000 us and compute for 4,000."""
        return self.check(recording, "input-bound", "--last-step", us=54_000, span=94_180,
                          note=note, batch_wait=54_000)
