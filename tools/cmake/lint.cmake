# Runs clang-format and clang-tidy as tests. Different versions of these programs give different
# results, so the versions are fixed. clang-tidy-14 (Debian) is used only if clang-tidy-22 is
# missing: it also checks declarations in system headers and takes five times as long.
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

# Checks each file that this build folder compiles once. The file .clang-tidy of a folder selects
# the checks.
find_program(LOTUS_CLANG_TIDY NAMES clang-tidy-22 clang-tidy-14 NAMES_PER_DIR)
if(LOTUS_CLANG_TIDY)
  add_test(NAME clang_tidy COMMAND "${PROJECT_SOURCE_DIR}/tools/tidy.sh" "${PROJECT_BINARY_DIR}")
  set_tests_properties(clang_tidy PROPERTIES
      LABELS lint PROCESSORS 2 TIMEOUT 1800 COST 400
      ENVIRONMENT "CLANG_TIDY=${LOTUS_CLANG_TIDY}")
else()
  lotus_left_out("test clang_tidy" "clang-tidy-22 (Debian: clang-tidy)")
endif()
