"""Uses the project from Meson, from Conan, or from the newest CMake with the Common Package Specification:
consume_test.py meson|conan|cps SOURCE ENGINES WORK COMPILER"""
import glob
import json
import os
import shutil
import subprocess
import sys

WAY, SOURCE, ENGINES, WORK, COMPILER = sys.argv[1:6]
CONSUMER = os.path.join(SOURCE, "tests", "packaging", "consumer")
PROJECT = WORK + "/test_package"


def run(*command):
    ran = subprocess.run(command, cwd=WORK, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert ran.returncode == 0, f"{command}: {ran.returncode}\n{ran.stdout[-8000:]}"
    return ran.stdout


def run_quick_start(program):
    run("env", f"LOTUS_LOG_FILE={WORK}/run_quick_start/log", program, "4")
    logs = "".join(open(log).read() for log in glob.glob(WORK + "/run_quick_start/log_*"))
    assert logs.count("SRead,") == 800, logs.count("SRead,")


def with_meson(meson):
    shutil.copytree(SOURCE + "/include", PROJECT + "/subprojects/lotus/include")
    shutil.copy(SOURCE + "/meson.build", PROJECT + "/subprojects/lotus")
    run(meson, "setup", "build", PROJECT)
    run(meson, "compile", "-C", "build")
    for kind in ("compiled", "header_only", "mixed"):
        run(f"{WORK}/build/consumer_{kind}", f"{WORK}/run_{kind}/log")
    run_quick_start(f"{WORK}/build/consumer_quick_start")


def with_conan(conan):
    # Uses an empty home folder, because users lack the packages and settings of this one.
    os.environ["CONAN_HOME"] = WORK + "/home"
    os.environ["LOTUS_CONSUMER_RUNS"] = WORK
    run(conan, "profile", "detect")
    for name in ("CMakeLists.txt", "LICENSE", "conanfile.py"):
        shutil.copy(os.path.join(SOURCE, name), WORK)
    shutil.copytree(SOURCE + "/include", WORK + "/include")
    shutil.copytree(SOURCE + "/tools/cmake", WORK + "/tools/cmake")
    run(conan, "create", ".", "-s", "build_type=Release", "-s", "compiler.cppstd=17")


def with_cps(cmake):
    run(cmake, "-S", SOURCE, "-B", "lotus", "-DLOTUS_BUILD_TOOLS=OFF", "-DLOTUS_BUILD_TESTS=OFF",
        "-DLOTUS_BUILD_BENCH=OFF", "-DLOTUS_BUILD_EXAMPLES=OFF")
    run(cmake, "--build", "lotus")
    run(cmake, "--install", "lotus", "--prefix", WORK + "/installed")
    # Moves the prefix, and removes the files that CMake would prefer.
    prefix = WORK + "/prefix"
    os.rename(WORK + "/installed", prefix)
    found = glob.glob(prefix + "/lib*/cps/lotus/lotus.cps") + glob.glob(prefix + "/lib/*/cps/lotus/lotus.cps")
    assert len(found) == 1, found
    for folder in glob.glob(prefix + "/lib*/cmake") + glob.glob(prefix + "/lib/*/cmake"):
        shutil.rmtree(folder)
    with open(found[0]) as file:
        version = json.load(file)["version"]
    run(cmake, "-S", PROJECT, "-B", "build", "-DCMAKE_PREFIX_PATH=" + prefix,
        "-DLOTUS_MINOR_VERSION=" + version.rpartition(".")[0])
    run(cmake, "--build", "build")
    for kind in ("compiled", "header_only", "mixed"):
        run(f"{WORK}/build/consumer_{kind}", f"{WORK}/run_{kind}/log")
    run_quick_start(f"{WORK}/build/consumer_quick_start")


def main():
    name = "cmake" if WAY == "cps" else WAY
    tool = os.path.join(ENGINES, "bin", name)
    tool = tool if os.path.exists(tool) or WAY == "cps" else shutil.which(name)
    if not tool or not os.path.exists(tool):
        print(f"skipped: no {name} (tools/engines.sh fetches it)")
        return 0
    shutil.rmtree(WORK, ignore_errors=True)
    os.makedirs(WORK)
    for variable in ("CXXFLAGS", "CPPFLAGS", "LDFLAGS", "CPATH"):
        os.environ.pop(variable, None)
    os.environ["CXX"] = COMPILER
    shutil.copytree(CONSUMER + "/" + WAY, PROJECT)
    for name in ("main.cpp", "second.cpp", "consumers.cmake"):
        shutil.copy(os.path.join(CONSUMER, name), PROJECT)
    shutil.copy(SOURCE + "/examples/quick_start.cpp", PROJECT)
    {"meson": with_meson, "conan": with_conan, "cps": with_cps}[WAY](tool)
    check()
    return 0


def check():
    for kind in ("compiled", "header_only", "mixed"):
        text = ""
        for log in glob.glob(f"{WORK}/run_{kind}/log_*_pid_*"):
            with open(log) as file:
                text += file.read()
        for name in ("SConsumer,", "SSecond,"):
            assert text.count(name) == 1, (kind, name, text)


sys.exit(main())
