#!/usr/bin/env python3
"""Measures how good the configuration is that lotus-tool tune finds.

Usage: tune_pipelines.py TOOL PROGRAM [--only KIND,...] [--grid FILE] [--jobs N] [--programs FILE]

TOOL: path of lotus-tool. PROGRAM: path of the planted pipelines (tune_pipelines). Runs every
configuration of a grid once, with `tune --runs 1`, as the truth. Then lets `tune` search with at
most 5 runs, and computes from the values of the grid what random search, coordinate search and
hill climbing reach with as many runs. --grid stores the grids in a file, or reads them from it.
--jobs runs as many pipelines at once (the planted ones hardly use CPUs). --programs: a JSON file
with further programs, {"name": {"sets": [["workers", "1,2,4"], ...], "command": [...]}}.
--prefix: begin of the command, such as "chrt -r 1" on a busy machine. --answers stores what
tune prints in a folder. --noise N: instead, repeats the search N times next to programs that come and go.
"""
import argparse
import itertools
import json
import multiprocessing.pool
import os
import random
import subprocess
import sys
import tempfile
import threading
import time

SEED = 1
TWO = [("workers", "1..8"), ("prefetch", "1,2,4")]
STAGES = [("stage:{}", "1..5"), ("stage:{}", "1..5")]
SETS = {
    "order": [("workers", "1,2,3,4,6,8"), ("prefetch", "1,2"), ("order", "1,0")],
    "prefetch_total": [("workers", "1..6"), ("prefetch", "1,2,4,8")],
    "stages": [("stage:Read", "1..5"), ("stage:Decode", "1..5")],
    "push": [("stage:Decode", "1..5"), ("stage:Encode", "1..5")],
    "batch_size": [("workers", "1..6"), ("batch_size", "4,8,16,32")],
    "lanes": [("lanes", "1..8"), ("depth", "1,2,4")],
    "cpu": [("workers", "1..6"), ("prefetch", "1,2,4,8")],
    "sleep_and_cpu": [("workers", "1..8"), ("prefetch", "1,2,4")],
}
ARGUMENTS = {"lanes": ["workers", "prefetch"], "stages": ["first", "second"],
             "push": ["first", "second"]}
KINDS = ["free", "consumer", "lock", "lock_around_work", "device_1", "device_2", "device_3",
         "rate_limit", "order", "heavy_tail", "prefetch", "prefetch_queue", "prefetch_total",
         "thread_per_batch", "stages", "push", "batch_size", "slower_together", "lanes", "printed",
         "cpu", "sleep_and_cpu"]


class Pipeline:
    """A program, its settings, and how to call it."""

    def __init__(self, name, sets, command, seconds, options=()):
        self.name, self.sets, self.command = name, sets, command
        self.seconds, self.options = seconds, list(options)
        self.values = [values_of(text) for _, text in sets]
        self.grid = {}
        self.prints = False

    def all(self):
        return list(itertools.product(*[range(len(v)) for v in self.values]))

    def tune(self, tool, at=None, runs=1):
        """Returns the answer of tune, for one configuration or for all."""
        words = [tool, "tune", "-q", "--json", "--for", f"{self.seconds}s", "--runs", str(runs)]
        for k, (name, text) in enumerate(self.sets):
            words += ["--set", f"{name}=" + (text if at is None else self.values[k][at[k]])]
        with tempfile.TemporaryDirectory() as folder:
            words += ["--dir", folder + "/logs", *self.options, "--", *self.command]
            environment = {k: v for k, v in os.environ.items() if k != "LOTUS_LOG_FILE"}
            done = subprocess.run(words, capture_output=True, text=True, env=environment)
        if not done.stdout:
            raise RuntimeError(f"{self.name}: {done.stderr}")
        return json.loads(done.stdout)

    def index(self, values):
        return tuple(self.values[k].index(str(values[name]))
                     for k, (name, _) in enumerate(self.sets))

    def score(self, at, rate):
        for k, (name, _) in enumerate(self.sets):
            if name == "batch_size":
                rate *= int(self.values[k][at[k]])
        return rate

    def text(self, at):
        return " ".join(f"{n}={self.values[k][at[k]]}" for k, (n, _) in enumerate(self.sets))


def values_of(text):
    found = []
    for part in text.split(","):
        first, _, last = part.partition("..")
        found += [str(i) for i in range(int(first), int(last) + 1)] if last else [part]
    return found


