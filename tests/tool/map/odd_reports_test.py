#!/usr/bin/env python3
"""Tests `lotus-tool map build` on reports whose units or headers differ: odd_reports_test.py TOOL."""

import json
import os
import subprocess
import sys
import tempfile
import unittest

TOOL = sys.argv[1]


def uprof(column, one, other):
    return (f'"10 HOTTEST FUNCTIONS (Sort Event - CPU_TIME)"\nFUNCTION,{column},Module\n'
            f'"one(int, int)",{one},"/opt/demo/libdemo.so"\n"other",{other},"/opt/demo/libdemo.so"\n'
            '\n"10 HOTTEST PROCESSES"\n')


def perf(delimited, warning=""):
    head = warning + "# Samples: 1K of event 'cycles'\n#\n"
    if delimited:
        return head + ("# Overhead|Command|Shared Object|Symbol\n"
                       "60.00%|demo|libdemo.so|[.] one\n40.00%|demo|libdemo.so|[.] other\n")
    return head + ("# Overhead  Command  Shared Object  Symbol\n"
                   "# ........  .......  .............  ......\n#\n"
                   "    60.00%  demo     libdemo.so     [.] one\n"
                   "    40.00%  demo     libdemo.so     [.] other\n")


class OddReports(unittest.TestCase):
    def build(self, **reports):
        with tempfile.TemporaryDirectory() as folder:
            os.mkdir(os.path.join(folder, "Blur"))
            for name, text in reports.items():
                path = os.path.join(folder, "Blur", name.replace("_", "."))
                with open(path, "w", encoding="utf-8") as file:
                    file.write(text)
            return subprocess.run([TOOL, "map", "build", folder, "-o",
                                   os.path.join(folder, "m.json"), "--json"],
                                  capture_output=True, text=True)

    def found(self, done):
        self.assertEqual(done.returncode, 0, done.stderr)
        mapping = json.loads(done.stdout)
        return mapping["unit"], {name.split("|")[0]: of["samples"]
                                 for name, of in mapping["functions"]["Blur"].items()}

    def test_units_of_uprof(self):
        for column, unit in (('"CPU_TIME" (seconds)', "s"), ("CPU_TIME", "ms"),
                             ("CYCLES_NOT_IN_HALT", "CYCLES_NOT_IN_HALT")):
            found = self.found(self.build(a_csv=uprof(column, "3000", "1000")))
            self.assertEqual(found, (unit, {"one(int, int)": 3000, "other": 1000}))

    def test_seconds_and_cycles_are_not_added(self):
        done = self.build(a_csv=uprof('"CPU_TIME" (seconds)', "3", "1"),
                          b_csv=uprof("CYCLES_NOT_IN_HALT", "3e9", "1e9"))
        self.assertEqual(self.found(done), ("s", {"one(int, int)": 3, "other": 1}))
        self.assertIn("cannot be added and are left out", done.stderr)

    def test_headers_of_perf(self):
        warning = "Warning:\nSome symbols of the kernel could not be read.\n\n"
        for before in ("", warning):
            found = self.found(self.build(a_txt=perf(True, before)))
            self.assertEqual(found[1], {"one": 60, "other": 40})
            done = self.build(a_txt=perf(False, before))
            self.assertEqual(done.returncode, 1)
            self.assertIn("perf report --stdio -t '|'", done.stderr)

    def test_one_report_without_functions_stops_nothing(self):
        reports = {f"r{n}_csv": uprof("CPU_TIME", "3", "1") for n in range(620)}
        reports["r300_csv"] = ('"10 HOTTEST FUNCTIONS (Sort Event - CPU_TIME)"\n'
                               "FUNCTION,CPU_TIME,Module\n")
        done = self.build(**reports)
        self.assertEqual(self.found(done)[1], {"one(int, int)": 3 * 619, "other": 619})


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
