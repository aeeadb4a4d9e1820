"""Tests that speedscope opens the output of viz, in Chromium: speedscope_test.py LOTUS_TOOL ENGINES [FOLDER for pictures]

Its sandwich view shows every frame of a thread with its total time and self time. These must be the recorded times.
"""
import functools
import http.server
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading

tool, engines = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2])
chromium = shutil.which("chromium")
speedscope = engines / "node_modules" / "speedscope" / "dist" / "release"
if not chromium or not speedscope.is_dir() or not list(engines.glob("lib/*/site-packages/playwright")):
    print("skipped: needs speedscope and Playwright (tools/engines.sh), and chromium")
    sys.exit(0)
if pathlib.Path(sys.prefix).resolve() != engines.resolve():  # Playwright is there
    os.execv(engines / "bin" / "python3", [str(engines / "bin" / "python3"), "-B", *sys.argv])

from playwright.sync_api import sync_playwright  # noqa: E402

MS = 10**6
# For each thread and operation: total time and self time in ms of 100 samples.
WANTED = {
    "worker 7": {"Loader": (900, 100), "Decode": (600, 600), "Resize": (200, 200)},
    "worker 8": {"Loader": (500, 100), "Decode": (400, 400)},
}


class Silent(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


def write_run(run):
    os.mkdir(run)
    for pid, resize in ((7, 2), (8, 0)):
        lines = []
        for i in range(100):
            at, decode = 10**18 + i * 20 * MS, 6 if resize else 4
            lines.append(f"SDecode,{at},{decode * MS}")
            if resize:
                lines.append(f"SResize,{at + decode * MS},{resize * MS}")
            lines.append(f"SLoader,{at},{(decode + resize + 1) * MS}")
            if i % 10 == 9:
                begin = 10**18 + (i - 9) * 20 * MS
                lines.append(f"SBatchPreprocessed_{i // 10 * 2 + pid - 7},{begin},{190 * MS}")
        path = os.path.join(run, f"lotustrace_log_worker_pid_{pid}")
        pathlib.Path(path).write_text("\n".join(lines) + "\n", encoding="ascii")


def in_ms(text):
    """Converts a text such as "900.00ms (23%)" to ms."""
    number = text.split("(")[0].strip()
    for unit, scale in (("ns", 1e-6), ("µs", 1e-3), ("ms", 1), ("s", 1e3)):
        if number.endswith(unit):
            return float(number[: -len(unit)]) * scale
    raise ValueError(text)


def frames(page):
    """Returns the contents of the table: total time and self time in ms, by name."""
    rows = page.locator("table tr").evaluate_all(
        "rows => rows.map(r => [...r.querySelectorAll('td')].map(c => c.innerText.trim()))")
    return {row[2]: (in_ms(row[0]), in_ms(row[1])) for row in rows if len(row) == 3 and "%" in row[0]}


def check(thread, page):
    title = page.locator("body").inner_text().split("(")
    if not any(thread in part for part in title):
        sys.exit(f"speedscope shows no {thread}: {title[:3]}")
    for _ in range(100):  # until it has drawn them
        seen = frames(page)
        operations = {name: times for name, times in seen.items() if not name.startswith("BatchPreprocessed")}
        if operations == WANTED[thread]:
            break
        page.wait_for_timeout(100)
    else:
        sys.exit(f"{thread}: speedscope shows {seen}, where {WANTED[thread]} was recorded")
    batches = [times for name, times in seen.items() if name.startswith("BatchPreprocessed")]
    if round(sum(total for total, _ in batches)) != 1900:
        sys.exit(f"{thread}: batches of {batches}, where 1900 ms was recorded")
    print(f"{thread}: {len(seen)} frames")


def main():
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        site = os.path.join(folder, "site")
        shutil.copytree(speedscope, site)
        write_run(os.path.join(folder, "run"))
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Silent, directory=site))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        browser = playwright.chromium.launch(  # speedscope draws by WebGL
            executable_path=chromium, args=["--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"])
        subprocess.run([tool, "viz", os.path.join(folder, "run"), "-o", os.path.join(site, "run.json")], check=True)
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.goto(f"http://127.0.0.1:{server.server_address[1]}/index.html#profileURL=/run.json")
        page.get_by_text("Sandwich").click(timeout=30000)
        for number, thread in enumerate(WANTED, 1):
            page.get_by_text(f"({number}/{len(WANTED)})").filter(visible=True).wait_for(timeout=30000)
            if len(sys.argv) > 3:
                page.screenshot(path=os.path.join(sys.argv[3], f"speedscope_{number}.png"))
            check(thread, page)
            page.keyboard.press("n")  # to the next thread
        browser.close()
        server.shutdown()


main()
