#!/usr/bin/env python3
"""Follows each row of the tables in docs/installation.md in a fresh folder, from its one line to a diagnosis, and
prints how long that takes: routes.py SOURCE [--dist DIST] [--tool TOOL] [--engines ENGINES] [--routes NAME...]

DIST contains the files of a release (tools/release.sh); without it, routes that need them are left out. TOOL is used by
routes that install only the library. ENGINES contains Meson, Conan and the newest CMake (tools/engines.sh). A row
without a route and a route without a row are errors.
"""
import argparse
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time


class Left(Exception):
    """Something that the route needs is missing."""


class Route:
    """One row of a table, and the fresh folder in which it is followed."""

    def __init__(self, row, place, with_):
        self.row, self.place, self.tool, self.with_ = row, place, with_.tool, with_
        self.source = with_.source

    def says(self, line):
        """Returns a line that the row must contain, with the release's version instead of VERSION."""
        assert f"`{line}`" in self.row, f"no `{line}` in the row {self.row}"
        return line.replace("VERSION", self.with_.version)

    def run(self, command, folder=".", **variables):
        ran = subprocess.run(command, shell=isinstance(command, str), cwd=os.path.join(self.place, folder),
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                             env={**os.environ, **variables})
        assert ran.returncode == 0, f"{command}: {ran.returncode}\n{ran.stdout[-6000:]}"
        return ran.stdout

    def write(self, name, text):
        with open(os.path.join(self.place, name), "w") as file:
            file.write(text)

    def from_dist(self, pattern):
        found = glob.glob(os.path.join(self.with_.dist or "/nonexistent", pattern))
        if not found:
            raise Left(f"no {pattern} in --dist")
        assert len(found) == 1, found
        return found[0]

    def engine(self, name):
        path = os.path.join(self.with_.engines or "/nonexistent", "bin", name)
        if not os.path.exists(path):
            raise Left(f"no {name} in --engines")
        return path

    def checkout(self, folder="lotus"):
        """Copies the project's files as a user has them: only those in git."""
        os.makedirs(os.path.join(self.place, folder))
        self.run(f"git -C '{self.source}' archive HEAD | tar -x -C '{folder}'")

    def cmake_project(self, lines):
        self.write("CMakeLists.txt", "cmake_minimum_required(VERSION 3.21)\nproject(my_loader LANGUAGES CXX)\n"
                   f"{lines}\nadd_executable(my_loader main.cpp)\n"
                   "target_link_libraries(my_loader PRIVATE lotus::lotus)\n")

    def build(self, *options, cmake="cmake"):
        self.run([cmake, "-S", ".", "-B", "build", "-DCMAKE_BUILD_TYPE=Release", *options])
        self.run([cmake, "--build", "build", "--target", "my_loader"])

    def diagnose(self, program="build/my_loader"):
        self.run([self.tool, "run", "--dir", "run", "--", program, "2"])
        said = self.run([self.tool, "diagnose", "run"])
        assert "Preprocessing is the bottleneck" in said, said


def nothing(r):
    os.mkdir(r.place + "/lotus")
    r.says("lotus-VERSION.hpp")
    header = r.with_.dist and r.from_dist("lotus-*.hpp")
    shutil.copy(header or r.source + "/single_include/lotus/lotus.hpp", r.place + "/lotus/lotus.hpp")
    r.run(r.says("g++ -std=c++17 -I . main.cpp -pthread -ldl") + " -o my_loader")
    r.diagnose("./my_loader")


def subfolder(r):
    r.checkout()
    r.cmake_project(r.says("add_subdirectory(lotus)"))
    r.build()
    r.diagnose()


def fetch_content(r):
    r.run(["git", "clone", "--quiet", "--bare", r.source, "lotus.git"])
    r.run(["git", "-C", "lotus.git", "tag", "--force", "v" + r.with_.version])
    line = r.says("FetchContent_Declare(lotus GIT_REPOSITORY … GIT_TAG vVERSION)").replace("…", r.place + "/lotus.git")
    r.cmake_project(f"include(FetchContent)\n{line}\n" + r.says("FetchContent_MakeAvailable(lotus)"))
    r.build()
    r.diagnose()


