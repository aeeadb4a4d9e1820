# Writes all headers that lotus/lotus.hpp includes, directly or indirectly, into one file, each at
# its first include.
#
# cmake [-DINCLUDE_DIR=dir] [-DOUTPUT=file] [-DCURRENT=file] -P amalgamate.cmake
#   OUTPUT   defaults to single_include/lotus/lotus.hpp
#   CURRENT  is compared with the result: the script fails if they differ
#
# Include guards are kept, so that a header of include/lotus may be included after the single header.
# The output depends only on the headers. It is an error if headers include each other in a cycle, if
# a header is missing, or if a header is not included by any other.
cmake_minimum_required(VERSION 3.21)

get_filename_component(source_dir "${CMAKE_CURRENT_LIST_DIR}/../.." ABSOLUTE)
if(NOT INCLUDE_DIR)
  set(INCLUDE_DIR "${source_dir}/include")
endif()
if(NOT OUTPUT)
  set(OUTPUT "${source_dir}/single_include/lotus/lotus.hpp")
endif()

include("${CMAKE_CURRENT_LIST_DIR}/opt_in_headers.cmake")

# Appends the text of `header` to the global property `text`. `stack` lists the headers through
# which it is included. `conditional` says in which condition the include is. ON: in an #if, so that
# a later include of the same header must not be removed. SUPPORTED: in an #if LOTUS_SUPPORTED,
# which contains all includes of such headers. UNSUPPORTED: in the #else of such an #if; a later
# include in another such #else is removed.
function(emit header stack conditional)
  if(header IN_LIST stack)
    list(JOIN stack " -> " chain)
    message(FATAL_ERROR "include cycle: ${chain} -> ${header}")
  endif()
  get_property(done GLOBAL PROPERTY done)
  if(conditional STREQUAL "UNSUPPORTED")
    get_property(more GLOBAL PROPERTY done_UNSUPPORTED)
    list(APPEND done ${more})
  endif()
  if(header IN_LIST done)
    return()
  endif()
  set_property(GLOBAL APPEND PROPERTY reached "${header}")
  if(conditional STREQUAL "UNSUPPORTED")
    set_property(GLOBAL APPEND PROPERTY done_UNSUPPORTED "${header}")
  elseif(NOT conditional STREQUAL "ON")
    set_property(GLOBAL APPEND PROPERTY done "${header}")
  endif()
  if(NOT EXISTS "${INCLUDE_DIR}/${header}")
    list(JOIN stack " -> " chain)
    message(FATAL_ERROR "missing header: ${header}, included by ${chain}")
  endif()
  list(APPEND stack "${header}")

  # Cuts the text at its include lines. The text is never treated as a CMake list, because a list
  # would change brackets and semicolons.
  file(READ "${INCLUDE_DIR}/${header}" rest)
  set(open_ifs "")
  string(PREPEND rest "\n")
  while(rest MATCHES "\n( *)#include ([<\"])([^>\"]+)[>\"][^\n]*")
    set(line "${CMAKE_MATCH_0}")
    set(indent "${CMAKE_MATCH_1}")
    set(quote "${CMAKE_MATCH_2}")
    set(included "${CMAKE_MATCH_3}")
    string(FIND "${rest}" "${line}" at)
    string(LENGTH "${line}" length)
    string(SUBSTRING "${rest}" 0 ${at} before)
    math(EXPR at "${at} + ${length}")
    string(SUBSTRING "${rest}" ${at} -1 rest)
    set_property(GLOBAL APPEND_STRING PROPERTY text "${before}")

    # The conditions around the include line, the innermost last. Only indented directives count:
    # clang-format indents a directive inside a condition, but not inside the include guard.
    string(REGEX MATCHALL "\n *#(if|elif|else|endif)[^\n]*" directives "${before}")
    foreach(directive IN LISTS directives)
      string(STRIP "${directive}" directive)
      if(directive MATCHES "^#if")
        list(APPEND open_ifs "${directive}")
      else()
        list(POP_BACK open_ifs condition)
        if(NOT directive MATCHES "^#endif")
          list(APPEND open_ifs "${directive} ${condition}")
        endif()
      endif()
    endforeach()
    set(branch "")
    if(open_ifs)
      list(GET open_ifs -1 branch)
    endif()
    set(in_if ${conditional})
    if(indent AND branch MATCHES "LOTUS_IMPLEMENTATION")
      # The engine is the last header, so its headers count as unconditional. No header may come
      # after it.
    elseif(indent AND branch STREQUAL "#if LOTUS_SUPPORTED" AND conditional MATCHES "^(OFF|SUPPORTED)$")
      set(in_if SUPPORTED)
    elseif(indent AND branch STREQUAL "#else #if LOTUS_SUPPORTED" AND conditional MATCHES "^(OFF|UNSUPPORTED)$")
      set(in_if UNSUPPORTED)
    elseif(indent)
      set(in_if ON)
    endif()
    if(included MATCHES "^lotus/" AND quote STREQUAL "\"")
      emit("${included}" "${stack}" ${in_if})
    elseif(included MATCHES "^lotus/" OR quote STREQUAL "\"")
      message(FATAL_ERROR "${header}: own headers are included as \"lotus/...\", others as <...>, "
                          "so not ${included}")
    else()
      get_property(system_headers GLOBAL PROPERTY system_headers_OFF)
      if(in_if MATCHES "SUPPORTED")
        get_property(more GLOBAL PROPERTY system_headers_${in_if})
        list(APPEND system_headers ${more})
      endif()
      if(NOT included IN_LIST system_headers)
        set_property(GLOBAL APPEND_STRING PROPERTY text "${line}")
        if(NOT in_if STREQUAL "ON")
          set_property(GLOBAL APPEND PROPERTY system_headers_${in_if} "${included}")
        endif()
      endif()
    endif()
  endwhile()
  set_property(GLOBAL APPEND_STRING PROPERTY text "${rest}")
endfunction()

emit(lotus/lotus.hpp "" OFF)

get_property(reached GLOBAL PROPERTY reached)
file(GLOB_RECURSE headers RELATIVE "${INCLUDE_DIR}" "${INCLUDE_DIR}/lotus/*.hpp")
list(REMOVE_ITEM headers ${reached})
list(FILTER headers EXCLUDE REGEX "${lotus_opt_in_headers}")
if(headers)
  message(FATAL_ERROR "not reached from lotus/lotus.hpp: ${headers}\n"
                      "Include it there, or name it in tools/cmake/opt_in_headers.cmake.")
endif()

file(READ "${source_dir}/LICENSE" licence)
string(STRIP "${licence}" licence)
string(REPLACE "\n" "\n// " licence "${licence}")
string(REPLACE "// \n" "//\n" licence "${licence}")
get_property(text GLOBAL PROPERTY text)
# Where an include line was removed, several empty lines may follow each other. Keep one.
string(REGEX REPLACE "\n\n\n+" "\n\n" text "${text}")
file(WRITE "${OUTPUT}" "// Generated from include/lotus by tools/cmake/amalgamate.cmake: do not edit.
// SPDX-License-Identifier: MIT
//
// ${licence}
${text}")

if(CURRENT)
  execute_process(COMMAND "${CMAKE_COMMAND}" -E compare_files "${OUTPUT}" "${CURRENT}"
                  RESULT_VARIABLE differs OUTPUT_QUIET ERROR_QUIET)
  if(differs)
    message(FATAL_ERROR "${CURRENT} is out of date: build the target amalgamate")
  endif()
endif()
