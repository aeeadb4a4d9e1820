# Toolchain: g++ for aarch64 (Debian: g++-aarch64-linux-gnu). The programs run on this machine in
# the emulator qemu (qemu-user-static). The preset leaves out tests that fail in qemu-user 7,
# because this emulator does not limit memory (tests names, host_program), is ended by SIGXFSZ
# although the program blocks it (write_signals), runs a thread for some 10 ms after it has been
# joined, so that the exit leaves a ring file for recovery (exit_order), and translates the code
# before it runs, so that start() is slow (leftovers). The test disk passes, but takes two minutes.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64-static -L /usr/aarch64-linux-gnu)
# LOTUS_ARM64_ROOT names a folder with the libraries that lotus-tool needs.
# tools/release/arm64_root.sh creates it.
set(CMAKE_TRY_COMPILE_PLATFORM_VARIABLES LOTUS_ARM64_ROOT)
set(CMAKE_FIND_ROOT_PATH /usr/aarch64-linux-gnu)
if(LOTUS_ARM64_ROOT)
  list(APPEND CMAKE_FIND_ROOT_PATH "${LOTUS_ARM64_ROOT}")
  set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
  # Debian has a separate folder for headers that depend on the architecture, and find_package does
  # not report it.
  set(CMAKE_CXX_STANDARD_INCLUDE_DIRECTORIES "${LOTUS_ARM64_ROOT}/usr/include/aarch64-linux-gnu")
endif()
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(Catch2_DIR "${CMAKE_CURRENT_LIST_DIR}/aarch64")
