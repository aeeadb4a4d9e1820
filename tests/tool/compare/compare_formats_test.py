"""Tests compare --format markdown: it must show names unchanged.

compare_formats_test.py LOTUS_TOOL ENGINES SAMPLES
"""
import html
import os
import re
import subprocess
import sys
import tempfile
import urllib.parse

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "compatibility"))
from python_packages import package  # noqa: E402

TOOL, ENGINES, SAMPLES = sys.argv[1:4]
MS = 10**6
HOSTILE = ["a|b", "*bold*", "<script>x</script>", "[x](http://y)", "`code`", "@someone", "#12", "www.x.y",
           "https://x.y", "&amp;", "a_b_c", "~~x~~", ":smile:", "![](p)", "# h", "\\|", "$x$", "<!-- c"]


def write_run(folder, factor):
    os.makedirs(folder)
    begin = 1_700_000_000 * 10**9
    with open(folder + "/lotustrace_log_worker_pid_2", "w") as worker, \
            open(folder + "/lotustrace_log_main_pid_1", "w") as main:
        for i in range(40):
            at = begin + i * 100 * MS
            now = at
            for name in HOSTILE:
                length = int((1 + 0.01 * (i % 7)) * factor * MS)
                worker.write(f"S{urllib.parse.quote(name, safe=' $&()*+/:;<=>?@[]_`!#|~.')},{now},{length}\n")
                now += length
            worker.write(f"SBatchPreprocessed_{i},{at},{now - at}\n")
            main.write(f"SBatchWait_{i},{at},{now - at + 100}\nSBatchConsumed_{i},{now + 200},1000\n")


def compare(*arguments, status=0):
    ran = subprocess.run([TOOL, "compare", *arguments], capture_output=True, text=True)
    assert ran.returncode == status, ran
    return ran.stdout


def check_markdown(before, after):
    text = compare(before, after, "--format", "markdown", "--fail-above", "5%", status=3)
    assert text.startswith("### ") and "SLOWER" in text, text
    markdown = package(ENGINES, "markdown_it").MarkdownIt("commonmark", {"html": True}).enable("table")
    page = markdown.render(text)
    rows = [[html.unescape(re.sub("<!-- -->", "", cell)) for cell in re.findall("<t[hd][^>]*>(.*?)</t[hd]>", row)]
            for row in re.findall("<tr>(.*?)</tr>", page, re.S)]
    assert rows[0][:5] == ["mean time of", "before", "after", "change", "95 % interval"], rows[0]
    assert all(len(row) == len(rows[0]) for row in rows), rows
    names = [row[0] for row in rows[1:]]
    for name in HOSTILE:
        assert name in names, (name, names)
    # Nothing else may become markup, and no text may be a mention, an issue or a link on GitHub.
    tags = set(re.findall("<(/?[a-z0-9]+)", page))
    assert tags <= {"h3", "/h3", "p", "/p", "table", "/table", "thead", "/thead", "tbody", "/tbody", "tr", "/tr",
                    "th", "/th", "td", "/td", "sub", "/sub", "ul", "/ul", "li", "/li"}, tags
    found = re.search(r"@\w|(?<!&)#\d|://|www\.", text)
    assert not found, found


def main():
    with tempfile.TemporaryDirectory() as place:
        before, after = place + "/before", place + "/after"
        write_run(before, 1)
        write_run(after, 1.5)
        check_markdown(before, after)
        # Compares runs with stages, and several runs, because their tables are different.
        text = compare("--a", before, before, "--b", SAMPLES + "/0.1/text", SAMPLES + "/0.1/compact",
                       "--format", "markdown")
        assert "1 run before, 2 runs after" in text and "| stage |" in text, text
    return 0


sys.exit(main())
