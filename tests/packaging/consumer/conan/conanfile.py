"""Tests the package, after `conan create` has built it."""
import os

from conan import ConanFile
from conan.tools.build import can_run
from conan.tools.cmake import CMake, cmake_layout


class Consumer(ConanFile):
    settings = "os", "arch", "compiler", "build_type"
    generators = "CMakeToolchain", "CMakeDeps"

    def requirements(self):
        self.requires(self.tested_reference_str)

    def layout(self):
        cmake_layout(self)

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def test(self):
        for kind in ("compiled", "header_only", "mixed"):
            if can_run(self):
                program = os.path.join(self.cpp.build.bindir, "consumer_" + kind)
                self.run(f"{program} {os.environ['LOTUS_CONSUMER_RUNS']}/run_{kind}/log", env="conanrun")
        if can_run(self):
            program = os.path.join(self.cpp.build.bindir, "consumer_quick_start")
            self.run(f"LOTUS_LOG_FILE={os.environ['LOTUS_CONSUMER_RUNS']}/run_quick_start/log {program} 4", env="conanrun")
