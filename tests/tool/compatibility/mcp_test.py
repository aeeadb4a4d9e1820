"""Tests lotus-tool mcp with the official client: mcp_test.py LOTUS_TOOL ENGINES SAMPLES"""
import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile

from python_packages import package

TOOL, ENGINES, SAMPLES = sys.argv[1:4]


def raw(folder, *lines):
    """Returns the answers to lines, which may be lines that no client would send."""
    ran = subprocess.run([TOOL, "mcp", folder], input="".join(line + "\n" for line in lines),
                         capture_output=True, text=True, timeout=250)
    assert ran.returncode == 0 and ran.stderr == "", ran
    return [json.loads(line) for line in ran.stdout.splitlines()]


def check_protocol(folder):
    def request(method, params=None, number=1):
        message = {"jsonrpc": "2.0", "id": number, "method": method}
        return json.dumps(message if params is None else {**message, "params": params})

    def code(line):
        answers = raw(folder, line)
        assert len(answers) == 1, answers
        return answers[0]["error"]["code"], answers[0]["id"]

    assert code("{") == (-32700, None)
    assert code("[]") == (-32600, None)
    assert code('{"id": 5, "method": "ping"}') == (-32600, 5)
    assert code('{"jsonrpc": "2.0", "id": {}, "method": "ping"}') == (-32600, None)
    assert code(request("resources/list")) == (-32601, 1)
    assert code(request("tools/call", {"name": "rm"})) == (-32602, 1)
    assert code(request("ping", [1])) == (-32602, 1)
    assert code('"' + "x" * 1100000 + '"') == (-32600, None)
    assert code("[" * 500000) == (-32700, None)
    # Notifications and answers get no answer, and ids that are texts come back unchanged.
    assert raw(folder, '{"jsonrpc": "2.0", "method": "notifications/initialized"}', "",
               '{"jsonrpc": "2.0", "id": 1, "result": {}}', request("ping", number="a\"b")) == [
                   {"jsonrpc": "2.0", "id": 'a"b', "result": {}}]
    for asked, got in (("2024-11-05", "2024-11-05"), ("1999-01-01", "2025-11-25")):
        answer = raw(folder, request("initialize", {"protocolVersion": asked}))[0]
        assert answer["result"]["protocolVersion"] == got, answer
    gone = subprocess.run([TOOL, "mcp", folder + "/none"], input="", capture_output=True, text=True)
    assert gone.returncode == 1 and "no such directory" in gone.stderr, gone


async def check_client(mcp, folder):
    outside = folder + "-outside"
    shutil.copytree(folder + "/text", outside)
    os.symlink(outside, folder + "/link")
    async with mcp.Client(mcp.StdioServerParameters(command=TOOL, args=["mcp", folder])) as client:

        async def call(name, failed=False, **arguments):
            result = await client.call_tool(name, arguments)
            text = result.content[0].text
            assert bool(result.is_error) == failed, (name, arguments, text)
            return text

        tools = {t.name: t for t in (await client.list_tools()).tools}
        assert set(tools) >= {"stats", "diagnose", "whatif", "compare"}, tools
        for tool in tools.values():
            assert tool.annotations.read_only_hint and tool.description, tool
            assert tool.input_schema["additionalProperties"] is False, tool

        printed = subprocess.run([TOOL, "stats", folder, "--json"], check=True, capture_output=True,
                                 text=True).stdout
        assert json.loads(await call("stats", format="json")) == json.loads(printed)
        assert "Read" in await call("stats", sort="total", limit=1)
        assert "Token" not in (await call("stats", sort="total", limit=1)).split("batch times")[0].split("aggregated")[0]
        whole = json.loads(await call("stats", format="json"))["runs"][0]["ops"]["SRead"]["count"]
        # A note about what is left out of a part follows the figures.
        printed_part = await call("stats", format="json", to="batch:2")
        part = json.JSONDecoder().raw_decode(printed_part)[0]["runs"][0]["ops"]["SRead"]["count"]
        assert 0 < part < whole, (part, whole)
        assert "runs" in json.loads(await call("diagnose", format="json"))
        change = json.loads(await call("whatif", format="json", workers=4, faster={"Read": 2}))
        assert change["runs"][0]["changes"][0]["change"]["workers"] == 4, change
        await call("whatif", target=1)
        compared = json.loads(await call("compare", before="text", after="compact", format="json"))
        assert compared["rows"], compared

        # Errors are reported, and nothing outside the folder is read.
        assert "unknown argument 'dir'" in await call("stats", failed=True, dir="/")
        assert "workers" in await call("whatif", failed=True, workers="--help")
        assert "NUL" in await call("stats", failed=True, sort="a\0b")
        await call("stats", failed=True, sort="--help")
        await call("whatif", failed=True, faster={"--help": -1})
        for other in ("..", "/", "link", "none", "", "."):
            assert "subfolder" in await call("compare", failed=True, before="text", after=other), other

        assert ("threads" in tools) == ("sql" in tools), tools
        if "sql" in tools:
            listed = json.loads(await call("threads"))
            rows = [dict(zip(listed["columns"], row)) for row in listed["rows"]]
            assert [r["pid"] for r in rows] == [18041, 18041, 18049, 18049] and len({r["tid"] for r in rows}) == 4, rows
            for r in rows:
                assert (r["thread"], r["spans"], r["batches"]) == ("recorder", 24, 6), r
                assert r["longest_operation"] == "Read", r
                assert 0 < r["cpu_ns"] < r["operations_ns"] <= r["last_ns"] - r["first_ns"], r
            busy = [r["operations_ns"] for r in rows]
            assert busy == sorted(busy, reverse=True), rows
            await call("threads", failed=True, limit=1)
            counts = json.loads(await call("sql", query="SELECT name, count(*) FROM spans GROUP BY 1 ORDER BY 1"))
            assert counts["rows"] == [["Decode", 48], ["Read", 48]], counts
            many = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000) SELECT i FROM n"
            answer = json.loads(await call("sql", query=many))
            assert answer["truncated"] and len(answer["rows"]) == 1000, answer
            for wrong in ("DELETE FROM spans", "DROP TABLE spans", "ATTACH '/tmp/x' AS x", "SELECT 1; SELECT 2",
                          "PRAGMA journal_mode=WAL", "SELECT load_extension('x')", "CREATE TABLE t(x)",
                          "VACUUM INTO '/tmp/x'", "SELECT writefile('/tmp/x', 'y')", "", "nonsense"):
                await call("sql", failed=True, query=wrong)
            # If a run has changed, it must be read again.
            with open(folder + "/text/lotustrace_log_worker_pid_9", "w") as log:
                log.write("SNew,1795602930723520048,1000\n")
            counts = json.loads(await call("sql", query="SELECT count(*) FROM spans WHERE name = 'New'"))
            assert counts["rows"] == [[1]], counts


def main():
    with tempfile.TemporaryDirectory() as place:
        folder = os.path.join(os.path.realpath(place), "runs")
        shutil.copytree(SAMPLES + "/0.1", folder)
        before = sorted(os.listdir(folder))
        check_protocol(folder)
        assert sorted(os.listdir(folder)) == before
        asyncio.run(check_client(package(ENGINES, "mcp"), folder))
    return 0


sys.exit(main())
