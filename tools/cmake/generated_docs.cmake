# Writes the output of lotus-tool into the documentation: the text between these two comments
#   <!-- generated: lotus-tool help stats -->
#   <!-- end -->
# is replaced by the output of the command. With CHECK=ON, reports an error if the text differs, and
# writes nothing. Usage:
#   cmake -DTOOL=build/bin/lotus-tool [-DCHECK=ON] -P tools/cmake/generated_docs.cmake
cmake_minimum_required(VERSION 3.21)
get_filename_component(docs "${CMAKE_CURRENT_LIST_DIR}/../../docs" ABSOLUTE)
set(end "<!-- end -->")

# Sets the line width for the output of lotus-tool, so that it does not depend on the terminal.
set(ENV{COLUMNS} 80)

# lotus-tool is built without some commands if packages are missing. Its help is then incomplete.
execute_process(COMMAND "${TOOL}" help OUTPUT_VARIABLE help)
if(NOT help MATCHES "\n  report ")
  message(STATUS "skipped: this lotus-tool was built without report")
  return()
endif()

# filled(TEXT VARIABLE): sets the text with each generated region replaced.
function(filled text variable)
  set(result "")
  while(text MATCHES "<!-- generated: lotus-tool ([a-z -]+) -->\n")
    set(marker "${CMAKE_MATCH_0}")
    string(REPLACE " " ";" words "${CMAKE_MATCH_1}")
    string(FIND "${text}" "${marker}" begin)
    string(LENGTH "${marker}" length)
    math(EXPR begin "${begin} + ${length}")
    string(SUBSTRING "${text}" 0 ${begin} before)
    string(SUBSTRING "${text}" ${begin} -1 text)
    string(FIND "${text}" "${end}" at)
    if(at EQUAL -1)
      message(FATAL_ERROR "${marker} has no ${end}")
    endif()
    string(SUBSTRING "${text}" 0 ${at} old)
    string(SUBSTRING "${text}" ${at} -1 text)
    execute_process(COMMAND "${TOOL}" ${words}
        RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE error)
    if(NOT status EQUAL 0)
      message(FATAL_ERROR "lotus-tool ${CMAKE_MATCH_1}: status ${status}: ${error}")
    endif()
    if(words MATCHES "--markdown")
      string(APPEND result "${before}\n${output}\n")
    else()
      string(APPEND result "${before}```text\n${output}```\n")
    endif()
  endwhile()
  set(${variable} "${result}${text}" PARENT_SCOPE)
endfunction()

file(GLOB_RECURSE documents "${docs}/*.md")
foreach(document IN LISTS documents)
  file(READ "${document}" text)
  filled("${text}" wanted)
  if(CHECK AND NOT text STREQUAL wanted)
    message(SEND_ERROR "${document} is out of date: cmake -DTOOL=BUILD/bin/lotus-tool -P "
        "tools/cmake/generated_docs.cmake")
  elseif(NOT CHECK AND NOT text STREQUAL wanted)
    file(WRITE "${document}" "${wanted}")
  endif()
endforeach()

# Reports an error for each command that is not in the reference.
string(REGEX REPLACE ".*\nRecord:\n(.*)\n\nOptions:.*" "\\1" commands "${help}")
string(REGEX MATCHALL "(^|\n)  [a-z]+" commands "${commands}")
file(READ "${docs}/reference/commands.md" reference)
foreach(command IN LISTS commands)
  string(STRIP "${command}" command)
  if(NOT reference MATCHES "<!-- generated: lotus-tool help ${command} -->")
    message(SEND_ERROR "docs/reference/commands.md lacks lotus-tool ${command}")
  endif()
endforeach()
