# Toolchain of the presets that build with clang++: the newest one there is. LOTUS_CLANG names
# another. Plain clang++ is Debian's choice, and is often years older than what can be installed.
set(lotus_clang_names "")
foreach(version RANGE 40 14 -1)
  list(APPEND lotus_clang_names clang++-${version})
endforeach()
find_program(LOTUS_CLANG NAMES ${lotus_clang_names} clang++ NAMES_PER_DIR REQUIRED)
mark_as_advanced(LOTUS_CLANG)
set(CMAKE_CXX_COMPILER "${LOTUS_CLANG}")
