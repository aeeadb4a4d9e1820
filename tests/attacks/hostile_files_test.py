#!/usr/bin/env python3
"""Tests hostile databases and requests: hostile_files_test.py TOOL RUN."""

import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import unittest

TOOL, RUN = sys.argv[1:3]


class Case(unittest.TestCase):
    def test_view_without_end(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "trace.sqlite")
            database = sqlite3.connect(path)
            database.executescript("""
                CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);
                CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS
                  WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT 1 FROM n WHERE i > 0)
                  SELECT i AS start, i AS end, i AS deviceId, i AS streamId, i AS correlationId,
                         i AS shortName, i AS demangledName, i AS globalPid FROM n WHERE i < 0;""")
            database.close()
            done = subprocess.run([TOOL, "accelerator", path], capture_output=True, text=True, timeout=250)
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn("not readable as a database of nsys", done.stderr)

    def answers(self, *requests):
        text = "".join((r if isinstance(r, str) else json.dumps(r)) + "\n" for r in requests)
        done = subprocess.run([TOOL, "mcp", RUN], input=text, capture_output=True, text=True, timeout=250)
        self.assertEqual(done.returncode, 0, done.stderr)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def test_brackets(self):
        begin = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
        deep = '{"jsonrpc":"2.0","id":2,"method":"ping","params":{"a":' + "[" * 400000 + "]" * 400000 + "}}"
        answers = self.answers(begin, deep, begin)
        self.assertEqual([("error" in a) for a in answers], [False, True, False])

    def sql(self, query):
        return {"jsonrpc": "2.0", "id": 1, "method": "tools/call",
                "params": {"name": "sql", "arguments": {"query": query}}}

    def test_queries(self):
        endless = ("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) "
                   "SELECT i, hex(randomblob(2000)) AS h FROM n")
        answers = self.answers(
            self.sql("SELECT fts3_tokenizer('simple')"),
            self.sql(f"SELECT h FROM ({endless}) ORDER BY h LIMIT 1"),
            self.sql("SELECT count(*) FROM spans"))
        failed = [a.get("result", {}).get("isError", "error" in a) for a in answers]
        self.assertEqual(failed, [True, True, False], answers)


unittest.main(argv=sys.argv[:1])
