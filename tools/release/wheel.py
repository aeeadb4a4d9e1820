"""Writes a Python wheel that contains lotus-tool: wheel.py TOOL VERSION MACHINE LICENSE FOLDER

The tool must be linked statically, because the wheel is tagged for any glibc and for musl. Equal inputs give equal bytes.
"""
import base64
import hashlib
import os
import re
import sys
import zipfile

TAG = "py3-none-manylinux_2_17_{0}.manylinux2014_{0}.musllinux_1_1_{0}"
METADATA = """Metadata-Version: 2.1
Name: lotus-tool
Version: {version}
Summary: Finds out why a data loader is slow: reads the recordings of Lotus, from C++ and from PyTorch
License: MIT
Classifier: Operating System :: POSIX :: Linux
Classifier: Topic :: Software Development :: Testing
Requires-Python: >=3.6
Description-Content-Type: text/markdown

# lotus-tool

The command `lotus-tool` of Lotus, an instrumentation library for data-preprocessing pipelines.

    lotus-tool run -- ./train
    lotus-tool diagnose run
"""
# One day after the oldest time that a zip file can contain, so that it is valid in any time zone.
TIME = (1980, 1, 2, 0, 0, 0)


def main():
    tool, version, machine, license_file, folder = sys.argv[1:6]
    if not re.fullmatch(r"[0-9]+(\.[0-9]+)*", version):
        sys.exit(f"wheel.py: {version} is no version")
    tag = TAG.format(machine)
    name = f"lotus_tool-{version}"
    info = f"{name}.dist-info"
    with open(tool, "rb") as file:
        program = file.read()
    with open(license_file, "rb") as file:
        license_text = file.read()
    tags = "".join(f"Tag: py3-none-{p}\n" for p in tag.split("-")[2].split("."))
    entries = [
        (f"{name}.data/scripts/lotus-tool", program, 0o755),
        (f"{info}/METADATA", METADATA.format(version=version).encode(), 0o644),
        (f"{info}/WHEEL", f"Wheel-Version: 1.0\nGenerator: lotus\nRoot-Is-Purelib: false\n{tags}".encode(), 0o644),
        (f"{info}/licenses/LICENSE", license_text, 0o644),
    ]
    record = ""
    for path, content, _ in entries:
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")
        record += f"{path},sha256={digest},{len(content)}\n"
    entries.append((f"{info}/RECORD", f"{record}{info}/RECORD,,\n".encode(), 0o644))
    wheel = os.path.join(folder, f"{name}-{tag}.whl")
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, content, mode in entries:
            entry = zipfile.ZipInfo(path, TIME)
            entry.external_attr = (0o100000 | mode) << 16
            entry.create_system = 3
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, content)
    print(wheel)


main()
