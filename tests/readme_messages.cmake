# Compares docs/troubleshooting.md with the sources. Its headings and the first column of its tables
# quote messages, with "…" for a name or a number; each fixed part must be a text in the sources.
# Conversely, every message of the library and every check must be explained.
# cmake -DSOURCE=... -P readme_messages.cmake
cmake_minimum_required(VERSION 3.21)

# plain(VARIABLE): replaces the characters that have a special meaning in CMake lists.
macro(plain variable)
  string(REPLACE ";" "," ${variable} "${${variable}}")
  string(REPLACE "[" "(" ${variable} "${${variable}}")
  string(REPLACE "]" ")" ${variable} "${${variable}}")
endmacro()

file(GLOB_RECURSE files "${SOURCE}/include/lotus/*.hpp" "${SOURCE}/tools/lotus-tool/*.[ch]pp"
     "${SOURCE}/tools/lotus-memory/*.[ch]pp")
set(sources "")
set(library "")
set(part "")  # appending to a long text copies it
foreach(file IN LISTS files)
  file(READ "${file}" text)
  plain(text)
  # Adjacent string literals are one string.
  string(REGEX REPLACE "\"[ \n]*\"" "" text "${text}")
  string(APPEND part "${text}\n")
  string(LENGTH "${part}" bytes)
  if(bytes GREATER 200000)
    string(APPEND sources "${part}")
    set(part "")
  endif()
  if(file MATCHES "/include/lotus/")
    string(APPEND library "${text}\n")
  endif()
endforeach()
string(APPEND sources "${part}")

file(READ "${SOURCE}/docs/troubleshooting.md" document)
plain(document)
string(REPLACE "\\|" "|" document "${document}")  # in tables, | is escaped as \|
string(REGEX MATCHALL "\n(#+|\\|) `[^`\n]+`" quotes "${document}")
foreach(quote IN LISTS quotes)
  string(REGEX REPLACE "^[^`]*`([^`]*)`" "\\1" message "${quote}")
  string(REPLACE "…" ";" parts "${message}")
  foreach(part IN LISTS parts)
    string(STRIP "${part}" part)
    string(FIND "${sources}" "${part}" at)
    if(at EQUAL -1)
      message(SEND_ERROR "docs/troubleshooting.md explains \"${message}\", but no source prints "
          "\"${part}\"")
    endif()
  endforeach()
endforeach()
list(LENGTH quotes explained)
if(explained LESS 50)
  message(FATAL_ERROR "docs/troubleshooting.md quotes ${explained} messages only")
endif()

# needed(TEXT PATTERN): checks that the longest fixed part of each message that the pattern finds is
# explained.
function(needed text pattern)
  string(REGEX MATCHALL "${pattern}\"[^\"]+\"" calls "${text}")
  if(calls STREQUAL "")
    message(FATAL_ERROR "no message is found by ${pattern}")
  endif()
  foreach(call IN LISTS calls)
    string(REGEX REPLACE "^[^\"]*\"([^\"]*)\"" "\\1" message "${call}")
    string(REGEX REPLACE "%[.*a-z]+|`" ";" parts "${message}")
    set(longest "")
    set(most 0)
    foreach(part IN LISTS parts)
      string(LENGTH "${part}" length)
      if(length GREATER most)
        set(most ${length})
        set(longest "${part}")
      endif()
    endforeach()
    string(STRIP "${longest}" longest)
    string(FIND "${document}" "${longest}" at)
    if(at EQUAL -1)
      message(SEND_ERROR "docs/troubleshooting.md does not explain \"${message}\"")
    endif()
  endforeach()
endfunction()
needed("${library}" "[^_a-z]say\\([ \n]*")
needed("${sources}" "[^_a-z]fail\\(")