def install(r, *options, cmake="cmake"):
    r.checkout()
    r.run([cmake, "-S", "lotus", "-B", "lotus/build", "-DLOTUS_BUILD_TOOLS=OFF", "-DLOTUS_BUILD_TESTS=OFF",
           "-DLOTUS_BUILD_BENCH=OFF", "-DLOTUS_BUILD_EXAMPLES=OFF"])
    r.run([cmake, "--build", "lotus/build"])
    r.run([cmake, "--install", "lotus/build", "--prefix", r.place + "/prefix"])
    return r.place + "/prefix"


def installed(r):
    prefix = install(r)
    r.cmake_project(r.says("find_package(lotus CONFIG REQUIRED)"))
    r.build("-DCMAKE_PREFIX_PATH=" + prefix)
    r.diagnose()


def compiled_by_hand(r):
    r.checkout("LOTUS")
    r.run(r.says("cmake -S LOTUS -B LOTUS/build && cmake --build LOTUS/build --target lotus"))
    r.run(r.says("g++ -std=c++17 -DLOTUS_COMPILED -I LOTUS/include main.cpp LOTUS/build/liblotus.a -pthread -ldl")
          + " -o my_loader")
    r.diagnose("./my_loader")


def cps(r):
    cmake = r.engine("cmake")
    prefix = install(r, cmake=cmake)
    shutil.rmtree(glob.glob(prefix + "/lib*/cmake")[0])
    r.cmake_project(r.says("find_package(lotus REQUIRED)"))
    r.build("-DCMAKE_PREFIX_PATH=" + prefix, cmake=cmake)
    r.diagnose()


def pkg_config(r):
    prefix = install(r)
    path = os.path.dirname(glob.glob(prefix + "/lib*/pkgconfig/lotus.pc")[0])
    r.run(r.says("g++ -std=c++17 $(pkg-config --cflags lotus) main.cpp $(pkg-config --libs lotus)") + " -o my_loader",
          PKG_CONFIG_PATH=path)
    r.diagnose("./my_loader")


def meson(r):
    tool = r.engine("meson")
    r.checkout("subprojects/lotus")
    r.write("meson.build", "project('my_loader', 'cpp', default_options: ['cpp_std=c++17', 'buildtype=release'])\n"
            "executable('my_loader', 'main.cpp', dependencies: " + r.says("dependency('lotus', fallback: 'lotus')")
            + ")\n")
    r.run([tool, "setup", "build"])
    r.run([tool, "compile", "-C", "build", "my_loader"])
    r.diagnose()


def conan(r):
    tool, home = r.engine("conan"), {"CONAN_HOME": r.place + "/home"}
    r.checkout()
    r.run([tool, "profile", "detect"], **home)
    r.run(r.says("conan create .").replace("conan", tool, 1) + " -s compiler.cppstd=17 -tf=", "lotus", **home)
    r.write("conanfile.txt", f"[requires]\n{r.says('lotus/VERSION')}\n[generators]\nCMakeDeps\nCMakeToolchain\n")
    r.run([tool, "install", ".", "--output-folder=deps", "-s", "compiler.cppstd=17"], **home)
    r.cmake_project(r.says("find_package(lotus CONFIG REQUIRED)"))
    r.build("-DCMAKE_TOOLCHAIN_FILE=" + r.place + "/deps/conan_toolchain.cmake")
    r.diagnose()


def unpacked(r):
    """Unpacks the Debian package into a folder, because apt would change the machine."""
    r.says("apt install ./lotus_VERSION_amd64.deb")
    r.run(["dpkg-deb", "--extract", r.from_dist("lotus_*_amd64.deb"), "root"])
    r.tool = r.place + "/root/usr/bin/lotus-tool"


def debian(r):
    unpacked(r)
    r.cmake_project("find_package(lotus CONFIG REQUIRED)")
    r.build("-DCMAKE_PREFIX_PATH=" + r.place + "/root/usr")
    r.diagnose()


def recording_program(r):
    """Builds a program that records, for rows about the tool."""
    os.mkdir(r.place + "/lotus")
    shutil.copy(r.source + "/single_include/lotus/lotus.hpp", r.place + "/lotus/lotus.hpp")
    r.run("g++ -std=c++17 -I . main.cpp -pthread -ldl -o my_loader")


