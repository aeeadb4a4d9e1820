# Checks that a C program records with the compiled library, also compiled as C++98, and that
# LOTUS_DISABLE leaves nothing of the library in it.
# cmake -DCC=cc -DCXX=c++ -DNM=nm -DLIBRARY=liblotus.a -DSOURCE=checkout -DTOOL=lotus-tool -DWORK=dir
#   -P c_program.cmake
cmake_minimum_required(VERSION 3.21)
set(warnings -O2 -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror -I "${SOURCE}/include")
set(program "${CMAKE_CURRENT_LIST_DIR}/loader.c")
file(REMOVE_RECURSE "${WORK}")
file(MAKE_DIRECTORY "${WORK}")

# built(NAME COMMAND...): compiles the program with a command, and links it.
function(built name)
  execute_process(COMMAND ${ARGN} ${warnings} -c "${program}" -o ${name}.o
      WORKING_DIRECTORY "${WORK}" COMMAND_ERROR_IS_FATAL ANY)
  execute_process(COMMAND "${CXX}" ${name}.o "${LIBRARY}" -o ${name} -pthread -ldl
      WORKING_DIRECTORY "${WORK}" COMMAND_ERROR_IS_FATAL ANY)
  execute_process(COMMAND "${WORK}/${name}" run_${name}/lotustrace_log
      WORKING_DIRECTORY "${WORK}" COMMAND_ERROR_IS_FATAL ANY)
endfunction()

built(c99 "${CC}" -std=c99)
built(cxx98 "${CXX}" -x c++ -std=c++98 -Wno-long-long)
foreach(name c99 cxx98)
  execute_process(COMMAND "${TOOL}" stats run_${name} --json --strict
      WORKING_DIRECTORY "${WORK}" OUTPUT_VARIABLE text COMMAND_ERROR_IS_FATAL ANY)
  foreach(figure "10;ops;SRead;count" "5;preprocess;count" "5;wait;count" "4;step;count"
                 "10;stages;Decode;count" "5;counters;built;count")
    list(POP_FRONT figure expected)
    string(JSON value ERROR_VARIABLE error GET "${text}" runs 0 ${figure})
    if(NOT value EQUAL expected)
      message(SEND_ERROR "${name}: ${figure}: ${value} ${error}, not ${expected}, in:\n${text}")
    endif()
  endforeach()
  file(GLOB side "${WORK}/run_${name}/.lotus_beside_*")
  file(READ "${side}" lines)
  if(NOT lines MATCHES "number,SDecode,[0-9]+,1099511627776,")
    message(SEND_ERROR "${name}: the number 2^40 is missing in:\n${lines}")
  endif()
endforeach()

file(GLOB information "${WORK}/run_c99/.lotus_info_*")
file(READ "${information}" lines)
if(NOT lines MATCHES "\nthread [0-9]+ Sconsumer_in_C_a\n")
  message(SEND_ERROR "the thread's name is missing in:\n${lines}")
endif()

built(disabled "${CC}" -std=c99 -DLOTUS_DISABLE)
execute_process(COMMAND "${NM}" disabled.o WORKING_DIRECTORY "${WORK}" OUTPUT_VARIABLE symbols
                COMMAND_ERROR_IS_FATAL ANY)
if(symbols MATCHES "U lotus_" OR EXISTS "${WORK}/run_disabled")
  message(SEND_ERROR "LOTUS_DISABLE leaves:\n${symbols}")
endif()
