# Checks that lotus-tool recovers a ring file from a process on another kind of machine. Skipped if
# the compiler or the emulator is missing.
# cmake -DCOMPILER=g++ -DEMULATOR=program -DLIBRARIES=dir -DTOOL=lotus-tool -DSOURCE=checkout
#   -DWORK=dir -P left_rings.cmake
find_program(compiler "${COMPILER}")
find_program(emulator "${EMULATOR}")
if(NOT compiler OR NOT emulator)
  message("skipped: no ${COMPILER} or no ${EMULATOR} (Debian: ${PACKAGE}, qemu-user-static)")
  return()
endif()
file(REMOVE_RECURSE "${WORK}")
file(MAKE_DIRECTORY "${WORK}/run")
execute_process(
    COMMAND "${compiler}" -std=c++17 -O2 -I "${SOURCE}/include"
            "${CMAKE_CURRENT_LIST_DIR}/left_rings.cpp" -o "${WORK}/left_rings" -pthread
    COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND "${emulator}" -L "${LIBRARIES}" "${WORK}/left_rings" "${WORK}/run/log"
    RESULT_VARIABLE killed)
file(GLOB rings "${WORK}/run/.lotus_ring_*")
if(NOT rings)
  message(FATAL_ERROR "no ring file was left: ${killed}")
endif()

execute_process(COMMAND "${TOOL}" recover "${WORK}/run" OUTPUT_VARIABLE said COMMAND_ERROR_IS_FATAL ANY)
# 1000 operations, one operation that sleeps, and a batch that is built and received.
if(NOT said MATCHES "recovered 1003 records of 1 process")
  message(FATAL_ERROR "${said}")
endif()
file(GLOB logs "${WORK}/run/log_*_pid_*")
set(all "")
foreach(log IN LISTS logs)
  file(READ "${log}" text)
  string(APPEND all "${text}")
endforeach()
string(REGEX MATCHALL "SName[0-9],[0-9]+,[0-9]+\n" names "${all}")
list(LENGTH names count)
if(NOT count EQUAL 1000)
  message(FATAL_ERROR "${count} of 1000 operations")
endif()
foreach(line "SBatchPreprocessed_7,[0-9]+,[0-9]+\n" "SBatchConsumed_7,[0-9]+,[0-9]+\n")
  if(NOT all MATCHES "${line}")
    message(FATAL_ERROR "no ${line} in\n${all}")
  endif()
endforeach()
# The times must have been converted from the other machine's clock: the records are of now, and the
# sleep has the right duration.
string(TIMESTAMP now "%s" UTC)
string(REGEX MATCH "SSleep%2C 50 ms,([0-9]+)[0-9][0-9][0-9][0-9][0-9][0-9][0-9][0-9][0-9],([0-9]+)\n"
    found "${all}")
if(NOT found)
  message(FATAL_ERROR "no operation that slept in\n${all}")
endif()
math(EXPR age "${now} - ${CMAKE_MATCH_1}")
if(age LESS -2 OR age GREATER 100 OR CMAKE_MATCH_2 LESS 50000000 OR
   CMAKE_MATCH_2 GREATER 5000000000)
  message(FATAL_ERROR "not now, or not 50 ms: ${found}")
endif()
