#!/usr/bin/env python3
"""Prints what the queries of tools/queries/ cost with many spans; there is no limit that must be kept.

bench/queries_scale.py TOOL WORK [--ranks 64] [--spans 1000000] [--engines sqlite,duckdb,spark]
                       [--times 10] [--limit 600]
Simulates one rank with --spans spans and exports it with TOOL (lotus-tool). The other ranks are copies
whose times differ by up to 10 %. DuckDB runs once more with --times as many ranks, unless that is 1.
A query that takes longer than --limit seconds is ended. Memory is the peak of all processes of an engine
together. By default, takes most of an hour and 30 GB below WORK, which it deletes at the end.
"""
import argparse
import glob
import os
import shutil
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, '../tests/tool/export/queries'))
import engines  # noqa: E402
import simulated_ranks  # noqa: E402

QUERIES = sorted(glob.glob(os.path.join(HERE, '../tools/queries/*.sql')))
PROGRAMS = os.path.abspath(os.path.join(HERE, '../build-engines'))
HOURS = 12


class Measured:
    """Measures seconds, and the peak memory of all child processes in MB."""

    def __enter__(self):
        self.peak_mb, self.running, self.begin = 0, True, time.monotonic()
        self.sampler = threading.Thread(target=self.sample)
        self.sampler.start()
        return self

    def sample(self):
        while self.running:
            self.peak_mb = max(self.peak_mb, _resident_mb(os.getpid()))
            time.sleep(0.1)

    def __exit__(self, *_):
        self.seconds = time.monotonic() - self.begin
        self.running = False
        self.sampler.join()

    def __str__(self):
        return f'{self.seconds:7.1f} s {self.peak_mb:7.0f} MB'


def _resident_mb(parent):
    total = 0
    for task in glob.glob(f'/proc/{parent}/task/*/children'):
        try:
            children = engines.read(task).split()
        except OSError:
            continue
        for child in children:
            try:
                pages = int(engines.read(f'/proc/{child}/statm').split()[1])
            except (OSError, IndexError):
                continue
            total += pages * os.sysconf('SC_PAGE_SIZE') / 1e6 + _resident_mb(child)
    return total


def scaled(column, rank):
    """Returns SQL that varies a column by up to 10 %; with integers, so that all engines agree."""
    by = f'{column} * (4500 + start_ns % 99991 * (7 + {rank}) % 1000)'
    return f'CAST(({by} - {by} % 5000) / 5000 AS BIGINT) AS {column}'


# Tables that get rows for every rank, with their columns. All other tables have the rows of one
# rank.
OF_EACH_RANK = {
    'spans': 'run host rank pid tid thread loader name batch epoch start_ns dur_ns self_ns cpu_ns depth',
    'batches': 'run host rank pid loader batch epoch queued_ns preprocess_ns wait_ns delay_ns '
               'handed_over_ns step_ns',
    'stages': 'run host rank pid tid loader stage number is_item batch epoch start_ns dur_ns',
}


def of_many_ranks(table, ranks):
    """Returns SQL that repeats the rows of one rank for each rank in the column r of `ranks`."""
    made = {'run': 'r AS run', 'host': "'node' || CAST((r - r % 8) / 8 AS INTEGER) AS host",
            'rank': 'r AS rank'}
    source = f'one.{table}'
    if table == 'batches':
        source = '(SELECT *, handed_over_ns AS start_ns FROM one.batches)'
    for name in ('dur_ns', 'self_ns', 'cpu_ns', 'preprocess_ns', 'step_ns'):
        made[name] = scaled(name, 'r')
    chosen = ', '.join(made.get(c, c) for c in OF_EACH_RANK[table].split())
    return f'SELECT {chosen} FROM {ranks} CROSS JOIN {source} AS rows_of_one'


def make_sqlite(one, database, ranks):
    sql = f"ATTACH '{one}' AS one; PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;\n"
    series = (f'(WITH RECURSIVE c(r) AS (SELECT 0 UNION ALL SELECT r + 1 FROM c WHERE r < {ranks - 1}) '
              'SELECT r FROM c)')
    for t in engines.TABLES:
        sql += f'CREATE TABLE {t} AS SELECT * FROM one.{t} WHERE false;\n'
        many = of_many_ranks(t, series) if t in OF_EACH_RANK else f'SELECT * FROM one.{t}'
        sql += f'INSERT INTO {t} {many};\n'
    engines.output(['sqlite3', database], sql)


def make_parquet(one, folder, ranks):
    os.makedirs(f'{folder}/tables')
    sql = f"SET preserve_insertion_order = false; CREATE SCHEMA one;\n"
    for t in engines.TABLES:
        sql += f"CREATE VIEW one.{t} AS FROM '{one}/{t}.parquet';\n"
        many = (of_many_ranks(t, f'(SELECT range AS r FROM range({ranks}))') if t in OF_EACH_RANK
                else f'SELECT * FROM one.{t}')
        sql += f"COPY ({many}) TO '{folder}/tables/{t}.parquet' (FORMAT parquet, COMPRESSION zstd);\n"
    engines.output(['duckdb', '-init', '/dev/null', ':memory:'], sql)


