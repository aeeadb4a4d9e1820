#!/usr/bin/env python3
"""Tests `lotus-tool` on damaged traces, several ranks, and traces next to logs:
damaged_traces_test.py TOOL [MUTATIONS].
"""

import gzip
import json
import os
import random
import subprocess
import sys
import unittest

import odd_traces as odd
from odd_traces import ORIGIN, Recording, training
from trace_case import TOOL, Case, write

MUTATIONS = int(sys.argv[2]) if len(sys.argv) > 2 else 1000


def as_exporters_write(good):
    """Yields variants of a trace, what must be said about each, and its first event's arguments."""
    array = good[good.index("["):good.rindex("}")]

    def first(arguments):
        return good.replace('"args": {}', '"args": ' + arguments, 1)
    yield good, None, {}
    yield array, None, {}
    yield first('{"a": NaN, "b": -Infinity}'), None, {"a": None, "b": None}
    yield (first('{"a": nan, "b": -inf, "c": -nan(ind), "d": True}'), "4 values",
           {"a": None, "b": None, "c": None, "d": True})
    yield (first('{"a": .5, "b": +1, "c": 2., "d": -007.5}'), "4 values",
           {"a": .5, "b": 1, "c": 2, "d": -7.5})
    yield first('{"a": "x\x01y\nz"}'), "2 control bytes", {"a": "x\x01y\nz"}
    yield first(r'{"D:\c": "D:\users\ufab.py"}'), "3 single", {"D:\\c": "D:\\users\\ufab.py"}
    yield first(r'{"a": "D:\\cuda"}'), None, {"a": "D:\\cuda"}
    yield first('{"a": 1,}'), "1 comma", {"a": 1}
    yield good.replace("}\n]", "},\n]"), "1 comma", {}
    yield good.replace("},\n{", "},,\n{", 2), "2 commas", {}
    yield good.replace("},\n{", "}\n{", 1), "1 comma", {}
    yield array[:array.rindex("]")], "no end of the list", {}
    yield array[:array.rindex("]")].rstrip() + ",\n", "no end of the list", {}
    yield b"\xef\xbb\xbf" + good.encode(), "a byte order mark", {}
    yield first('{"a": "\xe9"}'), None, {"a": "\xe9"}
    yield first('{"a": "\xe9\\u00e9\xe9"}').encode("latin-1"), "2 texts", {"a": "%E9\xe9%E9"}


