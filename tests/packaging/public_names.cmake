# Checks that public_names.cpp contains every public name, and that it runs header-only, with the
# compiled library, with disabled macros, and as on a platform where nothing is recorded.
# cmake -DCOMPILER=c++ -DLIBRARY=liblotus.a -DLIBRARIES=flags -DSOURCE=checkout -DWORK=dir
#   -P public_names.cmake
cmake_minimum_required(VERSION 3.21)
set(program "${CMAKE_CURRENT_LIST_DIR}/public_names.cpp")
file(READ "${program}" used)

# Finds the macros, and the names that headers declare outside of lotus::detail at the beginning of
# a line.
file(GLOB headers "${SOURCE}/include/lotus/*.hpp")
list(FILTER headers EXCLUDE REGEX "/(config|version|torch)\\.hpp$")
set(names "")
foreach(header IN LISTS headers)
  file(READ "${header}" text)
  string(REPLACE "[[nodiscard]] " "" text "${text}")
  string(FIND "${text}" "\nnamespace detail {" begin)
  while(NOT begin EQUAL -1)
    string(SUBSTRING "${text}" 0 ${begin} before)
    string(SUBSTRING "${text}" ${begin} -1 text)
    string(FIND "${text}" "}  // namespace detail" end)
    string(SUBSTRING "${text}" ${end} -1 text)
    string(PREPEND text "${before}")
    string(FIND "${text}" "\nnamespace detail {" begin)
  endwhile()
  string(REGEX MATCHALL "\n(class|struct|enum class|using) [a-z_]+" types "${text}")
  string(REGEX MATCHALL "\n[a-zA-Z_:<][^\n();{}]* [a-z_]+\\(" functions "${text}")
  string(REGEX MATCHALL "#define LOTUS_[A-Z_]+" macros "${text}")
  list(FILTER macros EXCLUDE REGEX "_DETAIL_|_HPP$")
  foreach(found IN LISTS types functions macros)
    string(REGEX MATCH "[A-Za-z_]+\\(?$" name "${found}")
    string(REPLACE "(" "" name "${name}")
    list(APPEND names "${name}")
  endforeach()
endforeach()
list(REMOVE_DUPLICATES names)
list(LENGTH names count)
if(count LESS 50)
  message(FATAL_ERROR "found only ${count} public names, so the check does not see them: ${names}")
endif()
foreach(name IN LISTS names)
  if(name MATCHES "^LOTUS_")
    set(use "${name}\\(")
  else()
    set(use "lotus::${name}[^a-z_]")
  endif()
  if(NOT used MATCHES "${use}")
    message(SEND_ERROR "public_names.cpp does not use ${name}")
  endif()
endforeach()

# built(NAME FLAG...): checks that the program compiles with these FLAGs without a warning, and that
# it runs.
function(built name)
  file(REMOVE_RECURSE "${WORK}/${name}")
  file(MAKE_DIRECTORY "${WORK}/${name}")
  execute_process(
      COMMAND "${COMPILER}" -std=c++17 -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror
              -I "${SOURCE}/include" "${program}" ${ARGN} -o "${WORK}/${name}/program"
              ${LIBRARIES}
      COMMAND_ERROR_IS_FATAL ANY)
  execute_process(COMMAND "${WORK}/${name}/program" "${WORK}/${name}/run/log"
      WORKING_DIRECTORY "${WORK}/${name}" RESULT_VARIABLE status)
  if(NOT status EQUAL 0)
    message(SEND_ERROR "${name}: ended with ${status}")
  endif()
endfunction()

built(header_only)
built(compiled -DLOTUS_COMPILED "${LIBRARY}")
built(disabled -DLOTUS_DISABLE -DLOTUS_COMPILED "${LIBRARY}")
built(unsupported -U__linux__)
built(unsupported_compiled -U__linux__ -DLOTUS_COMPILED -DLOTUS_IMPLEMENTATION)
