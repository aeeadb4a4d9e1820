"""Compiles and runs each program of docs/guides/shapes.md as it stands there and with classes instead
of macros, counts its marked lines, and checks that lotus-tool has a verdict on each run.

shapes_test.py SOURCE LIBRARY TOOL WORK COMPILER [FLAG...]"""

import json
import pathlib
import re
import shutil
import subprocess
import sys

source, library, tool, work = map(pathlib.Path, sys.argv[1:5])
compiler = sys.argv[5:]
text = (source / "docs/guides/shapes.md").read_text()
faults = []

CLASSES = [
    (r"LOTUS_BATCH_PREPROCESSED\((\w+)\);", r"const lotus::batch_preprocessed marked{\1};"),
    (r'LOTUS_STAGE\(("\w+"), ([\w.]+)\);', r"lotus::stage marked{\1, \2};"),
    (r"LOTUS_BATCH_TAKES\(", "lotus::batch_takes("),
]


def section(title):
    """Returns the only program below a heading."""
    found = re.search(rf"^## {re.escape(title)}\n.*?```c\+\+\n(.*?)```", text, re.M | re.S)
    return found.group(1) if found else ""


def heading_of(anchor):
    for title in re.findall(r"^## (.*)$", text, re.M):
        if re.sub(r"[^a-z0-9 -]", "", title.lower()).replace(" ", "-") == anchor:
            return title
    return ""


def check(name, program):
    folder = work / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / "program.cpp").write_text(section("What the programs share") + program)
    libraries = [str(library), "-pthread", "-ldl"] + (["-ltbb"] if "tbb" in program else [])
    standard = "-std=c++20" if "<coroutine>" in program else "-std=c++17"
    subprocess.run(compiler + [standard, "-Wall", "-Wextra", "-Werror", "-DLOTUS_COMPILED", "-I", str(source / "include"),
                               "program.cpp", "-o", "program"] + libraries, cwd=folder, check=True)
    # While other programs use the CPUs, a run may not be explained by its own records.
    for _ in range(5):
        shutil.rmtree(folder / "run", ignore_errors=True)
        subprocess.run(["./program"], cwd=folder, check=True, timeout=60, env={"LOTUS_LOG_FILE": "run/lotustrace_log"})
        said = json.loads(subprocess.run([tool, "diagnose", "run", "--json"], cwd=folder, stdout=subprocess.PIPE).stdout)
        if said["verdict"]:
            return
    if "on an idle machine" not in said["why"] and said["other_programs_cpus"] < 0.3:
        faults.append(f"{name}: {said['why']}")


rows = re.findall(r"^\| \[([^]]+)\]\(#([^)]+)\) \| (\d) \| (\d) \|", text, re.M)
if len(rows) != 10:
    faults.append(f"the table has {len(rows)} rows, not 10")
for shape, anchor, with_macros, with_classes in rows:
    program = section(heading_of(anchor))
    if "tbb" in program and not any(pathlib.Path(p, "oneapi/tbb/flow_graph.h").exists() for p in ("/usr/include", "/usr/local/include")):
        print(f"{shape}: left out, oneTBB is not installed")
        continue
    marked = [line for line in program.splitlines() if "// <-" in line]
    uses = [line for line in program.splitlines() if re.search(r"LOTUS_|lotus::|wait(\.\w+\(|->)", line.split("//")[0])]
    if marked != uses:
        faults.append(f"{shape}: the marked lines are not those that use the library: {set(marked) ^ set(uses)}")
    classes = program
    for macro, other in CLASSES:
        classes = re.sub(macro, other, classes)
    if classes == program or "LOTUS_" in classes:
        faults.append(f"{shape}: a macro has no class")
    counts = [sum("// <-" in line for line in form.splitlines()) for form in (program, classes)]
    if counts != [int(with_macros), int(with_classes)]:
        faults.append(f"{shape}: the table says {with_macros} and {with_classes} lines, but there are {counts}")
    check(anchor + "_macros", program)
    check(anchor + "_classes", classes)
print("\n".join(faults))
sys.exit(1 if faults else 0)
