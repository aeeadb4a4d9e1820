# Checks that objects built with two versions of the library link into one program, and that the
# logs contain the records of both.
# cmake -DCOMPILER=c++ -DSOURCE=checkout -DWORK=dir -P two_versions.cmake
cmake_minimum_required(VERSION 3.21)

file(REMOVE_RECURSE "${WORK}")
file(MAKE_DIRECTORY "${WORK}")
file(COPY "${SOURCE}/include" DESTINATION "${WORK}")
# Creates the next minor version, which has other symbols.
file(READ "${SOURCE}/include/lotus/version.hpp" header)
string(REGEX MATCH "LOTUS_VERSION_MINOR ([0-9]+)" minor "${header}")
math(EXPR next "${CMAKE_MATCH_1} + 1")
string(REPLACE "${minor}" "LOTUS_VERSION_MINOR ${next}" header "${header}")
file(WRITE "${WORK}/include/lotus/version.hpp" "${header}")

file(WRITE "${WORK}/this.cpp" "#include <lotus/lotus.hpp>
void other();
int main() {
  if (!lotus::start(\"run/lotustrace_log\")) return 1;
  { LOTUS_SCOPE(\"This\"); }
  other();
  lotus::stop();
}
")
file(WRITE "${WORK}/other.cpp" "#include <lotus/lotus.hpp>
void other() {
  if (!lotus::start(\"run/lotustrace_log\")) return;
  { LOTUS_SCOPE(\"Other\"); }
  lotus::stop();
}
")
execute_process(COMMAND "${COMPILER}" -std=c++17 -I "${SOURCE}/include" -c this.cpp
    WORKING_DIRECTORY "${WORK}" COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND "${COMPILER}" -std=c++17 -I "${WORK}/include" -c other.cpp
    WORKING_DIRECTORY "${WORK}" COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND "${COMPILER}" this.o other.o -o program -pthread -ldl
    WORKING_DIRECTORY "${WORK}" COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND "${WORK}/program" WORKING_DIRECTORY "${WORK}"
    COMMAND_ERROR_IS_FATAL ANY)
file(GLOB logs "${WORK}/run/lotustrace_log_*")
set(lines "")
foreach(log IN LISTS logs)
  file(READ "${log}" text)
  string(APPEND lines "${text}")
endforeach()
foreach(name This Other)
  string(REGEX MATCHALL "(^|\n)S${name}," found "${lines}")
  list(LENGTH found count)
  if(NOT count EQUAL 1)
    message(FATAL_ERROR "${count} records of ${name}, not 1, in:\n${lines}")
  endif()
endforeach()
