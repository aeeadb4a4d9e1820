# Finds a clang++ that can build programs with libc++. Only the clang of the same version finds the
# headers of libc++. Sets lotus_libcxx_compiler, which is empty if there is none.
set(lotus_libcxx_compiler "")
file(WRITE "${PROJECT_BINARY_DIR}/libcxx/libcxx.cpp" "#include <mutex>\nint main() {}\n")
foreach(compiler clang++-22 clang++-20 clang++-18 clang++-16 clang++-14 clang++)
  find_program(LOTUS_LIBCXX_${compiler} NAMES ${compiler})
  mark_as_advanced(LOTUS_LIBCXX_${compiler})
  if(NOT LOTUS_LIBCXX_${compiler})
    continue()
  endif()
  execute_process(COMMAND "${LOTUS_LIBCXX_${compiler}}" -stdlib=libc++ -std=c++17 libcxx.cpp -o libcxx
      WORKING_DIRECTORY "${PROJECT_BINARY_DIR}/libcxx"
      RESULT_VARIABLE status OUTPUT_QUIET ERROR_QUIET)
  if(status EQUAL 0)
    set(lotus_libcxx_compiler "${LOTUS_LIBCXX_${compiler}}")
    break()
  endif()
endforeach()
