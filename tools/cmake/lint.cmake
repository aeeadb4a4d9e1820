# Formatting and clang-tidy as tests. Other versions of the two format and warn differently, so
# both are pinned to what Debian 12 has.
file(GLOB_RECURSE lint_files CONFIGURE_DEPENDS
     "${PROJECT_SOURCE_DIR}/include/*.hpp"
     "${PROJECT_SOURCE_DIR}/bench/*.?pp" "${PROJECT_SOURCE_DIR}/examples/*.?pp"
     "${PROJECT_SOURCE_DIR}/tests/*.?pp" "${PROJECT_SOURCE_DIR}/tools/*.?pp")

find_program(LOTUS_CLANG_FORMAT clang-format-14)
if(LOTUS_CLANG_FORMAT)
  add_test(NAME clang_format COMMAND "${LOTUS_CLANG_FORMAT}" --dry-run --Werror ${lint_files})
  set_tests_properties(clang_format PROPERTIES LABELS lint)
else()
  lotus_left_out("test clang_format" "clang-format-14 (Debian: clang-format)")
endif()

# All headers of the library through lotus.hpp, and the tool.
find_program(LOTUS_RUN_CLANG_TIDY run-clang-tidy-14)
if(LOTUS_RUN_CLANG_TIDY)
  add_test(NAME clang_tidy
      COMMAND "${LOTUS_RUN_CLANG_TIDY}" -quiet -j 2 -p "${PROJECT_BINARY_DIR}"
              "/alone/lotus_lotus_hpp.cpp$" "/tools/lotus-tool/.*cpp$")
  set_tests_properties(clang_tidy PROPERTIES LABELS lint PROCESSORS 2 TIMEOUT 900)
else()
  lotus_left_out("test clang_tidy" "run-clang-tidy-14 (Debian: clang-tidy)")
endif()