def size_gb(path):
    files = [path] if os.path.isfile(path) else glob.glob(path + '/**/*.parquet', recursive=True)
    return sum(os.path.getsize(file) for file in files) / 1e9


def say(engine, what, measured):
    print(f'{engine:8} {what:20} {measured}', flush=True)


def ask_each(engine, ask, limit):
    """Runs and measures each query alone, and an empty query for comparison."""
    total, worst_mb = 0, 0
    answers = {}
    floor = os.path.abspath('nothing.sql')
    with open(floor, 'w', encoding='utf-8') as file:
        file.write('SELECT 1;\n')
    for query in [floor, *QUERIES]:
        failed = ''
        with Measured() as measured:
            try:
                answers.update(ask([query]))
            except subprocess.TimeoutExpired:
                failed = f' ended at the limit of {limit} s'
            except RuntimeError as error:
                failed = ' failed: ' + ' '.join(str(error).split())[:200]
        say(engine, engines.name_of(query), str(measured) + failed)
        if query != floor:
            total, worst_mb = total + measured.seconds, max(worst_mb, measured.peak_mb)
    say(engine, 'all', f'{total:7.1f} s {worst_mb:7.0f} MB')
    answers.pop(engines.name_of(floor), None)
    return answers


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('tool')
    parser.add_argument('work')
    parser.add_argument('--ranks', type=int, default=64)
    parser.add_argument('--spans', type=int, default=1_000_000)
    parser.add_argument('--engines', default='sqlite,duckdb,spark')
    parser.add_argument('--times', type=int, default=10)
    parser.add_argument('--limit', type=int, default=600)
    options = parser.parse_args()
    asked = options.engines.split(',')
    os.environ['PATH'] = f'{PROGRAMS}/bin:' + os.environ['PATH']
    if not shutil.which('duckdb') or not shutil.which('sqlite3'):
        print('skipped: no duckdb, which tools/engines.sh fetches, or no sqlite3')
        return
    work = os.path.abspath(os.path.join(options.work, 'queries_scale'))
    options.tool = os.path.abspath(options.tool)
    shutil.rmtree(work, ignore_errors=True)
    os.makedirs(work)
    os.environ['SQLITE_TMPDIR'] = work
    os.chdir(work)  # DuckDB writes data that does not fit into memory to the current folder
    try:
        measure(options, asked, work)
    finally:
        shutil.rmtree(work)


def measure(options, asked, work):
    logs, one = os.path.join(work, 'logs'), os.path.join(work, 'one')
    batches = max(1, options.spans // 9 // HOURS)  # the simulated loader records nine spans per batch
    simulated_ranks.Job(1, ranks=1, epochs=HOURS, batches=batches, faults=False).write(logs)
    for form, output in (('parquet', one), ('sqlite', one + '.db')):
        with Measured() as measured:
            subprocess.run([options.tool, 'export', logs, '--format', form, '-o', output], check=True)
        say('export', form, f'{measured}, {size_gb(output):.2f} GB: one rank')
    shutil.rmtree(logs)
    many, database = os.path.join(work, 'many'), os.path.join(work, 'many.db')
    with Measured() as measured:
        make_parquet(one, many, options.ranks)
    say('DuckDB', 'makes', f'{measured}, {size_gb(many):.2f} GB: {options.ranks} ranks')
    answers = {}
    if 'duckdb' in asked:
        answers = ask_each('DuckDB', lambda q: engines.duckdb(many, q, options.limit), options.limit)
    if 'sqlite' in asked:
        with Measured() as measured:
            make_sqlite(one + '.db', database, options.ranks)
        say('sqlite3', 'makes', f'{measured}, {size_gb(database):.2f} GB: {options.ranks} ranks')
        right = ask_each('sqlite3', lambda q: engines.sqlite(database, q, options.limit), options.limit)
        if answers:
            engines.compare('DuckDB', answers, right)
        os.remove(database)
    if 'spark' in asked and engines.has_spark(PROGRAMS):
        ask_each('Spark', lambda q: engines.spark(PROGRAMS, many, q, '6g', 32, options.limit, on_cluster=True),
                 options.limit)
    if 'duckdb' in asked and options.times > 1:
        shutil.rmtree(many)
        ranks = options.ranks * options.times
        with Measured() as measured:
            make_parquet(one, many, ranks)
        say('DuckDB', 'makes', f'{measured}, {size_gb(many):.2f} GB: {ranks} ranks')
        ask_each('DuckDB', lambda q: engines.duckdb(many, q, options.limit), options.limit)


if __name__ == '__main__':
    main()
