"""Traces as profilers of several vendors and years write them, with their faults.

A trace is a list of events. All times are whole microseconds, so that what is right follows from
how a trace is made.
"""

import json

ORIGIN = 1_690_000_000_000_000  # us since 1970
LOADER = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
TRAINER = (50, 50)  # the process and the thread that trains


class Recording:
    """What one host thread and the streams of one device do."""

    def __init__(self):
        self.at = ORIGIN  # the time of the host thread
        self.events = []
        self.number = 0  # of the last call

    def add(self, category, name, begin, us, where=TRAINER, **arguments):
        event = {"ph": "X", "cat": category, "name": name, "pid": where[0], "tid": where[1],
                 "ts": begin, "dur": us, "args": arguments}
        self.events.append(event)
        return event

    def does(self, category, name, us, **arguments):
        """The host thread is busy with something that is recorded."""
        self.at += us
        return self.add(category, name, self.at - us, us, **arguments)

    def calls(self, name, us, category="cuda_runtime", **arguments):
        self.number += 1
        return self.does(category, name, us, correlation=self.number, **arguments)

    def runs(self, name, us, begin=None, category="kernel", stream=3, **arguments):
        """The device does what the last call ordered, and the host waits for it."""
        begin = self.at if begin is None else begin
        self.at = max(self.at, begin + us)
        return self.add(category, name, begin, us, (0, stream), device=0, stream=stream,
                        correlation=self.number, **arguments)

    def kernel(self, us, call=20, name="conv", **how):
        self.calls("cudaLaunchKernel", call)
        return self.runs(name, us, **how)

    def text(self, head=""):
        return '{%s"traceEvents":[\n%s\n]}\n' % (head, ",\n".join(map(json.dumps, self.events)))


def training(steps=10, wait=6000, kernel=4000, call=20, category="user_annotation", numbered=True,
             loader=LOADER, begin=None, work=None):
    """In each step the host waits for a batch and launches a kernel, which runs alone."""
    r = begin or Recording()
    for n in range(steps):
        start = r.at
        r.does(category, loader, wait)
        if work:
            work(r)
        else:
            r.kernel(kernel, call)
        if numbered:
            r.add(category, f"ProfilerStep#{n}", start, r.at - start)
    return r


def item_loop(rounds=40, pause=0, copies=True, kernel=100):
    """Each round: a kernel, and the host reads its result (.item()) or only waits for it."""
    r = Recording()
    for _ in range(rounds):
        r.calls("cudaLaunchKernel", 15)
        end = r.at + kernel
        r.add("kernel", "loss", r.at, kernel, (0, 3), device=0, stream=3, correlation=r.number)
        if copies:
            r.calls("cudaMemcpyAsync", 5)
            r.add("gpu_memcpy", "Memcpy DtoH (Device -> Pageable)", end + 4, 2, (0, 3), device=0,
                  stream=3, correlation=r.number, bytes=8)
            end += 6
        r.calls("cudaStreamSynchronize", end + 10 - r.at)
        r.at += pause
    return r


def queued(kernels=50, us=20, gap=3):
    """All kernels are launched before the first one begins."""
    r = Recording()
    for _ in range(kernels):
        r.calls("cudaLaunchKernel", 4)
    begin = r.at + 40
    for n in range(kernels):
        r.number = n + 1
        r.runs("many", us, begin + n * (us + gap))
    return r


def copying(name, category="kernel", call="hipMemcpyWithStream", us=20_000, compute=5000, **args):
    def work(r):
        r.calls(call, 10)
        r.runs(name, us, category=category, **args)
        r.calls("hipLaunchKernel", 10)
        r.runs("conv", compute)
    return training(10, wait=40, numbered=False, work=work)


def events_as_text(r, keys, which=lambda event: True):
    for event in filter(which, r.events):
        for of in (event, event["args"]):
            of.update({key: str(of[key]) for key in keys if key in of})
    return r
