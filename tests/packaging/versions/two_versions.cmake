# Checks that objects and plugins of other versions work in a program of this version: an object with
# another LOTUS_ABI, a plugin of the next version with the same LOTUS_ABI, and a plugin that was built
# with the header of version 0.1. The logs must contain the records of all, once.
# cmake -DCOMPILER=c++ -DSOURCE=checkout -DWORK=dir [-DTOOL=lotus-tool] -P two_versions.cmake
cmake_minimum_required(VERSION 3.21)

file(REMOVE_RECURSE "${WORK}")
file(MAKE_DIRECTORY "${WORK}")

# edited_headers(FOLDER MACRO): copies the headers, with the next value of a macro of version.hpp.
function(edited_headers folder macro)
  file(COPY "${SOURCE}/include" DESTINATION "${WORK}/${folder}")
  file(READ "${SOURCE}/include/lotus/version.hpp" header)
  string(REGEX MATCH "define ${macro} ([0-9]+)" line "${header}")
  math(EXPR next "${CMAKE_MATCH_1} + 1")
  string(REPLACE "${line}" "define ${macro} ${next}" header "${header}")
  file(WRITE "${WORK}/${folder}/include/lotus/version.hpp" "${header}")
endfunction()
edited_headers(abi LOTUS_ABI)
edited_headers(minor LOTUS_VERSION_MINOR)
file(ARCHIVE_EXTRACT INPUT "${SOURCE}/tests/samples/0.1/header.tar.xz" DESTINATION "${WORK}/first/include")

function(command)
  execute_process(COMMAND ${ARGN} WORKING_DIRECTORY "${WORK}" COMMAND_ERROR_IS_FATAL ANY)
endfunction()

# has(FOLDER NAME...): checks that the logs in a folder contain one record of each name.
function(has folder)
  file(GLOB logs "${WORK}/${folder}/lotustrace_log_*")
  set(lines "")
  foreach(log IN LISTS logs)
    file(READ "${log}" text)
    string(APPEND lines "${text}")
  endforeach()
  foreach(name IN LISTS ARGN)
    string(REGEX MATCHALL "(^|\n)S${name}," found "${lines}")
    list(LENGTH found count)
    if(NOT count EQUAL 1)
      message(SEND_ERROR "${folder}: ${count} records of ${name}, not 1, in:\n${lines}")
    endif()
  endforeach()
  if(TOOL)
    command("${TOOL}" stats "${folder}" --json --strict)
  endif()
endfunction()

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
command("${COMPILER}" -std=c++17 -I "${SOURCE}/include" -c this.cpp)
command("${COMPILER}" -std=c++17 -I abi/include -c other.cpp)
command("${COMPILER}" this.o other.o -o program -pthread -ldl)
command("${WORK}/program")
has(run This Other)

# The program starts no recording itself. A plugin with the same LOTUS_ABI is recorded because the
# program is; one with another looks for LOTUS_LOG_FILE.
file(WRITE "${WORK}/host.cpp" "#include <dlfcn.h>
#include <lotus/lotus.hpp>
int main(int count, char** arguments) {
  if (count > 2 && !lotus::start(arguments[2])) return 1;
  { LOTUS_SCOPE(\"Host\"); }
  void* const plugin = dlopen(arguments[1], RTLD_NOW);
  if (plugin == nullptr) return 2;
  reinterpret_cast<void (*)()>(dlsym(plugin, \"work\"))();
  { LOTUS_SCOPE(\"After\"); }
  return dlclose(plugin);
}
")
file(WRITE "${WORK}/plugin.cpp" "#include <lotus/lotus.hpp>
extern \"C\" __attribute__((visibility(\"default\"))) void work() {
  LOTUS_SCOPE(\"Plugin\");
  LOTUS_BATCH_PREPROCESSED(7);
}
")
set(plugin "${COMPILER}" -std=c++17 -shared -fPIC -fvisibility=hidden plugin.cpp -pthread -ldl)
command("${COMPILER}" -std=c++17 -I "${SOURCE}/include" host.cpp -o host -pthread -ldl)
command(${plugin} -I minor/include -o minor.so)
command(${plugin} -I first/include -o first.so)
command("${WORK}/host" "${WORK}/minor.so" one/lotustrace_log)
has(one Host Plugin After BatchPreprocessed_7)
command("${CMAKE_COMMAND}" -E env LOTUS_LOG_FILE=two/lotustrace_log "${WORK}/host" "${WORK}/first.so")
has(two Host Plugin After BatchPreprocessed_7)
