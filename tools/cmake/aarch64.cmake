# Toolchain: g++ for aarch64, whose programs run here under qemu (Debian: g++-aarch64-linux-gnu,
# qemu-user-static). The preset leaves out what this emulator, qemu-user 7, does not do: it sets no
# limit of memory (names, host_program); SIGXFSZ ends it although the program blocks it
# (write_signals); a thread lives on for some 10 ms after it has been joined, so that an exit leaves
# a ring file to be recovered (exit_order); it translates code first, while start() must be quick
# (leftovers). disk passes, in two minutes.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64-static -L /usr/aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH /usr/aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(Catch2_DIR "${CMAKE_CURRENT_LIST_DIR}/aarch64")
