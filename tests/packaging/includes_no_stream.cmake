# Preprocesses lotus/lotus.hpp, both header-only and for the compiled library, and fails if it
# includes a header that takes long to compile:
# cmake -DCOMPILER=c++ -DINCLUDE_DIR=dir -P includes_no_stream.cmake
function(includes_none_of)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "" "FLAGS;HEADERS")
  execute_process(
      COMMAND "${COMPILER}" -std=c++17 ${arg_FLAGS} -E -I "${INCLUDE_DIR}"
              "${INCLUDE_DIR}/lotus/lotus.hpp"
      OUTPUT_VARIABLE text COMMAND_ERROR_IS_FATAL ANY)
  if(NOT text MATCHES "# [0-9]+ \"[^\"\n]*/string_view\"")
    message(FATAL_ERROR "found no trace of <string_view>: the check does not see what is included")
  endif()
  foreach(header IN LISTS arg_HEADERS)
    if(text MATCHES "# [0-9]+ \"[^\"\n]*/${header}\"")
      message(FATAL_ERROR "lotus/lotus.hpp ${arg_FLAGS} pulls in <${header}>")
    endif()
  endforeach()
endfunction()

set(streams iostream istream ostream sstream fstream ios locale regex filesystem)
includes_none_of(HEADERS ${streams} functional map chrono string vector)
includes_none_of(FLAGS -DLOTUS_COMPILED HEADERS
    ${streams} algorithm array chrono functional map memory new optional string tuple vector
    cstdio cstdlib cstring fcntl.h pthread.h signal.h stdio.h stdlib.h string.h time.h unistd.h)
