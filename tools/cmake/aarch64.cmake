# Toolchain: g++ for aarch64, whose programs run here under qemu (Debian: g++-aarch64-linux-gnu,
# qemu-user-static). The preset leaves out tests that fail with this emulator, qemu-user 7: it does
# not limit memory (names, host_program); SIGXFSZ ends it although the program blocks it
# (write_signals); a thread continues for some 10 ms after it has been joined, so that an exit
# leaves a ring file to be recovered (exit_order); it translates code first, while start() must be
# quick (leftovers). The test disk passes, but takes two minutes.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64-static -L /usr/aarch64-linux-gnu)
# LOTUS_ARM64_ROOT: a folder with the tool's libraries, from tools/release/arm64_root.sh.
set(CMAKE_TRY_COMPILE_PLATFORM_VARIABLES LOTUS_ARM64_ROOT)
set(CMAKE_FIND_ROOT_PATH /usr/aarch64-linux-gnu)
if(LOTUS_ARM64_ROOT)
  list(APPEND CMAKE_FIND_ROOT_PATH "${LOTUS_ARM64_ROOT}")
  set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
  # Debian has headers that depend on the machine in a folder that no find_package reports.
  set(CMAKE_CXX_STANDARD_INCLUDE_DIRECTORIES "${LOTUS_ARM64_ROOT}/usr/include/aarch64-linux-gnu")
endif()
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(Catch2_DIR "${CMAKE_CURRENT_LIST_DIR}/aarch64")
