#!/usr/bin/env python3
"""Tests `lotus-tool accelerator` on trainings whose idle times are known: accelerator_test.py TOOL.

If the second argument is a folder, also tests real traces in it, for which the folder contains the
results of HolisticTraceAnalysis.
"""

import gzip
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import unittest

from planted_training import CAUSES, MAIN, train, train_ranks

try:
    import jsonschema
except ImportError:
    jsonschema = None  # the outputs are not compared with their schemas

TOOL = sys.argv[1]
validators = {}
SHARED = sys.argv[2] if len(sys.argv) > 2 else ""


def run(*arguments):
    return subprocess.run([TOOL, *arguments], capture_output=True, text=True, check=False)


def parse(command, text):
    """Runs a command and returns its JSON output, which must be valid according to its schema."""
    document = json.loads(text)
    if jsonschema:
        if command not in validators:
            schema = json.loads(run("schema", command).stdout)
            validators[command] = jsonschema.Draft202012Validator(schema)
        error = jsonschema.exceptions.best_match(validators[command].iter_errors(document))
        assert not error, error.message[:300]
    return document


def analyze(*arguments):
    done = run("accelerator", *arguments, "--json")
    assert done.returncode == 0, done.stderr
    return parse("accelerator", done.stdout)


def causes_of(found):
    sums = dict.fromkeys((*CAUSES, "device", "unknown"), 0)
    for entry in found["idle_causes"]:
        sums[entry["cause"]] += entry["us"]
    return sums


