#!/usr/bin/env python3
"""Tests the queries of tools/queries/ on 1,000 simulated ranks: every engine must give the same answers,
which must contain the simulated faults and nothing else.

queries_test.py TOOL QUERIES ENGINES WORK duckdb|spark
TOOL: lotus-tool. ENGINES: the folder that tools/engines.sh has created. The engine named is compared with sqlite3.
"""
import glob
import os
import shutil
import subprocess
import sys

import engines
import simulated_ranks as planted

SEED = 20240607


def check_planted(answers):
    """Checks that each query finds the fault that was simulated for it, and nothing else."""
    def column(name, *places):
        return [tuple(row[p] for p in places) for row in answers[name + '.sql']]

    def ranks_of(host):
        number = int(host[4:]) * planted.RANKS_OF_HOST
        return {(host, str(rank)) for rank in range(number, number + planted.RANKS_OF_HOST)}

    late_host = planted.LATE_RANK // planted.RANKS_OF_HOST
    bad_host = planted.BAD_WORKER_RANK // planted.RANKS_OF_HOST
    late = (f'node{late_host:03}', str(planted.LATE_RANK))
    slowest, ready = max((float(row[6]), (row[0], row[1])) for row in answers['waiting.sql'])[::-1]
    sure = [row for row in answers['drift.sql'] if row[6] == '1']
    found = {
        'stragglers': (set(column('stragglers', 0, 1)),
                       ranks_of(planted.SLOW_DISK_HOST) | ranks_of(planted.SLOW_CPU_HOST)),
        'slow_disk': (set(column('slow_disk', 0, 1)),
                      {(planted.SLOW_DISK_HOST, 'Load'), (planted.SLOW_DISK_HOST, 'Read')}),
        'slow_cpu': (column('slow_cpu', 0), [(planted.SLOW_CPU_HOST,)]),
        'bad_worker': (column('bad_worker', 0, 1, 4),
                       [(f'node{bad_host:03}', str(planted.BAD_WORKER_RANK),
                         f'worker{planted.BAD_WORKER}')]),
        'held_back': (column('held_back', 0, 1), [late]),
        'exposed': (column('exposed', 0, 1)[0], late),
        'waiting, for ready batches': (slowest, late),
        'drift': ([(row[0], int(row[1])) for row in sure], [(planted.DRIFTING, planted.DRIFT_HOUR)]),
        'slowest_batches': (column('slowest_batches', 0, 8)[0], (planted.SLOW_DISK_HOST, 'Read')),
        'self_time': (column('self_time', 0, 5)[0], ('Read', planted.SLOW_DISK_HOST)),
        'percentiles': (len(answers['percentiles.sql']), 5 * 1000 + 1),
    }
    assert ready > 0.5, ready
    for name, (got, wanted) in found.items():
        if got != wanted:
            print(f'FAILED: {name}: {got}, but planted was {wanted}')
    return sum(got != wanted for got, wanted in found.values())


def main():
    tool, queries, programs, work, engine = sys.argv[1:]
    os.environ['PATH'] = f'{programs}/bin:' + os.environ['PATH']
    if not shutil.which('sqlite3'):
        print('skipped: no sqlite3')
        return 0
    if engine == 'spark' and not engines.has_spark(programs):
        print('skipped: no Spark; tools/engines.sh fetches it, and it needs java')
        return 0
    work = os.path.abspath(work)
    shutil.rmtree(work, ignore_errors=True)
    print(f'seed {SEED}', flush=True)
    logs, tables, database = (os.path.join(work, name) for name in ('logs', 'tables', 'run.db'))
    planted.Job(SEED).write(logs)

    def export(form, output):
        return subprocess.run([tool, 'export', logs, '--format', form, '-o', output], check=False).returncode

    if export('sqlite', database) == 2:
        print('skipped: lotus-tool is built without SQLite')
        return 0
    files = sorted(glob.glob(os.path.abspath(queries) + '/*.sql'))
    files.append(os.path.join(work, 'every_table.sql'))
    with open(files[-1], 'w', encoding='utf-8') as file:  # no query asks for some of them
        file.write(' UNION ALL '.join(f"SELECT '{t}' AS name, count(*) AS n FROM {t}" for t in engines.TABLES)
                   + ' ORDER BY name')
    right = engines.sqlite(database, files)
    faults = check_planted(right)
    if faults:
        return 1
    if not shutil.which('duckdb'):
        print('skipped: no duckdb, which makes the Parquet; tools/engines.sh fetches it')
        return 0
    faults = export('parquet', tables)
    if engine == 'spark':
        faults += engines.compare('Spark', engines.spark(programs, work, files), right)
    else:
        faults += engines.compare('DuckDB', engines.duckdb(work, files), right)
    shutil.rmtree(work)
    return 1 if faults else 0


if __name__ == '__main__':
    sys.exit(main())
