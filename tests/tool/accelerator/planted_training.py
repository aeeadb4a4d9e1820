"""Simulates a training whose accelerator is idle for known reasons.

Writes the trace that PyTorch's profiler (Kineto) would record, the database that nsys would export,
and the logs of Lotus. All times are in ns, and whole microseconds unless `unit_ns` is changed.
"""

import json
import os
import sqlite3
import sys

MAIN, WORKER = 100, 101  # processes
CAUSES = ["batch-wait", "copy", "synchronization", "launch", "host"]


class Training:
    """One process with one device. Every method advances the time; `truth` is the idle time by cause."""

    def __init__(self, start_ns=1_700_000_000_000_000_000, unit_ns=1000, device=0, rank=3,
                 main=MAIN, worker=WORKER):
        self.now = start_ns          # what the host's clock shows
        self.ready = start_ns        # when the worker finished its last batch
        self.unit = unit_ns
        self.device = device
        self.rank = rank
        self.main, self.worker = main, worker  # processes
        self.idle_from = None        # when the device finished its last work
        self.first = None
        self.truth = dict.fromkeys(CAUSES, 0)
        self.by_step = []
        self.by_op = {}
        self.work, self.calls, self.ranges, self.waits, self.host_ranges = [], [], [], [], []
        self.logs = {main: [], worker: []}
        self.correlation = 0
        self.emptied_by = "launch"   # why the device ran out of work, as long as that goes on

    def ns(self, us):
        return round(us * self.unit)

    def blame(self, cause, from_ns, to_ns):
        """Adds the time of this range in which the device had finished its work to the idle time of `cause`."""
        if self.idle_from is None:
            return
        idle = max(0, to_ns - max(from_ns, self.idle_from))
        self.truth[cause] += idle
        if self.by_step:
            self.by_step[-1][cause] += idle

    def device_runs(self, start, us, kind, name, size=0, stream=7):
        end = start + self.ns(us)
        if self.first is None:
            self.first = start
        self.work.append((kind, name, start, end, stream, self.correlation, size))
        self.idle_from = end
        return end

    def call(self, name, us):
        self.correlation += 1
        self.calls.append((name, self.now, self.now + self.ns(us), self.correlation))

    def begin_step(self, number):
        if self.ranges:
            self.ranges[-1][2] = self.now
        self.ranges.append([f"ProfilerStep#{number}", self.now, None])
        self.by_step.append(dict.fromkeys(CAUSES, 0))

    def wait(self, batch, us, read_us=50):
        """The consumer waits, because a worker is still decoding; the device has nothing to do."""
        start, end = self.now, self.now + self.ns(us)
        self.waits.append((start, end))
        self.emptied_by = "launch"
        self.blame("batch-wait", start, end)
        self.logs[self.main] += [("SBatchWait_%d" % batch, start, end - start),
                            ("SBatchConsumed_%d" % batch, end, 1000)]
        # The worker builds one batch after the other: it reads, then decodes.
        read = min(self.ns(read_us), (start - self.ready) // 2)
        decode = self.ready + read
        self.logs[self.worker] += [("SRead", self.ready, read), ("SDecode", decode, end - decode),
                              ("SBatchPreprocessed_%d" % batch, self.ready, end - self.ready)]
        self.ready = end
        self.now = end

    def host_work(self, us):
        self.emptied_by = "launch"
        self.blame("host", self.now, self.now + self.ns(us))
        self.host_ranges.append((self.now, self.ns(us)))
        self.now += self.ns(us)

    def copy_in(self, us, memory="Pageable", latency=20, size=1 << 20):
        """A blocking copy: the call, the device's copy, and the synchronization after it."""
        start = self.now
        self.call("cudaMemcpyAsync", latency)
        self.blame("copy", start, start + self.ns(latency))
        end = self.device_runs(start + self.ns(latency), us, "copy",
                               f"Memcpy HtoD ({memory} -> Device)", size)
        self.now += self.ns(latency)
        self.call("cudaStreamSynchronize", (end - self.now) / self.unit + 10)
        self.now = end + self.ns(10)
        self.blame("copy", end, self.now)
        self.emptied_by = "copy"

    def launch(self, us, call_us=30):
        """A kernel that starts when its launch returns. Short kernels leave the device idle.

        If a blocking call has made the device idle, the first launch after this call has the same cause.
        """
        start = self.now
        self.call("cudaLaunchKernel", call_us)
        self.now += self.ns(call_us)
        begin = max(self.now, self.idle_from or 0)
        self.blame(self.emptied_by, start, begin)
        self.emptied_by = "launch"
        self.device_runs(begin, us, "kernel", "void sgemm(float*)")

    def all_reduce(self, us):
        """Communicates with the other ranks; a rank that arrives early waits here for the others."""
        start = self.now
        self.call("cudaLaunchKernelExC", 10)
        self.now += self.ns(10)
        begin = max(self.now, self.idle_from or 0)
        self.blame(self.emptied_by, start, begin)
        self.device_runs(begin, us, "kernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL", stream=20)

    def item(self, latency=15):
        """Simulates .item(): waits for all work, copies one value, and returns some time after the copy."""
        start = max(self.now, self.idle_from)
        self.call("cudaMemcpyAsync", 5)
        begin = start + self.ns(latency)
        self.blame("synchronization", start, begin)
        end = self.device_runs(begin, 2, "copy", "Memcpy DtoH (Device -> Pageable)", 4)
        self.now += self.ns(5)
        self.call("cudaStreamSynchronize", (end - self.now) / self.unit + 40)
        self.now = end + self.ns(40)
        self.blame("synchronization", end, self.now)
        self.emptied_by = "synchronization"

    @property
    def idle_ns(self):
        return sum(self.truth.values())

    @property
    def span_ns(self):
        return max(w[3] for w in self.work) - self.first

    def write_kineto(self, path, base_ns=0, rocm=False, others=()):
        """@param others  trainings of the same process on other devices."""
        events = []

        def us(ns):
            return ns // 1000 if ns % 1000 == 0 else ns / 1000

        def add(category, name, start, end, thread, args):
            events.append({"ph": "X", "cat": category, "name": name, "pid": thread[0],
                           "tid": thread[1], "ts": us(start - base_ns), "dur": us(end - start),
                           "args": args})

        for part in (self, *others):
            for kind, name, start, end, stream, correlation, size in part.work:
                args = {"device": part.device, "stream": stream,
                        "correlation": correlation + 1_000_000 * part.device}
                if kind == "copy":
                    args["bytes"] = size
                    if rocm:
                        name = name.split(" (")[0] + " (Host -> Device)"
                add("gpu_memcpy" if kind == "copy" else "kernel", name, start, end,
                    (part.device, stream), args)
            for name, start, end, correlation in part.calls:
                if rocm:
                    name = name.replace("cuda", "hip")
                add("cuda_runtime", name, start, end, (self.main, self.main),
                    {"correlation": correlation + 1_000_000 * part.device})
        for name, start, end in self.ranges:
            add("user_annotation", name, start, end or self.now, (self.main, self.main), {})
        for start, end in self.waits:
            add("user_annotation", "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__",
                start, end, (self.main, self.main), {"Input Dims": [[], [1, 2]]})
        document = {"schemaVersion": 1, "traceEvents": events}
        if self.rank is not None:
            document["distributedInfo"] = {"backend": "nccl", "rank": self.rank}
        if base_ns:
            document["baseTimeNanoseconds"] = base_ns
        with open(path, "w") as file:
            json.dump(document, file)
        return path

    def write_nsys(self, path, others=(), steps=None, lotus=False, loader=False, named=None,
                   mpi=None):
        """Writes the tables and columns that nsys documents for its SQLite export.

        @param others  trainings in other processes
        @param steps   writes NVTX ranges with this name and the number of each step
        @param lotus   writes NVTX ranges as Lotus does for waits and copies
        @param loader  writes NVTX ranges as PyTorch does for waits
        @param named   writes NVTX ranges with this name around other code of the host
        @param mpi     the same as calls of MPI
        """
        if os.path.exists(path):
            os.remove(path)
        with sqlite3.connect(path) as base:
            base.executescript("""
                CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);
                CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INTEGER, utcTime TEXT,
                    localTime TEXT);
                CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER NOT NULL,
                    end INTEGER NOT NULL, deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL,
                    streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER,
                    demangledName INTEGER NOT NULL, shortName INTEGER NOT NULL);
                CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER NOT NULL,
                    end INTEGER NOT NULL, deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL,
                    streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER,
                    bytes INTEGER NOT NULL, copyKind INTEGER NOT NULL, srcKind INTEGER,
                    dstKind INTEGER);
                CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER NOT NULL,
                    end INTEGER NOT NULL, eventClass INTEGER NOT NULL, globalTid INTEGER,
                    correlationId INTEGER, nameId INTEGER NOT NULL,
                    returnValue INTEGER NOT NULL);
                CREATE TABLE NVTX_EVENTS (start INTEGER NOT NULL, end INTEGER,
                    eventType INTEGER NOT NULL, rangeId INTEGER, category INTEGER, color INTEGER,
                    text TEXT, globalTid INTEGER, endGlobalTid INTEGER, textId INTEGER,
                    domainId INTEGER, uint64Value INTEGER, int64Value INTEGER, doubleValue REAL,
                    uint32Value INTEGER, int32Value INTEGER, floatValue REAL, jsonTextId INTEGER,
                    jsonText TEXT);""")
            names = {}

            def number(name):
                if name not in names:
                    names[name] = len(names) + 1
                    base.execute("INSERT INTO StringIds VALUES (?, ?)", (names[name], name))
                return names[name]

            start_ns = 1_690_000_000_000_000_000
            base.execute("INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (?, '', '')",
                         (start_ns,))
            for part in (self, *others):
                for kind, name, start, end, stream, correlation, size in part.work:
                    head = (start - start_ns, end - start_ns, part.device, 1, stream, correlation,
                            part.main << 24)
                    if kind == "copy":
                        to_device = "HtoD" in name
                        host = 1 if "Pinned" in name else 0
                        base.execute("INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES "
                                     "(?,?,?,?,?,?,?,?,?,?,?)",
                                     (*head, size, 1 if to_device else 2,
                                      host if to_device else 2, 2 if to_device else host))
                    else:
                        base.execute("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?,?,?,?,?,?,?,?,?)",
                                     (*head, number(name), number(name)))
                for name, start, end, correlation in part.calls:
                    base.execute("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?,?,?,?,?,?,0)",
                                 (start - start_ns, end - start_ns, 1, part.main << 24 | part.main, correlation,
                                  number(name + "_v3020")))
                part.write_nvtx(base, start_ns, number, steps, lotus, loader, named)
                if mpi:
                    base.execute("CREATE TABLE MPI_COLLECTIVES_EVENTS (start INTEGER NOT NULL,"
                                 " end INTEGER, globalTid INTEGER, textId INTEGER)")
                    for start, length in part.host_ranges:
                        base.execute("INSERT INTO MPI_COLLECTIVES_EVENTS VALUES (?,?,?,?)",
                                     (start - start_ns, start + length - start_ns,
                                      part.main << 24 | part.main, number(mpi)))
        base.close()
        return path

    def write_nvtx(self, base, start_ns, number, steps, lotus, loader, named):
        pushed, domain_created, own_domain = 59, 75, 2
        thread = self.main << 24 | self.main

        def add(kind, start, end, text, domain, payload=None, by_id=False):
            base.execute(
                "INSERT INTO NVTX_EVENTS (start, end, eventType, text, textId, globalTid, domainId,"
                " uint64Value) VALUES (?,?,?,?,?,?,?,?)",
                (start - start_ns, end and end - start_ns, kind, None if by_id else text,
                 number(text) if by_id else None, thread, domain, payload))

        if steps:
            for name, start, end in self.ranges:
                add(pushed, start, end, steps + name.split("#")[1], 0, by_id=True)
        if lotus:
            add(domain_created, self.first, None, "lotus", own_domain)
            for batch, (start, end) in enumerate(self.waits):
                add(pushed, start, end, "BatchWait", own_domain, payload=batch)
            for start, length in self.host_ranges:
                add(pushed, start, start + length, "Copy", own_domain)
            # Another library's range with the same name must not be mistaken for one of Lotus.
            add(pushed, self.first, self.now, "BatchWait", 0)
        if named:
            for start, length in self.host_ranges:
                add(pushed, start, start + length, named, 0, by_id=True)
        if loader:
            for start, end in self.waits:
                add(pushed, start, end, "enumerate(DataLoader)#_SingleProcessDataLoaderIter"
                    ".__next__", 0, by_id=True)

    def write_logs(self, folder):
        os.makedirs(folder, exist_ok=True)
        for process, role in ((self.main, "main"), (self.worker, "worker")):
            with open(f"{folder}/.lotus_info_{process}_1", "w") as file:
                file.write(f"host Snode\npid {process}\nthread {process} S{role}\n")
                if role == "worker":
                    file.write(f"parent {self.main}\nforked {self.main}\n")
                if self.rank is not None:
                    file.write(f"rank {self.rank}\n")
            with open(f"{folder}/lotustrace_log_{role}_pid_{process}", "w") as file:
                for name, start, duration in self.logs[process]:
                    file.write(f"{name},{start},{duration}\n")
        return folder


def train(steps=20, wait=0, host=0, copy=0, memory="Pageable", small_kernels=0, items=0,
          kernel=2000, communicate=0, **how):
    """Returns a training in which every step contains what the arguments select; times are in us."""
    t = Training(**how)
    t.begin_step(0)
    t.launch(100)
    t.item()
    for step in range(steps):
        t.begin_step(step + 1)
        t.wait(step, max(wait, 1))
        if host:
            t.host_work(host)
        if copy:
            t.copy_in(copy, memory)
        for _ in range(small_kernels):
            t.launch(5)
        t.launch(kernel)
        for _ in range(items):
            t.item()
            t.launch(20)
        if communicate:
            t.all_reduce(communicate)
        # The host waits until the device has no work left, so that the next step begins with an
        # idle device.
        if t.idle_from > t.now:
            t.now = t.idle_from
    t.ranges[-1][2] = t.now
    return t


def train_ranks(waits, **how):
    """Returns the ranks of one training; each has its own wait for every batch, in us. All steps take
    equally long: a rank that waits less for data waits longer for the others."""
    return [train(wait=wait, communicate=200 + max(waits) - wait, rank=rank, device=rank,
                  main=1000 + 10 * rank, worker=1001 + 10 * rank, **how)
            for rank, wait in enumerate(waits)]


def main():
    """FOLDER [--ranks N]: writes an example into a folder: the trace and the logs of a training that
    waits for batches, and in report.sqlite what nsys would export. With --ranks, writes a trace and
    logs for each of N ranks; only the last rank waits for batches."""
    folder = sys.argv[1]
    if "--ranks" in sys.argv:
        waits = [100] * (int(sys.argv[sys.argv.index("--ranks") + 1]) - 1) + [2500]
        for training in train_ranks(waits, host=200, copy=400, kernel=4000):
            training.write_logs(f"{folder}/rank{training.rank}")
            training.write_kineto(f"{folder}/rank{training.rank}/trace.json")
        return
    training = train(steps=50, wait=2500, host=200, copy=400, small_kernels=10, items=1, kernel=4000)
    training.write_logs(folder)
    training.write_kineto(f"{folder}/trace.json")
    training.write_nsys(f"{folder}/report.sqlite")


if __name__ == "__main__":
    main()