class Planted(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = holder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def check(self, training, found):
        """Checks that each cause is right within 1 % of the idle time, and that the sums are exact."""
        idle_us = training.idle_ns / 1000
        self.assertAlmostEqual(sum(d["idle_us"] for d in found["devices"]), idle_us, places=3)
        causes = causes_of(found)
        self.assertAlmostEqual(sum(causes.values()), idle_us, places=3)
        for cause in CAUSES:
            self.assertLessEqual(abs(causes[cause] - training.truth[cause] / 1000), idle_us / 100,
                                 f"{cause}: {causes} instead of {training.truth}")
        self.assertAlmostEqual(found["devices"][0]["kernel_time_us"], training.span_ns / 1000,
                               places=3)

    def test_each_cause_is_found_and_names_the_verdict(self):
        for verdict, training in (
                ("input-bound", train(wait=1500)),
                ("copy-bound", train(copy=900)),
                ("copy-bound", train(copy=900, memory="Pinned")),
                ("synchronization-bound", train(items=8, kernel=200)),
                ("launch-bound", train(small_kernels=60)),
                ("host-bound", train(host=1200)),
                ("device-busy", train(kernel=50_000))):
            with self.subTest(verdict):
                found = analyze(training.write_kineto(self.path("t.json")), "--last-step")
                self.check(training, found)
                self.assertEqual(found["verdict"], verdict)

    def test_causes_together(self):
        training = train(wait=700, host=300, copy=400, small_kernels=20, items=2)
        path = training.write_kineto(self.path("t.json"))
        found = analyze(path, "--last-step")
        self.check(training, found)
        for step, truth in zip(found["steps"], training.by_step):
            for cause in CAUSES:
                self.assertLessEqual(abs(step[cause + "_us"] - truth[cause] / 1000),
                                     max(40, sum(truth.values()) / 100_000), (step, truth))
        self.assertEqual([b["batch"] for b in found["batches"]], list(range(20)))
        # If there are several steps, the last one is left out unless the user asks for it.
        self.assertLess(analyze(path)["devices"][0]["kernel_time_us"],
                        found["devices"][0]["kernel_time_us"])

    def test_advice_depends_on_the_memory(self):
        for memory, word in (("Pageable", "pin_memory=True"), ("Pinned", "pinned memory already")):
            training = train(copy=900, memory=memory)
            found = analyze(training.write_kineto(self.path("t.json")))
            self.assertIn(word, found["advice"])
            copies = found["devices"][0]["copies"]["HtoD"]
            self.assertEqual(copies[memory.lower()]["bytes"], copies["bytes"])
            self.assertAlmostEqual(copies["gb_per_s"], (1 << 20) / 900_000, places=6)

    def test_a_busy_device_clears_the_input_pipeline(self):
        path = train(kernel=50_000, wait=10).write_kineto(self.path("t.json"))
        self.assertIn("The input pipeline is not the problem", run("accelerator", path).stdout)

    def test_logs_name_the_operation_that_was_late(self):
        training = train(wait=1500)
        path = training.write_kineto(self.path("t.json"))
        logs = training.write_logs(self.path("run"))
        found = analyze(path, logs, "--last-step")
        self.check(training, found)
        late = {e["op"]: e["us"] for e in found["idle_causes"] if e["cause"] == "batch-wait"}
        self.assertGreater(late["Decode"], 0.98 * training.truth["batch-wait"] / 1000)
        self.assertIn("late is mostly Decode", found["headline"])
        # Other commands must find the trace in the run's folder.
        training.write_kineto(os.path.join(logs, "t.pt.trace.json"))
        for command in ("stats", "diagnose"):
            self.assertRegex(" ".join(run(command, logs).stdout.split()),
                             r"input-bound: \d+ % of the time \([^)]*\), the device is idle because ")
        told = parse("diagnose", run("diagnose", logs, "--json").stdout)["accelerator"]
        self.assertEqual(told["verdict"], "input-bound")
        told = parse("stats", run("stats", logs, "--json").stdout)["runs"][0]["accelerator"]
        self.assertEqual(told["verdict"], "input-bound")
        self.assertNotIn("was not recorded whether a GPU or other accelerator", run("diagnose", logs, "--details").stdout)

    def test_without_a_trace_the_verdict_says_what_it_cannot_see(self):
        logs = train(wait=1500).write_logs(self.path("run"))
        self.assertIn("was not recorded whether a GPU or other accelerator", run("diagnose", logs, "--details").stdout)

    def test_diagnose_believes_a_busy_device(self):
        logs = train(kernel=50_000, wait=10).write_logs(self.path("run"))
        self.assertIn("To see how busy a GPU or accelerator was, run 'lotus-tool accelerator --help'", " ".join(run("diagnose", logs).stdout.split()))
        train(kernel=50_000, wait=10).write_kineto(os.path.join(logs, "t.json"))
        screen = parse("diagnose", run("diagnose", logs, "--json").stdout)["screen"]
        self.assertIn("The accelerator is the bottleneck", screen["headline"])
        self.assertEqual(screen["advice"], [])
        # A trace of a small part of the run must not be taken as evidence about the rest.
        train(steps=3, kernel=50_000, wait=10).write_kineto(os.path.join(logs, "t.json"))
        screen = parse("diagnose", run("diagnose", logs, "--json").stdout)["screen"]
        self.assertNotIn("The accelerator is the bottleneck", screen["headline"])

    def test_waiting_for_other_ranks_is_not_taken_for_work(self):
        training = train(kernel=1000, communicate=50_000, wait=10)
        logs = training.write_logs(self.path("run"))
        path = training.write_kineto(os.path.join(logs, "t.json"))
        headline = analyze(path)["headline"]
        self.assertIn("compare the traces of all ranks", headline)
        self.assertNotIn("not the problem", headline)
        screen = parse("diagnose", run("diagnose", logs, "--json").stdout)["screen"]
        self.assertNotIn("The accelerator is the bottleneck", screen["headline"])

    def test_diagnose_says_how_to_copy(self):
        training = train(copy=900)
        logs = training.write_logs(self.path("run"))
        training.write_kineto(os.path.join(logs, "t.json"))
        told = " ".join(run("diagnose", logs).stdout.split())
        self.assertIn("Accelerator: copy-bound", told)
        self.assertIn("pin_memory=True", told)

    def test_a_scope_named_copy_of_the_consumer_counts_as_copying(self):
        training = train(host=1200)
        logs = training.write_logs(self.path("run"))
        path = training.write_kineto(self.path("t.json"))
        self.assertEqual(analyze(path, logs)["verdict"], "host-bound")
        with open(f"{logs}/lotustrace_log_worker_pid_{MAIN}", "w") as log:
            log.writelines(f"SCopy,{start},{length}\n" for start, length in training.host_ranges)
        training.truth["copy"] += training.truth["host"]
        training.truth["host"] = 0
        found = analyze(path, logs, "--last-step")
        self.check(training, found)
        self.assertEqual(found["verdict"], "copy-bound")

    def test_fractions_and_a_base_time(self):
        training = train(wait=700, copy=400, unit_ns=1003)
        for base in (0, 1_699_999_999_000_000_001):
            path = training.write_kineto(self.path("t.json"), base_ns=base)
            # As doubles, absolute times in microseconds would be rounded to 0.25 us.
            if base:
                self.check(training, analyze(path, "--last-step", "--exact"))
            rounded = analyze(path, "--last-step")
            self.assertTrue(rounded["rounded_to_us"])
            self.assertEqual(sum(causes_of(rounded).values()), rounded["devices"][0]["idle_us"])

    def test_rocm_several_devices_and_the_rank(self):
        one, two = train(wait=700, copy=500), train(wait=700, copy=500, device=1)
        found = analyze(one.write_kineto(self.path("t.json"), rocm=True, others=[two]),
                        "--last-step")
        self.assertEqual([d["device"] for d in found["devices"]], [0, 1])
        self.assertEqual(found["rank"], 3)
        causes = causes_of(found)
        self.assertAlmostEqual(sum(causes.values()), 2 * one.idle_ns / 1000, places=3)
        self.assertLess(abs(causes["copy"] - 2 * one.truth["copy"] / 1000), one.idle_ns / 50_000)

    def test_a_database_of_nsys(self):
        training = train(host=300, copy=400, small_kernels=20, items=2)
        path = training.write_nsys(self.path("t.sqlite"))
        found = analyze(path)
        # The database has no NVTX ranges, so waits for batches count as other time of the host.
        training.truth["host"] += training.truth["batch-wait"]
        training.truth["batch-wait"] = 0
        self.check(training, found)
        self.assertEqual(found["steps"], [])
        self.assertEqual(found["devices"][0]["copies"]["HtoD"]["pageable"]["count"], 20)
        kineto = analyze(training.write_kineto(self.path("t.json")), "--last-step")
        self.assertEqual(found["devices"][0]["streams"], kineto["devices"][0]["streams"])

    def test_ranges_of_nvtx(self):
        training = train(wait=700, host=300, items=1)
        with self.subTest("of PyTorch"):
            found = analyze(training.write_nsys(self.path("t.sqlite"), loader=True))
            self.check(training, found)
            self.assertEqual(len(found["batches"]), 20)
        for name in ("step ", "Iteration: ", "ProfilerStep#", "batch_"):
            with self.subTest(name):
                found = analyze(training.write_nsys(self.path("t.sqlite"), steps=name, loader=True))
                self.assertEqual([s["step"] for s in found["steps"]], list(range(21)))
                self.assertFalse(found["without_last_step"])
                for step, truth in zip(found["steps"], training.by_step):
                    self.assertLessEqual(abs(step["batch-wait_us"] - truth["batch-wait"] / 1000), 10)
        self.assertEqual(analyze(training.write_nsys(self.path("t.sqlite"), steps="part "))["steps"],
                         [])
        with self.subTest("of Lotus"):
            training.truth["copy"] += training.truth["host"]
            training.truth["host"] = 0
            found = analyze(training.write_nsys(self.path("t.sqlite"), lotus=True, loader=True))
            self.check(training, found)
            self.assertEqual([b["batch"] for b in found["batches"]], list(range(20)))

    def test_ranges_that_cover_the_gaps_are_named(self):
        training = train(host=900)
        for how, name in (("named", "save checkpoint"), ("mpi", "MPI_Allreduce")):
            path = training.write_nsys(self.path("t.sqlite"), **{how: name})
            found = analyze(path)
            self.check(training, found)
            self.assertEqual((found["verdict"], found["places"]["range"]), ("host-bound", name))
            self.assertIn(f"range {name} (100 %)", run("accelerator", path).stdout)
        # A range that covers little of the time is not what to look at first.
        path = training.write_nsys(self.path("t.sqlite"), loader=True)
        self.assertNotIn("range ", run("accelerator", path).stdout)

    def test_a_database_without_new_columns(self):
        training = train(wait=700)
        path = training.write_nsys(self.path("t.sqlite"), loader=True)
        with sqlite3.connect(path) as base:
            base.execute("UPDATE NVTX_EVENTS SET text = (SELECT value FROM StringIds"
                         " WHERE id = textId) WHERE text IS NULL")
            for column in ("textId", "domainId", "uint64Value"):
                base.execute(f"ALTER TABLE NVTX_EVENTS DROP COLUMN {column}")
            for table in ("KERNEL", "MEMCPY"):
                base.execute(f"ALTER TABLE CUPTI_ACTIVITY_KIND_{table} DROP COLUMN globalPid")
        base.close()
        self.check(training, analyze(path))

    def test_a_database_of_several_processes(self):
        one, two = train_ranks([100, 1500])
        found = analyze(one.write_nsys(self.path("t.sqlite"), others=[two], loader=True))
        self.assertEqual([r["name"] for r in found["ranks"]], ["process 1000", "process 1010"])
        for training, rank in zip((one, two), found["ranks"]):
            self.check(training, rank["accelerator"])
        self.assertEqual(found["slowest"], "process 1010")

    def test_what_is_no_trace_gets_one_line(self):
        whole = train().write_kineto(self.path("t.json"))
        with open(whole) as file:
            text = file.read()
        for name, content, words in (
                ("cut.json", text[:len(text) // 2], "perhaps cut off"),
                ("foreign.json", '{"a": [1, {"ph": "X"}]}', "no traceEvents"),
                ("cpu.json", '{"traceEvents": [{"ph": "X", "cat": "cpu_op", "ts": 1, "dur": 2}]}',
                 "no work of an accelerator"),
                ("text.json", "hello", "neither a trace of PyTorch's profiler"),
                ("empty.json", "", "neither a trace of PyTorch's profiler"),
                ("report.nsys-rep", "NSYS", "nsys export --type sqlite"),
                ("bad.sqlite", "SQLite format 3\0" + "x" * 200, "database of nsys")):
            with self.subTest(name):
                with open(self.path(name), "w") as file:
                    file.write(content)
                done = run("accelerator", self.path(name))
                self.assertEqual(done.returncode, 1)
                self.assertEqual(len(done.stderr.strip().split("\n")), 1, done.stderr)
                self.assertIn(words, done.stderr)
        packed = self.path("t.json.gz")
        with gzip.open(packed, "wt") as file:
            file.write(text)
        self.assertEqual(analyze(packed)["devices"], analyze(whole)["devices"])


class Ranks(unittest.TestCase):
    """Tests four ranks: rank 2 waits for data, and the others wait for rank 2."""

    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = holder.name
        self.ranks = train_ranks([50, 100, 2000, 50])

    def check(self, found, logs):
        """@param logs  folders of the ranks' logs, or None"""
        self.assertEqual([r["name"] for r in found["ranks"]], [f"rank {r}" for r in range(4)])
        self.assertEqual(found["slowest"], "rank 2")
        self.assertEqual(found["waits_for_data"], "rank 2")
        self.assertEqual(found["verdict"], "input-bound")
        self.assertTrue(found["own_by_step"])
        self.assertIn("rank 2 is the slowest of 4", found["headline"])
        own = [r["own_us"] for r in found["ranks"]]
        self.assertEqual(own.index(max(own)), 2)
        for rank, entry, folder in zip(self.ranks, found["ranks"], logs):
            one = entry["accelerator"]
            self.assertEqual(one["logs"], folder)
            device, = one["devices"]
            self.assertEqual(device["device"], rank.device)
            self.assertEqual(device["only_communication_us"], device["communication_us"])
            self.assertEqual(sum(causes_of(one).values()), device["idle_us"])
            late = {e["op"] for e in one["idle_causes"] if e["us"] > 0}
            self.assertEqual("Decode" in late, folder is not None)

    def folders(self):
        for rank in self.ranks:
            folder = rank.write_logs(f"{self.folder}/rank{rank.rank}")
            rank.write_kineto(f"{folder}/host.pt.trace.json")
        return [f"{self.folder}/rank{rank}" for rank in range(4)]

    def test_a_folder_for_each_rank(self):
        logs = self.folders()
        self.check(analyze(self.folder), logs)
        self.check(analyze(*logs), logs)
        text = run("accelerator", self.folder).stdout
        self.assertIn("rank 2 is the slowest of 4", text)
        self.assertIn("the others", text)
        # Prints all columns with shares; in 80 columns, some would be left out.
        rows = [line.split() for line in run("accelerator", self.folder, "--wide").stdout.split("\n")]
        row, = [r for r in rows if r[:2] == ["rank", "2"] and r[2] != "is"]
        self.assertEqual(row[2], "input-bound")
        self.assertIn(f"Next:  lotus-tool accelerator {self.folder} --rank 2", text)
        details = run("accelerator", self.folder, "--rank", "2").stdout
        self.assertIn("rank2/host.pt.trace.json, rank 2", details)
        self.assertIn("device 2, stream 7", details)
        self.assertEqual(run("accelerator", self.folder, "--rank", "7").returncode, 2)

    def test_one_folder_for_all(self):
        for rank in self.ranks:
            rank.write_logs(self.folder)
            rank.write_kineto(f"{self.folder}/{rank.main}.pt.trace.json")
        self.check(analyze(self.folder), [self.folder] * 4)
        for command in ("stats", "diagnose"):
            done = run(command, self.folder)
            self.assertIn("rank 2 is the slowest of 4", " ".join(done.stdout.split()), done.stderr)
        told = parse("stats", run("stats", self.folder, "--json").stdout)["runs"][0]["accelerator"]
        self.check(told, [self.folder] * 4)
        told = parse("diagnose", run("diagnose", self.folder, "--json").stdout)["accelerator"]
        self.check(told, [self.folder] * 4)

    def test_files_and_folders_of_logs(self):
        for with_ranks in (True, False):  # without ranks, process numbers must suffice
            with self.subTest(with_ranks):
                traces = []
                for rank in self.ranks:
                    number, rank.rank = rank.rank, rank.rank if with_ranks else None
                    rank.write_logs(f"{self.folder}/logs/{number}")
                    rank.rank = number
                    traces.append(rank.write_kineto(f"{self.folder}/{3 - number}.json"))
                self.check(analyze(*traces, f"{self.folder}/logs"),
                           [f"{self.folder}/logs/{rank}" for rank in range(4)])
                self.check(analyze(*traces), [None] * 4)
        done = run("accelerator", *traces, f"{self.folder}/logs/1")
        self.assertEqual(done.returncode, 0)

    def test_logs_of_another_rank_are_not_used(self):
        self.folders()
        done = run("accelerator", f"{self.folder}/rank0/host.pt.trace.json", f"{self.folder}/rank1",
                   "--json")
        self.assertIn("no logs of its rank", done.stderr)
        self.assertIsNone(json.loads(done.stdout)["logs"])

    def test_logs_of_another_time_are_not_used(self):
        later = train(wait=700, start_ns=1_800_000_000_000_000_000)
        earlier = train(wait=700)
        done = run("accelerator", later.write_kineto(f"{self.folder}/t.json"),
                   earlier.write_logs(f"{self.folder}/run"), "--json")
        self.assertIn("recorded at another time", done.stderr)
        self.assertIsNone(json.loads(done.stdout)["logs"])
        shutil.copy(f"{self.folder}/t.json", f"{self.folder}/run/t.json")
        self.assertNotIn("accelerator:", run("stats", f"{self.folder}/run").stdout)

    def test_of_a_rank_the_last_trace_counts_and_no_picture(self):
        logs = self.folders()
        shutil.copy(f"{logs[0]}/host.pt.trace.json", f"{logs[0]}/host9.pt.trace.json")
        shutil.copy(f"{logs[0]}/host.pt.trace.json", f"{logs[0]}/host10.pt.trace.json")
        done = run("viz", logs[1])
        self.assertEqual(done.returncode, 0, done.stderr)
        done = run("accelerator", self.folder, "--json")
        found = json.loads(done.stdout)
        self.check(found, logs)
        self.assertTrue(found["ranks"][0]["accelerator"]["trace"].endswith("host10.pt.trace.json"))
        self.assertIn("is of the same rank", done.stderr)
        self.assertIn("'lotus-tool viz' has written it", done.stderr)

    def test_traces_of_other_times_are_not_compared_silently(self):
        paths = []
        for start_ns in (1_700_000_000_000_000_000, 1_800_000_000_000_000_000):
            one = train(wait=700, rank=len(paths), start_ns=start_ns)
            paths.append(one.write_kineto(f"{self.folder}/{len(paths)}.json"))
        self.assertIn("1.json: recorded at another time than", run("accelerator", *paths).stderr)
        self.assertEqual(run("accelerator", paths[0], paths[0]).stdout,
                         run("accelerator", paths[0]).stdout)

    def test_a_folder_without_traces(self):
        done = run("accelerator", self.ranks[0].write_logs(f"{self.folder}/run"))
        self.assertEqual(done.returncode, 1)
        self.assertEqual(len(done.stderr.strip().split("\n")), 1, done.stderr)
        self.assertIn("no trace of an accelerator found", done.stderr)

    def test_equal_ranks(self):
        for rank in train_ranks([1000, 1000, 1000]):
            rank.write_kineto(f"{self.folder}/{rank.rank}.json")
        found = analyze(self.folder)
        self.assertIsNone(found["slowest"])
        self.assertIn("none of 3 ranks is 5 % slower", found["headline"])
        self.assertEqual(found["verdict"], "input-bound")


@unittest.skipUnless(os.path.isdir(SHARED), "skipped: the real traces are not here")
class Real(unittest.TestCase):
    """Compares with the results of HolisticTraceAnalysis 0.5 for three traces of its test data."""

    def test_figures(self):
        for name, span, compute, other, idle, streams in (
                ("a_negative_queue", 1016554, 143836, 166865, 705853,
                 {7: (0, 17159, 691231), 25: (628598, 85, 0)}),
                ("b_ns_resolution", 384634, 372150, 2371, 10113, {7: (1709, 8404, 0)}),
                ("c_dataloader", 383404, 234760, 86525, 62119, {7: (102154, 14226, 32183)})):
            with self.subTest(name):
                found = analyze(os.path.join(SHARED, name + ".json.gz"))
                device, = found["devices"]
                self.assertEqual([device[of + "_us"] for of in
                                  ("kernel_time", "compute", "non_compute", "idle")],
                                 [span, compute, other, idle])
                self.assertEqual(sum(causes_of(found).values()), idle)
                for stream in device["streams"]:
                    if stream["stream"] in streams:
                        self.assertEqual(tuple(stream["idle"].values()),
                                         streams[stream["stream"]])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
