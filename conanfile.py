"""The Conan recipe of the library: conan create . --build=missing"""
import os
import re

from conan import ConanFile
from conan.tools.cmake import CMake, CMakeToolchain, cmake_layout
from conan.tools.files import copy, load, rmdir


class Lotus(ConanFile):
    name = "lotus"
    license = "MIT"
    description = "Tells a C++ data-preprocessing pipeline where its time goes"
    package_type = "static-library"
    settings = "os", "arch", "compiler", "build_type"
    exports_sources = "CMakeLists.txt", "include/*", "tools/cmake/*", "LICENSE"

    def set_version(self):
        header = load(self, os.path.join(self.recipe_folder, "include", "lotus", "version.hpp"))
        self.version = ".".join(re.findall(r"#define LOTUS_VERSION_\w+ (\d+)", header))

    def layout(self):
        cmake_layout(self)

    def generate(self):
        toolchain = CMakeToolchain(self)
        for part in ("TOOLS", "TESTS", "BENCH", "EXAMPLES"):
            toolchain.cache_variables["LOTUS_BUILD_" + part] = False
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build(target="lotus")

    def package(self):
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))
        CMake(self).install()
        # Conan generates files like those in these folders itself.
        for folder in ("cmake", "cps", "pkgconfig"):
            rmdir(self, os.path.join(self.package_folder, "lib", folder))
        rmdir(self, os.path.join(self.package_folder, "share"))

    def package_info(self):
        self.cpp_info.set_property("cmake_file_name", "lotus")
        for name, target in (("header_only", "lotus::header_only"), ("lotus", "lotus::lotus")):
            part = self.cpp_info.components[name]
            part.set_property("cmake_target_name", target)
            part.set_property("pkg_config_name", "lotus" if name == "lotus" else "lotus-header-only")
            part.system_libs = ["pthread", "dl"]
            part.libs = ["lotus"] if name == "lotus" else []
            part.defines = ["LOTUS_COMPILED"] if name == "lotus" else []
