# cmake -Dstatus=... -Dmessage=... -P expect_failure.cmake -- COMMAND...
# Runs the command, and fails unless it ends with this exit status and prints one line with this
# message on stderr.
set(command "")
set(after_dashes FALSE)
math(EXPR last "${CMAKE_ARGC} - 1")
foreach(i RANGE ${last})
  if(after_dashes)
    list(APPEND command "${CMAKE_ARGV${i}}")
  elseif(CMAKE_ARGV${i} STREQUAL "--")
    set(after_dashes TRUE)
  endif()
endforeach()

execute_process(COMMAND ${command}
                RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE error)
if(NOT result STREQUAL status)
  message(FATAL_ERROR "status ${result} instead of ${status}: ${output}${error}")
endif()
string(FIND "${error}" "${message}" at)
if(at EQUAL -1 OR NOT error MATCHES "^[^\n]*\n$")
  message(FATAL_ERROR "expected one line with '${message}': ${error}")
endif()
