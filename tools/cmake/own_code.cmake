# What every target of this project itself is compiled with. lotus::lotus hands none of it on: a
# user's warnings and sanitizers are the user's.
add_library(lotus_own_flags INTERFACE)
target_compile_options(lotus_own_flags INTERFACE
    -Wall -Wextra -Wpedantic -Wshadow -Wconversion)
# Newer clangs warn of what g++ 12's std::stable_sort itself calls.
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 20)
  target_compile_options(lotus_own_flags INTERFACE -Wno-deprecated-declarations)
endif()
# Only in the presets: a newer compiler, which warns of more, must not break a user's build.
option(LOTUS_WERROR "Treat warnings in this project's own targets as errors" OFF)
if(LOTUS_WERROR)
  target_compile_options(lotus_own_flags INTERFACE -Werror)
endif()

add_library(lotus_own_code INTERFACE)
target_link_libraries(lotus_own_code INTERFACE lotus_own_flags lotus::lotus)

# Sanitizers of the presets: "address,undefined" or "thread".
set(LOTUS_SANITIZE "" CACHE STRING "Sanitizers for this project's own targets")
if(LOTUS_SANITIZE)
  # The vptr check looks at memory through a pipe: it reports nonsense where a test has used up the
  # descriptors.
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

# So is the library, for own programs: where it is a part of another project, with that project's
# flags alone.
if(PROJECT_IS_TOP_LEVEL)
  target_compile_options(lotus PRIVATE
      $<TARGET_PROPERTY:lotus_own_flags,INTERFACE_COMPILE_OPTIONS>)
endif()

# Says once, at configure time, what is left out because a package is missing. Where every test is
# to run that is an error.
option(LOTUS_LEAVE_OUT_NOTHING "Stop where a package of tests, tools or examples is missing" OFF)
function(lotus_left_out what package)
  set(kind STATUS)
  if(LOTUS_LEAVE_OUT_NOTHING)
    set(kind FATAL_ERROR)
  endif()
  message(${kind} "lotus: ${what} left out, because ${package} was not found")
endfunction()

# lotus_as_one_file(TARGET): compiles all its files as one, which takes less than a third of the time.
# So what each keeps to itself has a name of its own, and no namespace of the tool is called like one
# of the library. The preset dev compiles file by file, so that a change costs one; clang-tidy reads
# each file alone as well, so both ways keep working.
option(LOTUS_UNITY "Compile the files of a room of lotus-tool, and of the large example, as one" ON)
function(lotus_as_one_file target)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${LOTUS_UNITY} UNITY_BUILD_BATCH_SIZE 0)
  # A local name may be one that another file keeps to itself; clang warns of that, g++ does not.
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    set_target_properties(${target} PROPERTIES
        UNITY_BUILD_CODE_BEFORE_INCLUDE "#pragma clang diagnostic ignored \"-Wshadow\"")
  endif()
endfunction()
