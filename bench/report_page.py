#!/usr/bin/env python3
"""Measures the report's page with a million spans: report_page.py LOTUS_TOOL ENGINES [LOADS [BATCHES]]

ENGINES is the folder of tools/engines.sh, which contains Playwright. Prints the time to write the page, and its size; and for
Chromium, as medians and ranges of all loads: the time until the verdict is visible, the longest time without a reaction to the
user after the first paint, the CPU time of the longest task, the time of a zoom or move, and the heap.
"""
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

tool, engines = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2])
loads = int(sys.argv[3]) if len(sys.argv) > 3 else 9
batches = int(sys.argv[4]) if len(sys.argv) > 4 else 8000
chromium = shutil.which("chromium")
workers, samples = 4, 25  # each sample has five lines in the log
ms = 10**6


def write_logs(run):
    """Writes the logs of workers that decode each sample and transform it three times, in varying times."""
    lines = 0
    main = []
    for worker in range(workers):
        text, at = [], 10**18
        for batch in range(worker, batches, workers):
            at += 50_000
            begin = at
            for sample in range(samples):
                decode = 600_000 + (batch * 31 + sample * 17) % 97 * 4000
                start = at
                text.append(f"SDecode,{at},{decode}")
                at += decode
                for name, length in (("SCrop", 90_000), ("SFlip", 4_000), ("SToTensor", 130_000)):
                    text.append(f"{name},{at},{length}")
                    at += length + 200
                text.append(f"SSample,{start},{at - start}")
                at += 1000
            text.append(f"SBatchPreprocessed_{batch},{begin},{at - begin}")
            main.append((batch, at))
        pathlib.Path(run, f"lotustrace_log_worker_pid_{worker + 2}").write_text("\n".join(text) + "\n", encoding="ascii")
        lines += len(text)
    text, now = [], 10**18
    for batch, ready in sorted(main):
        wait = max(ready - now, 1000)
        text += [f"SBatchWait_{batch},{now},{wait}", f"SBatchConsumed_{batch},{now + wait},1000"]
        now += wait + 3 * ms
    pathlib.Path(run, "lotustrace_log_main_pid_1").write_text("\n".join(text) + "\n", encoding="ascii")
    return lines + len(text)


IN_CHROMIUM = r"""
import json, sys
from playwright.sync_api import sync_playwright
WATCH = '''
window.shown = undefined;
new PerformanceObserver((list) => {
  const of = list.getEntries().find((entry) => entry.identifier === "verdict");
  if (of && window.shown === undefined) window.shown = of.renderTime;
}).observe({ type: "element", buffered: true });
window.blocked = [];
new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) window.blocked.push([entry.startTime, entry.duration]);
}).observe({ type: "longtask", buffered: true });
'''
WORK = '''async () => {
  const painted = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
  const times = [];
  for (let n = 0; n < 40; ++n) {
    await painted();
    const begin = performance.now();
    if (n % 4 === 3) timeline.move(0.1); else timeline.zoom(n < 20 ? 0.8 : 1.25, 0.4);
    await painted();
    times.push(performance.now() - begin);
  }
  return times;
}'''
READY = "typeof pageReady !== 'undefined' && pageReady.then(() => true)"


def longest_task(browser):
    '''Returns the ms of CPU time of the longest task of the page's main thread, which do not depend on other programs.'''
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    browser.start_tracing(page=page, categories=["toplevel"])
    page.goto("file://" + sys.argv[1])
    page.wait_for_function(READY)
    events = json.loads(browser.stop_tracing())["traceEvents"]
    page.close()
    threads = {(of["pid"], of["tid"]) for of in events if of["name"] == "thread_name" and of["args"]["name"] == "CrRendererMain"}
    return max(of["tdur"] for of in events if of["name"].endswith("RunTask") and (of["pid"], of["tid"]) in threads and "tdur" in of) / 1e3


found = []
with sync_playwright() as p:
    for _ in range(int(sys.argv[2])):
        browser = p.chromium.launch(executable_path=sys.argv[3], args=["--no-sandbox"])
        floor = browser.new_page()
        floor.add_init_script(WATCH)
        floor.goto("file://" + sys.argv[4])
        floor.wait_for_function("window.shown")
        least = floor.evaluate("window.shown")
        floor.close()
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.add_init_script(WATCH)
        page.goto("file://" + sys.argv[1])
        page.wait_for_function(READY)
        ready = page.evaluate("performance.now()")
        first = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
        page.wait_for_timeout(200)  # the observer reports a task after it has ended
        blocked = [ns for start, ns in page.evaluate("window.blocked") if start + ns > first]
        works = page.evaluate(WORK)
        session = page.context.new_cdp_session(page)
        session.send("HeapProfiler.collectGarbage")
        usage = session.send("Runtime.getHeapUsage")
        heap = sum(usage.get(part, 0) for part in ("usedSize", "backingStorageSize", "embedderHeapUsedSize"))
        found.append({"floor": least, "first": first, "verdict": page.evaluate("window.shown"), "ready": ready, "blocked": max(blocked, default=0), "works": works, "heap": heap})
        page.close()
        found[-1]["task"] = longest_task(browser)
        browser.close()
print(json.dumps(found))
"""


def show(what, values, unit, digits=0):
    values = sorted(values)
    print(f"{what:34} {statistics.median(values):8.{digits}f} {unit:3} ({values[0]:.{digits}f} to {values[-1]:.{digits}f})")


def main():
    if not chromium or not list(engines.glob("lib/*/site-packages/playwright")):
        print("skipped: needs chromium, and Playwright by tools/engines.sh")
        return
    with tempfile.TemporaryDirectory() as folder:
        run, page = os.path.join(folder, "run"), os.path.join(folder, "page.html")
        empty = os.path.join(folder, "empty.html")
        pathlib.Path(empty).write_text("<p elementtiming=verdict>preprocessing-bound</p>", encoding="ascii")
        os.mkdir(run)
        print(f"{write_logs(run):,} lines")
        times = []
        for _ in range(5):
            begin = time.monotonic()
            subprocess.run([tool, "report", "-q", run, "-o", page], check=True)
            times.append(time.monotonic() - begin)
        show("written in", times, "s", 2)
        show("size", [os.path.getsize(page) / 1e6], "MB", 1)
        text = subprocess.run([str(engines / "bin" / "python3"), "-c", IN_CHROMIUM, page, str(loads), chromium, empty],
                              check=True, capture_output=True, text=True).stdout
        found = json.loads(text)
        show("a page of one sentence, shown", [of["floor"] for of in found], "ms")
        show("first paint of anything", [of["first"] for of in found], "ms")
        show("verdict on the screen", [of["verdict"] for of in found], "ms")
        show("longest block after first paint", [of["blocked"] for of in found], "ms")
        show("longest task, CPU time", [of["task"] for of in found], "ms")
        show("all of the page ready", [of["ready"] for of in found], "ms")
        show("a zoom or a move, to its picture", [ns for of in found for ns in of["works"]], "ms", 1)
        show("heap", [of["heap"] / 1e6 for of in found], "MB", 1)


main()
