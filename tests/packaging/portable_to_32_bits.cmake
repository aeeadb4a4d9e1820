# Checks that a program with 32-bit pointers, in which nothing is recorded, compiles and runs.
# cmake -DCOMPILER=c++ -DSOURCE=checkout -DWORK=dir -P portable_to_32_bits.cmake
cmake_minimum_required(VERSION 3.21)
file(REMOVE_RECURSE "${WORK}")
file(MAKE_DIRECTORY "${WORK}")
file(WRITE "${WORK}/none.cpp" "#include <string>\nint main() { return std::string().empty() ? 0 : 1; }\n")
# Debian's package g++-multilib, which cannot be installed together with cross compilers, consists of
# the compiler's libraries and a link to this folder with the kernel's headers.
set(kernel_headers -idirafter /usr/include/x86_64-linux-gnu)
execute_process(COMMAND "${COMPILER}" -m32 ${kernel_headers} "${WORK}/none.cpp" -o "${WORK}/none"
    RESULT_VARIABLE status OUTPUT_QUIET ERROR_QUIET)
if(NOT status EQUAL 0)
  message("skipped: no compiler for 32 bits (Debian: g++-12-multilib)")
  return()
endif()
set(program "${CMAKE_CURRENT_LIST_DIR}/public_names.cpp")
set(flags -std=c++17 -Wall -Wextra -Werror ${kernel_headers} -I "${SOURCE}/include" "${program}")
execute_process(COMMAND "${COMPILER}" -m32 ${flags} -pthread -o "${WORK}/program"
    COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND "${WORK}/program" "${WORK}/run/log" WORKING_DIRECTORY "${WORK}"
    COMMAND_ERROR_IS_FATAL ANY)
# The ABI x32 has 64-bit registers but 32-bit pointers. Few kernels run such programs, so this one
# is only compiled.
execute_process(COMMAND "${COMPILER}" -mx32 ${kernel_headers} "${WORK}/none.cpp" -fsyntax-only
    RESULT_VARIABLE status OUTPUT_QUIET ERROR_QUIET)
if(status EQUAL 0)
  execute_process(COMMAND "${COMPILER}" -mx32 ${flags} -fsyntax-only COMMAND_ERROR_IS_FATAL ANY)
endif()
