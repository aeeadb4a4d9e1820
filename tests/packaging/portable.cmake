# Checks that programs that use the whole API compile, link and (if there is an emulator) run on
# platforms where nothing is recorded, both with include/ and with the single header. Skipped if the
# compiler is missing.
# cmake -DCOMPILER=g++ -DEMULATOR=program -DSOURCE=checkout -DWORK=dir -P portable.cmake
find_program(compiler "${COMPILER}")
if(NOT compiler)
  message("skipped: no ${COMPILER} (Debian: ${PACKAGE})")
  return()
endif()
find_program(emulator "${EMULATOR}")
file(MAKE_DIRECTORY "${WORK}")
foreach(include include single_include)
  execute_process(
      COMMAND "${compiler}" -std=c++17 -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror
              -static -I "${SOURCE}/${include}" "${CMAKE_CURRENT_LIST_DIR}/public_names.cpp"
              -o "${WORK}/portable"
      COMMAND_ERROR_IS_FATAL ANY)
  if(emulator)
    execute_process(COMMAND "${emulator}" "${WORK}/portable" COMMAND_ERROR_IS_FATAL ANY)
  endif()
endforeach()
