# Toolchain file of the presets that build with clang++. Selects the newest installed version, or
# the one that LOTUS_CLANG names. The command clang++ is Debian's default version, which is often
# years older.
set(lotus_clang_names "")
foreach(version RANGE 40 14 -1)
  list(APPEND lotus_clang_names clang++-${version})
endforeach()
find_program(LOTUS_CLANG NAMES ${lotus_clang_names} clang++ NAMES_PER_DIR REQUIRED)
mark_as_advanced(LOTUS_CLANG)
set(CMAKE_CXX_COMPILER "${LOTUS_CLANG}")

# Use LLVM's linker if it is installed, because it links the tests five times as fast.
get_filename_component(lotus_clang_folder "${LOTUS_CLANG}" REALPATH)
get_filename_component(lotus_clang_folder "${lotus_clang_folder}" DIRECTORY)
if(EXISTS "${lotus_clang_folder}/ld.lld")
  foreach(kind EXE MODULE SHARED)
    set(CMAKE_${kind}_LINKER_FLAGS_INIT "-fuse-ld=lld")
  endforeach()
endif()
