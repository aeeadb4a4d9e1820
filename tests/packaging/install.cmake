# Installs the build into a folder, moves this folder to PREFIX, and compares the headers there with
# HEADERS: cmake -DBUILD=dir -DPREFIX=dir -DHEADERS=dir -P install.cmake
file(REMOVE_RECURSE "${PREFIX}" "${PREFIX}_first")
execute_process(COMMAND "${CMAKE_COMMAND}" --install "${BUILD}" --prefix "${PREFIX}_first"
                COMMAND_ERROR_IS_FATAL ANY)
file(RENAME "${PREFIX}_first" "${PREFIX}")

file(GLOB_RECURSE wanted RELATIVE "${HEADERS}" "${HEADERS}/*.hpp" "${HEADERS}/*.h")
file(GLOB_RECURSE installed RELATIVE "${PREFIX}/include" "${PREFIX}/include/*")
if(NOT wanted STREQUAL installed)
  message(FATAL_ERROR "installed ${installed}, wanted ${wanted}")
endif()
if(NOT EXISTS "${PREFIX}/share/doc/lotus/LICENSE")
  message(FATAL_ERROR "installed without the license")
endif()
