"""Tests that pip can install the tool's wheel, which provides the command: wheel_test.py WHEEL_PY TOOL VERSION LICENSE"""
import os
import platform
import subprocess
import sys
import tempfile
import time


def run(*command):
    ran = subprocess.run(command, capture_output=True, text=True)
    assert ran.returncode == 0, (command, ran.stdout, ran.stderr)
    return ran.stdout.strip()


def main():
    wheel_py, tool, version, license_file = sys.argv[1:5]
    with tempfile.TemporaryDirectory() as place:
        made = []
        for name in ("a", "b"):
            os.mkdir(f"{place}/{name}")
            made.append(run(sys.executable, wheel_py, tool, version, platform.machine(), license_file, f"{place}/{name}"))
            time.sleep(0.01)
        with open(made[0], "rb") as first, open(made[1], "rb") as second:
            assert first.read() == second.read(), "the same tool made two wheels that differ"
        if subprocess.run([sys.executable, "-m", "venv", place + "/venv"], capture_output=True).returncode != 0:
            print("skipped: Python cannot make a virtual environment (Debian: python3-venv)")
            return 0
        run(place + "/venv/bin/python", "-m", "pip", "install", "--quiet", "--no-index", made[0])
        assert run(place + "/venv/bin/lotus-tool", "--version") == f"lotus-tool {version}"
        assert "Version: " + version in run(place + "/venv/bin/python", "-m", "pip", "show", "lotus-tool")
    return 0


sys.exit(main())