def planted(program, prefix):
    found = []
    for kind in KINDS:
        sets = SETS.get(kind, TWO)
        words = [f"{a}={{{n}}}" for a, (n, _) in
                 zip(ARGUMENTS.get(kind, [n for n, _ in sets]), sets)]
        options = ["--metric", "([0-9.]+) it/s"] if kind == "printed" else []
        found.append(Pipeline(kind, sets, [*prefix, program, kind, *words], 1.3, options))
        found[-1].prints = True
    return found


def printed_rate(p, at):
    """Runs a planted pipeline, and returns the slope of a line through the times that it prints."""
    words = list(p.command)
    for k, (name, _) in enumerate(p.sets):
        words = [word.replace("{" + name + "}", p.values[k][at[k]]) for word in words]
    program = subprocess.Popen(words, stdout=subprocess.PIPE, text=True,
                               env={**os.environ, "TUNE_TIMES": "1"})
    time.sleep(p.seconds)
    program.terminate()
    lines = program.communicate()[0].split("\n")[:-1]
    times = [float(line) for line in lines if "it/s" not in line]
    times = times[len(times) // 4:]
    if len(times) < 5:
        return None
    middle, mean = (len(times) - 1) / 2, sum(times) / len(times)
    return (sum((i - middle) ** 2 for i in range(len(times))) /
            sum((i - middle) * (t - mean) for i, t in enumerate(times)))


def measure_grid(tool, p):
    for at in p.all():
        # Other programs can only make a run slower, so the faster of two runs is nearer to the true
        # rate.
        rate = (max(printed_rate(p, at) or 0 for _ in range(2)) if p.prints
                else p.tune(tool, at)["batches_per_s"])
        if rate:
            p.grid[at] = p.score(at, rate)


# Search algorithms for comparison. A search may use only the rates of the settings that it has
# tried.

def random_search(grid, start, runs, seed):
    others = [at for at in grid if at != start]
    random.Random(seed).shuffle(others)
    return max([start, *others[:runs - 1]], key=grid.get)


def hill_climbing(grid, start, runs, seed):
    """Tries neighbors in random order, and moves to the first better one."""
    dice = random.Random(seed)
    now, asked = start, {start}
    while len(asked) < runs:
        near = [at for at in grid if at not in asked and
                sum(abs(a - b) for a, b in zip(at, now)) == 1]
        if not near:
            break
        at = dice.choice(near)
        asked.add(at)
        if grid[at] > grid[now]:
            now = at
    return now


def coordinate_search(grid, start, runs, seed):
    """Doubles the place in the list of a setting's values as long as that gains 2 %."""
    dice = random.Random(seed)
    knobs = list(range(len(start)))
    dice.shuffle(knobs)
    now, asked = start, {start}
    for k in itertools.cycle(knobs):
        step, moved = 1, False
        while len(asked) < runs:
            at = list(now)
            at[k] += step
            at = tuple(at)
            if at not in grid:
                break
            asked.add(at)
            if grid[at] <= 1.02 * grid[now]:
                break
            now, moved, step = at, True, 2 * step
        if len(asked) >= runs or (not moved and k == knobs[-1]):
            return now


def judged(p, at, best):
    return p.grid.get(at, 0) / best


def report(p, answer):
    best_at = max(p.grid, key=p.grid.get)
    best = p.grid[best_at]
    start = tuple(0 for _ in p.sets)
    found = p.index(answer["best"]) if answer["best"] else start
    runs = len(answer["runs"])
    row = {"name": p.name, "configurations": len(p.grid), "runs": runs, "best": p.text(best_at),
           "start": p.grid.get(start, 0) / best, "found": p.text(found),
           "tune": judged(p, found, best)}
    for name, search in (("random", random_search), ("coordinate", coordinate_search),
                         ("hill", hill_climbing)):
        shares = [judged(p, search(p.grid, start, runs, SEED + s), best) for s in range(100)]
        row[name] = sum(shares) / len(shares)
        row[name + " within"] = sum(s >= 0.95 for s in shares) / len(shares)
    return row


def show(rows):
    print(f"{'pipeline':18} {'grid':>4} {'start':>6} {'runs':>4} {'tune':>6} {'random':>7} "
          f"{'coord.':>7} {'hill':>6}  best of the grid | found by tune")
    for r in rows:
        print(f"{r['name']:18} {r['configurations']:4} {100 * r['start']:5.0f}% {r['runs']:4} "
              f"{100 * r['tune']:5.1f}% {100 * r['random']:6.1f}% {100 * r['coordinate']:6.1f}% "
              f"{100 * r['hill']:5.1f}%  {r['best']} | {r['found']}")
    count = len(rows)
    within = sum(r["tune"] >= 0.95 for r in rows)
    slower = sum(r["tune"] < 0.98 * r["start"] for r in rows)
    print(f"\nwithin 5 % of the grid's best: tune {within} of {count}; "
          + "; ".join(f"{n} {sum(r[n + ' within'] for r in rows):.1f} of {count}"
                      for n in ("random", "coordinate", "hill"))
          + f" (mean of 100 seeds from {SEED}); slower than the start: {slower}")
    return within, slower


class Neighbor:
    """A program that burns one or two CPUs for 1 to 3 s, and then pauses for as long."""

    def __init__(self, seed):
        self.process = subprocess.Popen([sys.executable, "-c", f"""
import multiprocessing, os, random, time
parent = os.getppid()
def burn(seconds):
    end = time.time() + seconds
    while time.time() < end: pass
dice = random.Random({seed})
while os.getppid() == parent:
    seconds = dice.uniform(1, 3)
    busy = [multiprocessing.Process(target=burn, args=(seconds,)) for _ in range(dice.choice([1, 2]))]
    for b in busy: b.start()
    for b in busy: b.join()
    time.sleep(dice.uniform(1, 3))
"""])

    def end(self):
        self.process.terminate()
        self.process.wait()


def undecided(answer):
    return bool(answer.get("rival")) or answer.get("decided") is False


def noise(tool, pipelines, times):
    wrong = 0
    for p in pipelines:
        best = max(p.grid.values())
        for repetition in range(times):
            neighbor = Neighbor(SEED + repetition)
            try:
                answer = p.tune(tool, None, 6)
            finally:
                neighbor.end()
            found = p.index(answer["best"])
            share = judged(p, found, best)
            says = undecided(answer)
            wrong += share < 0.95 and not says
            print(f"{p.name:18} seed {SEED + repetition}: {p.text(found)}: {100 * share:.1f} %, "
                  f"{len(answer['runs'])} runs, {'cannot decide' if says else 'decided'}", flush=True)
    print(f"wrong by more than 5 % without saying so: {wrong}")


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("tool")
    parser.add_argument("program")
    parser.add_argument("--only", default="")
    parser.add_argument("--grid", default="")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--programs", default="")
    parser.add_argument("--noise", type=int, default=0)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--answers", default="")
    parser.add_argument("--prefix", default="")
    parser.add_argument("--grid-only", action="store_true")
    given = parser.parse_args()
    pipelines = planted(os.path.abspath(given.program), given.prefix.split())
    if given.programs:
        with open(given.programs, encoding="utf-8") as file:
            pipelines = [Pipeline(n, [tuple(s) for s in p["sets"]], p["command"],
                                  p.get("seconds", 3), p.get("options", ()))
                         for n, p in json.load(file).items()]
    if given.only:
        pipelines = [p for p in pipelines if p.name in given.only.split(",")]
    tool = os.path.abspath(given.tool)
    known = {}
    if given.grid and os.path.exists(given.grid):
        with open(given.grid, encoding="utf-8") as file:
            known = json.load(file)
    lock = threading.Lock()
    print(f"seed {SEED}, load {os.getloadavg()[0]:.1f} of {os.cpu_count()} CPUs", flush=True)

    def work(p):
        if p.name in known:
            p.grid = {tuple(int(i) for i in at.split()): v for at, v in known[p.name].items()}
        else:
            measure_grid(tool, p)
            with lock:
                known[p.name] = {" ".join(map(str, at)): v for at, v in p.grid.items()}
                if given.grid:
                    with open(given.grid, "w", encoding="utf-8") as file:
                        json.dump(known, file)
        if given.noise or given.grid_only:
            return None
        answer = p.tune(tool, None, given.runs)
        if given.answers:
            with open(f"{given.answers}/{p.name}.json", "w", encoding="utf-8") as file:
                json.dump(answer, file, indent=1)
        row = report(p, answer)
        print(f"{p.name}: {100 * row['tune']:.1f} % of the best, load {os.getloadavg()[0]:.1f}",
              flush=True)
        return row

    with multiprocessing.pool.ThreadPool(given.jobs) as pool:
        rows = pool.map(work, pipelines, chunksize=1)
    if given.grid_only:
        return
    if given.noise:
        noise(tool, pipelines, given.noise)
        return
    within, slower = show(rows)
    sys.exit(0 if within >= 0.95 * len(rows) and slower == 0 else 1)


if __name__ == "__main__":
    main()