def a_program(r):
    r.says("lotus-tool-VERSION-linux-x86_64")
    shutil.copy(r.from_dist("lotus-tool-*-linux-x86_64"), r.place + "/lotus-tool")
    r.tool = r.place + "/lotus-tool"
    recording_program(r)
    r.diagnose("./my_loader")


def pip(r):
    r.says("pip install lotus_tool-VERSION-….whl")
    wheel = r.from_dist("lotus_tool-*x86_64.whl")
    r.run([sys.executable, "-m", "venv", "venv"])
    r.run(["venv/bin/pip", "install", "--quiet", "--no-index", wheel])
    r.tool = r.place + "/venv/bin/lotus-tool"
    recording_program(r)
    r.diagnose("./my_loader")


def debian_tool(r):
    r.row += "`apt install ./lotus_VERSION_amd64.deb`"
    unpacked(r)
    recording_program(r)
    r.diagnose("./my_loader")


def from_source(r):
    line = r.says("cmake -S . -B build && cmake --build build --target lotus-tool")
    if not r.with_.slow:
        raise Left("takes minutes, see --slow")
    r.checkout()
    r.run(line, "lotus")
    r.tool = r.place + "/lotus/build/bin/lotus-tool"
    recording_program(r)
    r.diagnose("./my_loader")


ROUTES = {
    "library": {"nothing": nothing, "CMake, as a subfolder": subfolder, "CMake, FetchContent": fetch_content,
                "CMake, installed": installed, "compiled, without CMake": compiled_by_hand, "pkg-config": pkg_config,
                "CPS": cps, "Meson": meson, "Conan 2": conan, "Debian": debian},
    "tool": {"a program": a_program, "pip": pip, "Debian": debian_tool, "source": from_source},
}


def rows(document):
    """Returns the rows of the tables below "The library" and "lotus-tool", by their first column."""
    with open(document) as file:
        parts = re.split(r"^## ", file.read(), flags=re.M)
    found = {}
    for kind, heading in (("library", "The library"), ("tool", "lotus-tool")):
        part = next(p for p in parts if p.startswith(heading + "\n"))
        lines = re.findall(r"^\| ([^|]+) \| ([^|]+) \|", part, flags=re.M)
        found[kind] = {name.strip(): text for name, text in lines if name.strip() != "with"}
    return found


def consume(name, way, row, with_):
    with tempfile.TemporaryDirectory() as place:
        route = Route(row, os.path.realpath(place), with_)
        shutil.copy(with_.source + "/examples/quick_start.cpp", place + "/main.cpp")
        begin = time.monotonic()
        try:
            way(route)
        except Left as why:
            print(f"{name}: left out, {why}", flush=True)
            return
        print(f"{name}: {time.monotonic() - begin:.1f} s", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("source", type=os.path.realpath)
    parser.add_argument("--dist", type=os.path.realpath)
    parser.add_argument("--tool", type=os.path.realpath)
    parser.add_argument("--engines", type=os.path.realpath)
    parser.add_argument("--routes", nargs="*")
    parser.add_argument("--slow", action="store_true", help="also build lotus-tool from source")
    with_ = parser.parse_args()
    with open(with_.source + "/include/lotus/version.hpp") as file:
        with_.version = ".".join(re.findall(r"#define LOTUS_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", file.read()))
    if with_.dist and not with_.tool:
        with_.tool = glob.glob(with_.dist + "/lotus-tool-*-linux-x86_64")[0]
    for variable in ("CXXFLAGS", "CPPFLAGS", "LDFLAGS", "CPATH", "CMAKE_CXX_COMPILER_LAUNCHER"):
        os.environ.pop(variable, None)
    described = rows(with_.source + "/docs/installation.md")
    for kind, routes in ROUTES.items():
        assert set(described[kind]) == set(routes), (kind, set(described[kind]) ^ set(routes))
        for name, way in routes.items():
            if with_.routes is None or f"{kind}:{name}" in with_.routes:
                consume(f"{kind}, {name}", way, described[kind][name], with_)
    return 0


if __name__ == "__main__":
    sys.exit(main())
