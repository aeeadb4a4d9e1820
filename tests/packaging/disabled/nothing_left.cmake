# Checks that an object file with disabled macros or, if it is optimized, classes contains no symbol of the library and no section
# that the loader runs. Without LOTUS_DISABLE it must contain both, which proves the check.
# cmake -DCOMPILER=c++ -DNM=nm -DOBJDUMP=objdump -DINCLUDE_DIR=dir -DWORK=dir -P nothing_left.cmake
file(MAKE_DIRECTORY "${WORK}")
foreach(program only_macros:O0 only_macros:O2 classes:O2)
  string(REGEX MATCH "[^:]+" name "${program}")
  string(REGEX MATCH "[^:]+$" level "${program}")
  foreach(disable "" -DLOTUS_DISABLE)
    set(object "${WORK}/${name}_${level}${disable}.o")
    execute_process(
        COMMAND "${COMPILER}" -std=c++17 -${level} ${disable} -I "${INCLUDE_DIR}"
                -c "${CMAKE_CURRENT_LIST_DIR}/${name}.cpp" -o "${object}"
        COMMAND_ERROR_IS_FATAL ANY)
    execute_process(COMMAND "${NM}" "${object}" OUTPUT_VARIABLE symbols
                    COMMAND_ERROR_IS_FATAL ANY)
    execute_process(COMMAND "${OBJDUMP}" -h "${object}" OUTPUT_VARIABLE sections
                    COMMAND_ERROR_IS_FATAL ANY)
    string(REGEX MATCHALL "[^\n]*(lotus|atfork|atexit|_GLOBAL__)[^\n]*" left "${symbols}")
    string(REGEX MATCHALL "\\.(init|fini)_array" run "${sections}")
    if(disable AND (left OR run))
      list(JOIN left "\n  " left)
      message(FATAL_ERROR "${name} -${level} -DLOTUS_DISABLE leaves ${run}\n  ${left}")
    elseif(NOT disable AND NOT (left AND run))
      message(FATAL_ERROR "${name} -${level}: found no trace of the library: the check does not see it")
    endif()
  endforeach()
endforeach()
