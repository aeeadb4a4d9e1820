# Toolchain of the presets that build with clang++: selects the newest version that is installed, or
# the one that LOTUS_CLANG names. Plain clang++ is Debian's default, and often years older than the
# newest available one.
set(lotus_clang_names "")
foreach(version RANGE 40 14 -1)
  list(APPEND lotus_clang_names clang++-${version})
endforeach()
find_program(LOTUS_CLANG NAMES ${lotus_clang_names} clang++ NAMES_PER_DIR REQUIRED)
mark_as_advanced(LOTUS_CLANG)
set(CMAKE_CXX_COMPILER "${LOTUS_CLANG}")

# Linking the tests takes a fifth of the time with LLVM's linker, if it is installed.
get_filename_component(lotus_clang_folder "${LOTUS_CLANG}" REALPATH)
get_filename_component(lotus_clang_folder "${lotus_clang_folder}" DIRECTORY)
if(EXISTS "${lotus_clang_folder}/ld.lld")
  foreach(kind EXE MODULE SHARED)
    set(CMAKE_${kind}_LINKER_FLAGS_INIT "-fuse-ld=lld")
  endforeach()
endif()
