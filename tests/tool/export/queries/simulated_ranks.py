"""Writes the logs of a simulated training job of many ranks, with known faults.

All ranks step together: a step begins when the last rank has received its batch. Each rank has
workers that build batches in turn. The times of operations on and off the CPU are random, and depend
a little on the rank.
"""
import os
import random

MS = 1_000_000
BEGIN_NS = 1_700_000_000_000_000_000
HOUR_NS = 3600 * 1000 * MS
RANKS_OF_HOST = 8

# For each operation, its mean time on the CPU and off the CPU in ms. Load calls the first two.
OPERATIONS = {'Read': (1, 9), 'Decode "jpeg", fast': (8, 0), 'Crop': (4, 0), 'Collate': (2, 0)}
SLOW_DISK_HOST, SLOW_CPU_HOST = 'node017', 'node042'
BUSY_HOST = 'node005'  # one operation has more work there; the CPU is not slow
BAD_WORKER_RANK, BAD_WORKER = 723, 2
LATE_RANK = 900  # its consumer takes long to fetch batches that are ready
DRIFTING, DRIFT_HOUR = 'Crop', 2


class Job:
    """A simulated job; write(folder) creates a folder of logs for each rank."""

    def __init__(self, seed, ranks=1000, workers=4, epochs=3, batches=8, items=2, faults=True):
        self.seed, self.ranks, self.workers, self.faults = seed, ranks, workers, faults
        self.epochs, self.batches, self.items = epochs, batches, items

    def host(self, rank):
        return f'node{rank // RANKS_OF_HOST:03}'

    def write(self, folder):
        random_of = [random.Random(f'{self.seed} {rank}') for rank in range(self.ranks)]
        ranks = [_Rank(self, rank, random_of[rank]) for rank in range(self.ranks)]
        for epoch in range(self.epochs):
            begin = BEGIN_NS + epoch * HOUR_NS
            for rank in ranks:
                rank.make_epoch(epoch, begin)
            step_end = begin
            for batch in range(self.batches):
                taken = [rank.take(batch, step_end + int(rank.random.uniform(0, 0.2) * MS))
                         for rank in ranks]
                step_end = max(taken) + 30 * MS
        for rank in ranks:
            rank.write(os.path.join(folder, f'rank{rank.number:04}'))
        _write_unknown(os.path.join(folder, 'unknown', 'val'))


def _write_unknown(folder):
    """Writes a loader with unknown host, rank and process, whose batch 1 arrives out of order."""
    os.makedirs(folder)
    lines = {'main': [f'SBatchWait_1,{BEGIN_NS + 5 * MS},1000', f'SBatchWait_0,{BEGIN_NS},{9 * MS}',
                      f'SBatchConsumed_0,{BEGIN_NS + 9 * MS},1000',
                      f'SBatchConsumed_1,{BEGIN_NS + 12 * MS},1000'],
             'worker': [f'SBatchPreprocessed_1,{BEGIN_NS},{4 * MS}', f'SLoad,{BEGIN_NS},{4 * MS}',
                        f'SBatchPreprocessed_0,{BEGIN_NS + 4 * MS},{4 * MS}']}
    for kind, text in lines.items():
        with open(os.path.join(folder, f'lotustrace_log_{kind}_pid_5'), 'w', encoding='utf-8') as file:
            file.writelines(line + '\n' for line in text)
    with open(os.path.join(folder, '.lotus_aggregated_lotustrace_log_5'), 'w', encoding='utf-8') as file:
        file.write('\nbegin,5.0,4294967296\nSToken,5,3,60,50,10:1 25:2\nend,5.0,1\n')


class _Rank:
    def __init__(self, job, number, generator):
        self.job, self.number, self.random = job, number, generator
        self.pid = 10_000 + 100 * (number % RANKS_OF_HOST)
        self.speed = {name: generator.lognormvariate(0, 0.01) for name in OPERATIONS}
        self.consumer = []
        self.worker = [[] for _ in range(job.workers)]
        self.beside = [[] for _ in range(job.workers)]

    def times(self, name, worker, hour):
        """Returns the times of a call: ns on the CPU and ns off the CPU."""
        cpu, off = (mean * MS * self.random.lognormvariate(0, 0.15) for mean in OPERATIONS[name])
        cpu *= self.speed[name]
        off *= self.speed[name]
        if off and self.random.random() < 0.01:
            off *= 5
        host = self.job.host(self.number)
        if self.job.faults:
            if host == SLOW_DISK_HOST:
                off *= 3
            if host == SLOW_CPU_HOST:
                cpu *= 1.4
            if host == BUSY_HOST and name == 'Collate':
                cpu *= 1.5
            if self.number == BAD_WORKER_RANK and worker == BAD_WORKER:
                cpu, off = 1.8 * cpu, 1.8 * off
            if name == DRIFTING and hour == DRIFT_HOUR:
                cpu *= 1.15
        return int(cpu), int(off)

    def operation(self, worker, name, start, duration):
        escaped = name.replace(',', '%2C').replace('"', '%22')
        self.worker[worker].append(f'S{escaped},{start},{duration}')

    def leaf(self, worker, name, start, hour):
        cpu, off = self.times(name, worker, hour)
        if off:
            self.beside[worker].append(f'off_cpu,,{start + off},{off},0')
        self.operation(worker, name, start, off + cpu)
        return start + off + cpu

    def make_epoch(self, epoch, begin):
        self.ready = []
        free = [begin] * self.job.workers
        for batch in range(self.job.batches):
            worker = batch % self.job.workers
            # Only the work itself limits the pipeline, because a whole epoch is prefetched.
            start = now = free[worker]
            for _ in range(self.job.items):
                loaded = now
                now = self.leaf(worker, 'Read', now, epoch)
                now = self.leaf(worker, 'Decode "jpeg", fast', now, epoch)
                self.operation(worker, 'Load', loaded, now - loaded)
                now = self.leaf(worker, 'Crop', now, epoch)
            now = self.leaf(worker, 'Collate', now, epoch)
            self.worker[worker].append(f'SBatchPreprocessed_{batch},{start},{now - start}')
            free[worker] = now + 10_000
            self.ready.append(now)

    def take(self, batch, free):
        """Waits from the time `free` on; returns the time when the batch is received."""
        late = 25 * MS if self.job.faults and self.number == LATE_RANK else 0
        there = max(free, self.ready[batch]) + late + int(self.random.uniform(0.05, 0.1) * MS)
        self.consumer.append(f'SBatchWait_{batch},{free},{there - free}')
        self.consumer.append(f'SBatchConsumed_{batch},{there},1000')
        return there

    def write(self, folder):
        os.makedirs(folder)
        tids = [self.pid + 1 + worker for worker in range(self.job.workers)]
        info = ['lotus 0.1.0', f'host S{self.job.host(self.number)}', f'pid {self.pid}', 'parent 0',
                f'rank {self.number}', 'cpu switches', 'cpus 8 8', f'thread {self.pid} Smain']
        info += [f'thread {tid} Sworker{worker}' for worker, tid in enumerate(tids)]
        files = {f'.lotus_info_{self.pid}_a': info, f'lotustrace_log_main_pid_{self.pid}': self.consumer}
        for worker, tid in enumerate(tids):
            files[f'lotustrace_log_worker_pid_{tid}'] = self.worker[worker]
            files[f'.lotus_beside_lotustrace_log_pid_{tid}'] = self.beside[worker]
        for name, lines in files.items():
            with open(os.path.join(folder, name), 'w', encoding='utf-8') as file:
                file.writelines(line + '\n' for line in lines)
