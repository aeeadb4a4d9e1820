"""Runs SQL files on sqlite3, DuckDB and Spark. Each function returns {file name: rows}; cells are texts or None."""
import contextlib
import csv
import glob
import io
import os
import re
import shutil
import signal
import socket
import subprocess
import time

TABLES = 'runs', 'spans', 'batches', 'stages', 'counters', 'aggregated', 'blocked_on'
VIEWS = os.path.abspath(os.path.join(os.path.dirname(__file__), '../../../../tools/queries/tables'))


def read(path):
    with open(path, encoding='utf-8') as file:
        return file.read()


def name_of(query):
    return os.path.basename(query)


def sqlite(database, queries, limit=None):
    return {name_of(q): _rows(output(['sqlite3', '-csv', '-nullvalue', 'NULL', '-readonly', database],
                                     read(q), limit=limit)) for q in queries}


def duckdb(folder, queries, limit=None):
    """Runs queries with DuckDB on the Parquet files in the subfolder tables/."""
    command = ['duckdb', '-init', f'{VIEWS}/duckdb.sql', '-csv', '-noheader', '-nullvalue', 'NULL', '-f']
    return {name_of(q): _rows(output([*command, q], cwd=folder, limit=limit)) for q in queries}


def spark(programs, folder, queries, memory='1g', partitions=2, limit=None, on_cluster=False):
    """Runs queries with Spark: in one process with two threads or, because five processes take three times as
    long to start on a small machine, only if asked on a cluster of a master and two workers, which is stopped
    at the end. All queries run in one session, because every start takes seconds.
    """
    together = os.path.join(folder, 'queries.sql')
    with open(together, 'w', encoding='utf-8') as file:
        for q in queries:
            file.write(f"SELECT '== {name_of(q)}';\n{read(q)};\n")
    with cluster(programs, folder, memory) if on_cluster else contextlib.nullcontext('local[2]') as master:
        # Spark uses few partitions, because there is little data.
        said = output([f'{programs}/bin/spark-sql', '--master', master, '--driver-memory', memory,
                       '--executor-memory', memory, '--conf', f'spark.sql.shuffle.partitions={partitions}',
                       '--hivevar', f'tables={folder}/tables', '-i', f'{VIEWS}/spark.sql', '-f', together],
                      cwd=folder, limit=limit)
    parts = re.split(r'^== (.*)\n', said, flags=re.MULTILINE)
    return {name: [[None if cell == 'NULL' else cell for cell in line.split('\t')]
                   for line in text.splitlines()]
            for name, text in zip(parts[1::2], parts[2::2])}


def _same(one, other):
    """Compares two cells; numbers by value, because one engine prints 5.0 where another prints 5."""
    if one is None or other is None or one == other:
        return one == other
    try:
        one, other = float(one), float(other)
    except ValueError:
        return False
    return abs(one - other) <= 1e-12 * max(abs(one), abs(other))


def compare(engine, answers, right):
    """Prints where answers differ from those of sqlite3; returns the number of differences."""
    faults = 0
    for name, rows in right.items():
        got = answers.get(name)
        wrong = ['no answer'] if got is None else [
            f'row {i}: {a} but sqlite3 says {b}' for i, (a, b) in enumerate(zip(got, rows))
            if len(a) != len(b) or not all(map(_same, a, b))]
        if got is not None and len(got) != len(rows):
            wrong.append(f'{len(got)} rows but sqlite3 has {len(rows)}')
        for what in wrong[:3]:
            print(f'FAILED: {name} on {engine}: {what}')
        faults += bool(wrong)
    print(f'{engine}: {len(right) - faults} of {len(right)} answers are those of sqlite3')
    return faults


def has_spark(programs):
    return bool(shutil.which('java')) and os.path.exists(f'{programs}/bin/spark-sql')


@contextlib.contextmanager
def cluster(programs, work, memory):
    """Runs a Spark cluster; its value is the address of the master."""
    home, = glob.glob(f'{programs}/lib/python3*/site-packages/pyspark')
    port, page = _free_port(), _free_port()
    master = f'spark://127.0.0.1:{port}'
    running = []
    os.environ['SPARK_LOCAL_IP'] = '127.0.0.1'

    def run(role, *arguments):
        with open(os.path.join(work, f'{role}{len(running)}.log'), 'w', encoding='utf-8') as log:
            running.append(subprocess.Popen([f'{home}/bin/spark-class', f'org.apache.spark.deploy.{role}',
                                             *arguments], stdout=log, stderr=log))
        return log.name

    try:
        run('master.Master', '--host', '127.0.0.1', '--port', str(port), '--webui-port', str(page))
        logs = [run('worker.Worker', '--cores', '1', '--memory', memory, '--work-dir',
                    os.path.join(work, f'worker{i}'), '--webui-port', '0', master) for i in range(2)]
        _wait_for(logs, 'Successfully registered with master', running)
        yield master
    finally:
        for process in running:
            process.terminate()
        for process in running:
            process.wait()


def _wait_for(logs, words, running):
    until = time.monotonic() + 120
    while not all(words in read(log) for log in logs):
        if time.monotonic() > until or any(p.poll() is not None for p in running):
            raise RuntimeError('the cluster does not start:\n' + '\n'.join(read(log) for log in logs))
        time.sleep(0.2)


def _free_port():
    with socket.socket() as any_port:
        any_port.bind(('127.0.0.1', 0))
        return any_port.getsockname()[1]


def output(command, text='', cwd=None, limit=None):
    """Returns the output of a command. After `limit` seconds, ends the command and all processes that it started."""
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=cwd,
                          stderr=subprocess.PIPE, encoding='utf-8', start_new_session=True) as running:
        try:
            said, errors = running.communicate(text, limit)
        except BaseException:
            os.killpg(running.pid, signal.SIGKILL)
            raise
    if running.returncode != 0:
        raise RuntimeError(f'{command[0]} ended with {running.returncode}:\n{errors[-4000:]}')
    return said


def _rows(text):
    return [[None if cell == 'NULL' else cell for cell in row] for row in csv.reader(io.StringIO(text))]