def unreadable(good):
    """Returns what cannot be read, the name of the file, and what must be said about it."""
    packed = gzip.compress(good.encode())
    return ((good[:len(good) * 2 // 3], "t.json", "perhaps cut off"),
            (good[:good.rindex("]")], "t.json", "perhaps cut off"),
            (good.replace('"ph"', "ph", 1), "t.json", "not valid JSON: unexpected 'p' at byte"),
            (packed[:len(packed) // 2], "t.json.gz", "cannot be read to its end"),
            (b"\xfd7zXZ\x00rest", "t.json.xz", "unxz"),
            (b"PK\x03\x04rest", "t.json.zip", "unzip"),
            (good.encode("utf-16"), "t.json", "UTF-16"))


class Text(Case):
    def test_what_exporters_write(self):
        for text, note, _ in as_exporters_write(training().text('"schemaVersion":1,')):
            with self.subTest(note):
                self.reference(text, note)

    def test_numbers_as_texts(self):
        self.reference(odd.events_as_text(training(), ("ts", "dur")), "40 events with times")
        self.reference(odd.events_as_text(training(), ("stream", "device", "correlation")))
        self.reference(odd.events_as_text(training(), ("pid", "tid")))
        self.reference(odd.events_as_text(training(), ("ts",), lambda e: "Data" in e["name"]),
                       "10 events with times")

    def test_files_that_cannot_be_used(self):
        for data, name, words in unreadable(training().text()):
            with self.subTest(words):
                done = self.run_tool(data, name=name)
                self.assertEqual(done.returncode, 1)
                self.assertIn(words, done.stderr)
                self.assertEqual(done.stderr.count("\n"), 1)

    def test_a_folder_names_what_it_does_not_read(self):
        write(os.path.join(self.folder, "a.json"), training())
        write(os.path.join(self.folder, "b.json.xz"), b"\xfd7zXZ\x00rest")
        write(os.path.join(self.folder, "c.json"), training().text()[:900])
        done = subprocess.run([TOOL, "accelerator", self.folder], capture_output=True, text=True)
        self.assertIn("input-bound", done.stdout)
        self.assertIn("b.json.xz: compressed with xz", done.stderr)
        self.assertIn("c.json: not valid JSON, perhaps cut off", done.stderr)


class Ranks(Case):
    def write(self, rank, recording, head="", size=8):
        info = '"distributedInfo": {"rank": %d, "world_size": %d},' % (rank, size)
        write(os.path.join(self.folder, f"rank{rank}.json"), recording.text(info + head))

    def run_folder(self, *options):
        return subprocess.run([TOOL, "accelerator", self.folder, *options], capture_output=True,
                              text=True)

    def test_copies_have_a_column_and_missing_ranks_are_named(self):
        for rank in range(2):
            self.write(rank, odd.copying("Memcpy HtoD (Host -> Device)", "gpu_memcpy"))
        text = self.run_folder("--wide").stdout
        self.assertIn("copies alone", text)
        self.assertRegex(text, r"rank 0 +copy-bound.* 80 %")
        self.assertIn("The training has 8 ranks", text)
        self.assertIn("--rank 0", text)

    def test_a_slow_rank_is_named_only_beyond_chance(self):
        """Times drift, as they do when something disturbs a rank for some seconds."""
        def rank(chance, slower):
            r, drift = Recording(), 0.0
            for _ in range(240):
                drift = 0.97 * drift + chance.gauss(0, 0.05)
                own = round(3000 * (1 + slower + max(-0.5, drift)))
                r.kernel(own)
                r.kernel(max(100, 8000 - own), name="ncclDevKernel_AllReduce")
            return r
        named = 0
        for seed in range(12):
            chance = random.Random(seed)
            for n in range(2):
                self.write(n, rank(chance, 0))
            named += json.loads(self.run_folder("--json").stdout)["slowest"] is not None
        self.assertLessEqual(named, 1)
        chance = random.Random(1)
        for n in range(2):
            self.write(n, rank(chance, n))
        self.assertEqual(json.loads(self.run_folder("--json").stdout)["slowest"], "rank 1")


class NextToLogs(Case):
    """A worker reads for 80 ms and collates for 10; the consumer computes for 10 ms meanwhile."""

    def write_run(self, waits=True, marked=True, overlong=False, text=lambda text: text):
        r = training(24, wait=80_000, kernel=9980, numbered=False)
        if overlong:
            next(e for e in r.events if e["cat"] == "kernel")["dur"] = 2_000_000
        logs = {"main_pid_50": [], "worker_pid_51": []}
        for i, wait in enumerate(e for e in r.events if e["name"] == odd.LOADER):
            start, end = wait["ts"], wait["ts"] + wait["dur"]
            if waits:
                logs["main_pid_50"].append((f"BatchWait_{i}", start, end - start))
            logs["main_pid_50"].append((f"BatchConsumed_{i}", end, 1))
            if marked:
                logs["worker_pid_51"] += [("Loader", end - 90_000, 80_000),
                                          ("Collation", end - 10_000, 10_000)]
            logs["worker_pid_51"].append((f"BatchPreprocessed_{i}", end - 90_000, 90_000))
        for name, lines in logs.items():
            write(os.path.join(self.folder, "lotustrace_log_" + name),
                  "".join(f"S{what},{start * 1000},{us * 1000}\n" for what, start, us in lines))
        write(os.path.join(self.folder, "trace.json"), text(r.text()))

    def run_command(self, *options):
        done = subprocess.run([TOOL, options[0], self.folder, *options[1:]], capture_output=True,
                              text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def run_json(self, command):
        done = self.run_command(command, "--json")
        return json.loads(done.stdout), done.stderr

    def drawn_events(self, *options):
        """Returns the events that viz writes, which must be strict JSON, and what it says."""
        path = os.path.join(self.folder, "drawn.json")
        said = self.run_command("viz", "-o", path, *options).stderr
        with open(path, encoding="utf-8") as file:
            drawn = json.load(file, parse_constant=self.fail)
        return drawn if isinstance(drawn, list) else drawn["traceEvents"], said

    def check_late(self, loader=1_610_000, collation=230_000):
        found, _ = self.run_json("accelerator")
        late = {e["op"]: e["us"] for e in found["idle_causes"] if e["cause"] == "batch-wait"}
        self.assertEqual(late, {"Loader": loader, "Collation": collation})

    def test_waits_that_only_the_trace_has(self):
        self.write_run()
        self.check_late()
        right = self.run_json("diagnose")[0]
        self.write_run(waits=False)
        self.check_late()
        found, said = self.run_json("diagnose")
        self.assertIn("the waits for batches are those of this trace", said)
        self.assertEqual(found["verdict"], right["verdict"])
        self.assertEqual(found["verdict"], "preprocessing-bound")
        for command in ("stats", "report", "whatif", "viz"):
            options = ["--workers", "2"] if command == "whatif" else ["-o", os.devnull]
            said = self.run_command(command, *options[:0 if command == "stats" else 2]).stderr
            self.assertIn("the waits for batches are those of this trace", said, command)
        drawn, _ = self.drawn_events()
        self.assertEqual(sum(e["name"] == "BatchWait" for e in drawn), 24)

    def test_nothing_is_marked(self):
        self.write_run(marked=False)
        self.assertIn("No operation is marked", self.run_json("accelerator")[0]["headline"])

    def test_one_overlong_kernel_does_not_decide(self):
        self.write_run(overlong=True)
        found, said = self.run_json("diagnose")
        self.assertEqual(found["verdict"], "preprocessing-bound")
        self.assertNotIn("accelerator is the bottleneck", found["screen"]["headline"])
        self.assertIn("1 event cut off", said)

    def check_said(self, words):
        said = {self.run_json("diagnose")[1], self.run_json("stats")[1],
                self.run_command("report", "-o", os.devnull).stderr}
        self.assertEqual(len(said), 1, said)
        for line in said:
            self.assertIn(words, line)
            self.assertEqual(line.count("\n"), 1 if words else 0)
        return said.pop()

    def test_every_command_reads_what_exporters_write(self):
        self.write_run()
        with open(os.path.join(self.folder, "trace.json"), encoding="utf-8") as file:
            good = file.read()
        events = json.loads(good)["traceEvents"]
        alone = [e for e in self.drawn_events()[0] if e not in events]
        self.assertGreater(len(alone), 24 * 5)
        for text, note, arguments in as_exporters_write(good):
            with self.subTest(note):
                write(os.path.join(self.folder, "trace.json"), text)
                said = self.check_said(note or "")
                drawn, of_viz = self.drawn_events()
                self.assertTrue(of_viz.endswith(said))
                self.assertEqual(of_viz.count("\n"), 1 + said.count("\n"))
                self.assertEqual(drawn[0].pop("args"), arguments)
                self.assertEqual([{"args": {}, **e} for e in drawn[:len(events)]], events)
                self.assertEqual(drawn[len(events):], alone)
                self.assertEqual(len(self.drawn_events("--compat")[0]), len(events) + 24 * 7)

    def test_a_trace_that_cannot_be_read_is_said_and_loses_nothing(self):
        self.write_run()
        path = os.path.join(self.folder, "trace.json")
        with open(path, encoding="utf-8") as file:
            good = file.read()
        events = json.loads(good)["traceEvents"]
        alone = len([e for e in self.drawn_events()[0] if e not in events])
        for data, name, words in unreadable(good):
            with self.subTest(words):
                os.remove(path)
                path = write(os.path.join(self.folder, name), data)
                said = self.check_said(words)
                drawn, of_viz = self.drawn_events()
                self.assertEqual(of_viz, said.replace("note: ignored", "warning: not merged"))
                self.assertEqual(len(drawn), alone)


class Mutations(Case):
    """Damages good traces in every way above. The figures must stay right, or a line must say why
    they may not be."""

    def damaged(self, chance):
        r = training(20)
        works = [e for e in r.events if e["cat"] == "kernel"]
        any_event = chance.choice(r.events)
        work = chance.choice(works[:-1])
        first = '"args": {}'
        text = None
        kind = chance.randrange(16)
        if kind == 0:
            work["dur"] = chance.randrange(11_000, 10**9)
        elif kind == 1:
            any_event["dur"] = -chance.randrange(1, 10**12)
        elif kind == 2:
            any_event["dur"] = chance.choice((None, "x", 2**64 - 5, 1e300))
        elif kind == 3:
            any_event["ts"] = chance.choice((None, "", "soon"))
        elif kind == 4:
            r.add("kernel", "stray", chance.choice((0, 5, ORIGIN - 10**8, ORIGIN + 10**8)), 9, (0, 3),
                  device=0, stream=3, correlation=0)
        elif kind == 5:
            odd.events_as_text(r, chance.choice((("ts",), ("dur",), ("ts", "dur"))))
        elif kind == 6:
            odd.events_as_text(r, ("stream", "device", "pid", "tid", "correlation"))
        elif kind == 7:
            chance.shuffle(r.events)
        elif kind == 8:
            r.events.insert(chance.randrange(len(r.events)), {"ph": "X", "name": "x"})
        elif kind == 9:
            for event in r.events:
                if event["name"].startswith(("enum", "Prof")):
                    event["cat"] = chance.choice(("Operator", "cpu_op", "user_annotation,x"))
        elif kind == 10:
            value = chance.choice(("nan", "-nan", "inf", "-INF", ".5", "+3", "None", '"\\q"', '"\x02"'))
            text = r.text().replace(first, '"args": {"v": ' + value + "}", chance.randrange(1, 9))
        elif kind == 11:
            text = r.text().replace("},\n", chance.choice(("},,\n", "}\n", "},\n,")),
                                    chance.randrange(1, 4))
        elif kind == 12:
            whole = r.text()
            text = whole[:chance.randrange(20, len(whole) - 4)]
        elif kind == 13:
            whole = bytearray(r.text().encode())
            whole[chance.randrange(len(whole))] = chance.randrange(256)
            text = bytes(whole)
        elif kind == 14:
            text = b"\xef\xbb\xbf" + r.text().encode()
        else:
            any_event["args"] = chance.choice((None, [], "x", {"stream": {}}, {"stream": None}))
        return kind, text or r

    def test_mutations(self):
        right = self.analyze(training(20))
        for seed in range(MUTATIONS):
            kind, recording = self.damaged(random.Random(seed))
            done = self.run_tool(recording, "--json")
            self.assertIn(done.returncode, (0, 1), (seed, done))
            self.assertNotIn("nternal error", done.stderr)
            if done.returncode:
                self.assertEqual(done.stderr.count("\n"), 1, (seed, done.stderr))
                continue
            found = json.loads(done.stdout)
            for device in found["devices"]:
                self.assertTrue(0 <= device["idle_us"] <= device["kernel_time_us"], (seed, device))
            if kind == 13 or kind == 15:  # a byte of a number, or a lost argument, cannot be noticed
                continue
            near = abs(found["cause_us"] - right["cause_us"]) <= 0.12 * right["cause_us"]
            self.assertTrue(found["verdict"] == "input-bound" and near, (seed, kind, found["headline"]))
            same = found["devices"] == right["devices"] and found["cause_us"] == right["cause_us"]
            self.assertTrue(same or found["notes"], (seed, kind, done.stdout))

if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
