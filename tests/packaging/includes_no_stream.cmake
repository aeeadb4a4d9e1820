# Preprocesses lotus/lotus.hpp and fails on a header that costs its users compile time:
# cmake -DCOMPILER=c++ -DINCLUDE_DIR=dir -P includes_no_stream.cmake
execute_process(
    COMMAND "${COMPILER}" -std=c++17 -E -I "${INCLUDE_DIR}" "${INCLUDE_DIR}/lotus/lotus.hpp"
    OUTPUT_VARIABLE text COMMAND_ERROR_IS_FATAL ANY)
if(NOT text MATCHES "# [0-9]+ \"[^\"\n]*/string_view\"")
  message(FATAL_ERROR "found no trace of <string_view>: the check does not see what is included")
endif()
foreach(header iostream istream ostream sstream fstream ios locale regex filesystem)
  if(text MATCHES "# [0-9]+ \"[^\"\n]*/${header}\"")
    message(FATAL_ERROR "lotus/lotus.hpp pulls in <${header}>")
  endif()
endforeach()
