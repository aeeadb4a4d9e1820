# Toolchain file of the preset dev: compiles with ccache if it is installed.
find_program(LOTUS_CCACHE ccache)
mark_as_advanced(LOTUS_CCACHE)
if(LOTUS_CCACHE AND NOT DEFINED CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER "${LOTUS_CCACHE}" CACHE STRING "Starts the compiler")
endif()
