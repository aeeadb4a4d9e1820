"""Tests that snakeviz draws an exported profile, in Chromium: snakeviz_test.py LOTUS_TOOL ENGINES [FOLDER for the picture]

The picture must have a slice for each operation, with callers inside.
"""
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time

tool, engines = sys.argv[1], pathlib.Path(sys.argv[2])
snakeviz = shutil.which("snakeviz") or shutil.which(str(engines / "bin" / "snakeviz"))
chromium = shutil.which("chromium")
if not snakeviz or not chromium or not list(engines.glob("lib/*/site-packages/playwright")):
    print("skipped: needs snakeviz (tools/engines.sh) and chromium")
    sys.exit(0)


def free_port():
    with socket.socket() as of:
        of.bind(("127.0.0.1", 0))
        return of.getsockname()[1]


def picture(url, image):
    """Returns the page's text and the number of slices in the picture."""
    script = f"""
import sys
from playwright.sync_api import sync_playwright
with sync_playwright() as p:
    browser = p.chromium.launch(executable_path={chromium!r}, args=["--no-sandbox"])
    page = browser.new_page()
    page.goto(sys.argv[1])
    page.wait_for_selector("#chart svg path, #chart svg rect", timeout=30000)
    page.screenshot(path=sys.argv[2])
    print(page.locator("#chart svg path, #chart svg rect").count())
    print(page.inner_text("body"))
    browser.close()
"""
    made = subprocess.run([str(engines / "bin" / "python3"), "-c", script, url, image],
                          capture_output=True, text=True, timeout=90)
    if made.returncode != 0:
        print(made.stderr)
        sys.exit(1)
    slices, text = made.stdout.split("\n", 1)
    return int(slices), text


def wait_for(port):
    for _ in range(100):
        with socket.socket() as to:
            if to.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)


with tempfile.TemporaryDirectory() as folder:
    run = os.path.join(folder, "run")
    os.mkdir(run)
    with open(os.path.join(run, "lotustrace_log_worker_pid_7"), "w", encoding="ascii") as log:
        for i in range(100):
            at = 10**9 + i * 10**7
            log.write(f"SDecode,{at + 10},{6 * 10**6}\n")
            log.write(f"SResize,{at + 7 * 10**6},{2 * 10**6}\nSLoader,{at},{9 * 10**6 + 10}\n")
    profile = os.path.join(folder, "run.prof")
    subprocess.run([tool, "export", run, "--format", "pstats", "-o", profile], check=True)
    port = free_port()
    server = subprocess.Popen([snakeviz, "-s", "-H", "127.0.0.1", "-p", str(port), profile],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_for(port)
        slices, text = picture(f"http://127.0.0.1:{port}/snakeviz/{profile.replace('/', '%2F')}",
                               os.path.join(sys.argv[3] if len(sys.argv) > 3 else folder, "snakeviz.png"))
    finally:
        server.terminate()
        server.wait()

for name in ("Loader", "Decode", "Resize"):
    if name not in text:
        print(f"snakeviz shows no {name}:\n{text[:2000]}")
        sys.exit(1)
if slices < 4:
    print(f"snakeviz draws {slices} slices, where 4 are wanted: all threads, and three operations")
    sys.exit(1)
print(f"snakeviz drew {slices} slices")
