# Catch2 2, which is one header. It is taken from this machine, but the compiler for the other
# machine must not see this machine's other headers.
set(Catch2_FOUND OFF)
if(EXISTS /usr/include/catch2/catch.hpp)
  set(Catch2_FOUND ON)
  set(include_dir "${PROJECT_BINARY_DIR}/catch2")
  file(MAKE_DIRECTORY "${include_dir}")
  file(CREATE_LINK /usr/include/catch2 "${include_dir}/catch2" SYMBOLIC)
  add_library(Catch2::Catch2 INTERFACE IMPORTED)
  set_target_properties(Catch2::Catch2 PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${include_dir}")
endif()
