# Defines compiler options for all targets of this project. The target lotus::lotus does not pass
# them on to a user's program, which has its own warnings and sanitizers.
add_library(lotus_own_flags INTERFACE)
target_compile_options(lotus_own_flags INTERFACE
    -Wall -Wextra -Wpedantic -Wshadow -Wconversion)
# Newer versions of clang warn about a function that std::stable_sort of g++ 12 calls.
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 20)
  target_compile_options(lotus_own_flags INTERFACE -Wno-deprecated-declarations)
endif()
# Only the presets use this option, because new warnings of a newer compiler must not break a user's
# build.
option(LOTUS_WERROR "Treat warnings in this project's own targets as errors" OFF)
if(LOTUS_WERROR)
  target_compile_options(lotus_own_flags INTERFACE -Werror)
endif()

# Only the preset check uses this option, because it links a hundred programs that are run once.
option(LOTUS_QUICK_LINK "Link with gold if it is there: half the time of GNU ld" OFF)
if(LOTUS_QUICK_LINK)
  include(CheckLinkerFlag)
  check_linker_flag(CXX -fuse-ld=gold LOTUS_HAS_GOLD)
  if(LOTUS_HAS_GOLD)
    add_link_options(-fuse-ld=gold)
  endif()
endif()

add_library(lotus_own_code INTERFACE)
target_link_libraries(lotus_own_code INTERFACE lotus_own_flags lotus::lotus)

# The presets set this to "address,undefined" or "thread".
set(LOTUS_SANITIZE "" CACHE STRING "Sanitizers for this project's own targets")
if(LOTUS_SANITIZE)
  # The vptr check reads memory through a pipe. It reports errors that do not exist if a test has
  # used up all file descriptors.
  target_compile_options(lotus_own_flags INTERFACE
      -fsanitize=${LOTUS_SANITIZE} -fno-sanitize=vptr -fno-sanitize-recover=all
      -fno-omit-frame-pointer -g1)
  target_link_options(lotus_own_flags INTERFACE -fsanitize=${LOTUS_SANITIZE})
  if(LOTUS_SANITIZE MATCHES "address" AND CMAKE_CXX_COMPILER_ID STREQUAL "Clang"
     AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 18)
    add_library(lotus_asan_fork OBJECT "${CMAKE_CURRENT_LIST_DIR}/asan_fork.cpp")
    target_link_libraries(lotus_asan_fork PRIVATE lotus_own_flags)
    target_sources(lotus_own_flags INTERFACE
        $<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:$<TARGET_OBJECTS:lotus_asan_fork>>)
  endif()
endif()

# Compile the library with these options too, but not if it is part of another project: that project
# has its own options.
if(PROJECT_IS_TOP_LEVEL)
  target_compile_options(lotus PRIVATE
      $<TARGET_PROPERTY:lotus_own_flags,INTERFACE_COMPILE_OPTIONS>)
endif()

# lotus_left_out(WHAT PACKAGE) reports that a part is not built because a package is missing. With
# LOTUS_LEAVE_OUT_NOTHING, this is an error.
option(LOTUS_LEAVE_OUT_NOTHING "Stop where a package of tests, tools or examples is missing" OFF)
function(lotus_left_out what package)
  set(kind STATUS)
  if(LOTUS_LEAVE_OUT_NOTHING)
    set(kind FATAL_ERROR)
  endif()
  message(${kind} "lotus: ${what} left out, because ${package} was not found")
endfunction()

# lotus_as_one_file(TARGET): compiles all files of a target as one file (a unity build), which takes
# less than a third of the time. For this, each file-local name must be unique in its target, and a
# namespace of the tool must not have the name of one of the library. The preset dev and clang-tidy
# compile each file separately, so both ways must work.
option(LOTUS_UNITY "Compile the files of a room of lotus-tool, and of the large example, as one" ON)
function(lotus_as_one_file target)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${LOTUS_UNITY} UNITY_BUILD_BATCH_SIZE 0)
  # In a unity build, a local variable may have the name of a function in the anonymous namespace of
  # another file. clang warns about this, so disable the warning.
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    set_target_properties(${target} PROPERTIES
        UNITY_BUILD_CODE_BEFORE_INCLUDE "#pragma clang diagnostic ignored \"-Wshadow\"")
  endif()
endfunction()
