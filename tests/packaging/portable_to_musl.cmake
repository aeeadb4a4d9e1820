# Checks that a program with musl records, also on aarch64, and that its threads, forks and kills
# lose nothing. Zig from PyPI contains clang, libc++ and musl. It is not installed by
# tools/engines.sh, because it first builds these libraries, which takes two minutes.
# cmake -DPYTHON=build-engines/bin/python3 -DSOURCE=checkout -DWORK=dir -P portable_to_musl.cmake
cmake_minimum_required(VERSION 3.21)
execute_process(COMMAND "${PYTHON}" -m ziglang version
    RESULT_VARIABLE status OUTPUT_QUIET ERROR_QUIET)
if(NOT status EQUAL 0)
  message("skipped: no compiler for musl (${PYTHON} -m pip install ziglang==0.13.0)")
  return()
endif()
file(REMOVE_RECURSE "${WORK}")
file(MAKE_DIRECTORY "${WORK}")
get_filename_component(engines "${PYTHON}/../.." ABSOLUTE)
set(ENV{ZIG_GLOBAL_CACHE_DIR} "${engines}/zig-cache")
set(ENV{ZIG_LOCAL_CACHE_DIR} "${engines}/zig-cache")
# musl declares ioctl() with an int, so the library's unsigned requests convert.
set(compile "${PYTHON}" -m ziglang c++ -target x86_64-linux-musl -std=c++17 -O2 -Wall -Wextra
            -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion -Werror -fno-sanitize=undefined -I "${SOURCE}/include")

# built(NAME FILE ARGUMENT...): compiles FILE and runs it with the ARGUMENTs.
function(built name file)
  execute_process(COMMAND ${compile} "${SOURCE}/${file}" -o "${WORK}/${name}"
      COMMAND_ERROR_IS_FATAL ANY)
  execute_process(COMMAND ${emulator} "${WORK}/${name}" ${ARGN} WORKING_DIRECTORY "${WORK}"
      COMMAND_ERROR_IS_FATAL ANY)
endfunction()

# recorded(): compiles and runs the quick start, which must write three logs.
function(recorded)
  set(ENV{LOTUS_LOG_FILE} "${WORK}/run/log")
  built(quick_start examples/quick_start.cpp 2)
  unset(ENV{LOTUS_LOG_FILE})
  file(GLOB logs "${WORK}/run/log_main_pid_*" "${WORK}/run/log_worker_pid_*")
  list(LENGTH logs count)
  if(NOT count EQUAL 3)
    message(FATAL_ERROR "one main and two worker logs expected, but there are: ${logs}")
  endif()
  file(REMOVE_RECURSE "${WORK}/run")
endfunction()
built(public_names tests/packaging/public_names.cpp "${WORK}/names/log")
recorded()
# Threads, forks, kills and recovery.
built(torture tests/faults/torture.cpp --rounds 20)

# The same program for aarch64, in an emulator.
set(emulator qemu-aarch64-static)
execute_process(COMMAND ${emulator} --version RESULT_VARIABLE status OUTPUT_QUIET)
if(status EQUAL 0)
  list(TRANSFORM compile REPLACE "x86_64-linux-musl" "aarch64-linux-musl")
  recorded()
else()
  message(STATUS "aarch64 is left out: no ${emulator}")
endif()
