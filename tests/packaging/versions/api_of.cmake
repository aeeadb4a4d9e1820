# Checks that a program for an earlier version compiles without warnings, and that the tool reads
# its logs.
# cmake -DCOMPILER=c++ -DPROGRAM=recorder.cpp -DTOOL=lotus-tool -DSOURCE=checkout -DLIBRARY=liblotus.a
#       -DWORK=dir -P api_of.cmake
cmake_minimum_required(VERSION 3.21)

file(REMOVE_RECURSE "${WORK}")
file(MAKE_DIRECTORY "${WORK}")
execute_process(
    COMMAND "${COMPILER}" -std=c++17 -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror
            -DLOTUS_COMPILED -I "${SOURCE}/include" "${PROGRAM}" "${LIBRARY}" -o recorder -pthread -ldl
    WORKING_DIRECTORY "${WORK}" COMMAND_ERROR_IS_FATAL ANY)
foreach(format text compact)
  execute_process(COMMAND "${WORK}/recorder" ${format} ${format}
      WORKING_DIRECTORY "${WORK}" COMMAND_ERROR_IS_FATAL ANY)
  if(NOT TOOL)
    continue()
  endif()
  execute_process(COMMAND "${TOOL}" stats ${format} --json --strict
      WORKING_DIRECTORY "${WORK}" OUTPUT_VARIABLE text COMMAND_ERROR_IS_FATAL ANY)
  foreach(figure "24;ops;SRead;count" "2400;aggregated;SToken;count" "12;preprocess;count"
                 "24;stages;Decode;count" "12;counters;built;count")
    list(POP_FRONT figure expected)
    string(JSON value ERROR_VARIABLE error GET "${text}" runs 0 ${figure})
    if(NOT value EQUAL expected)
      message(FATAL_ERROR "${format}: ${figure}: ${value} ${error}, not ${expected}, in:\n${text}")
    endif()
  endforeach()
endforeach()
