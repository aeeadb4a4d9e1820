# Provides Catch2 2 for the cross-compiled tests. Catch2 2 is a single header, which is the same for
# all architectures, so the header of this machine is used. The compiler must not find any other
# header of this machine; therefore only the folder of Catch2 is linked.
set(Catch2_FOUND OFF)
if(EXISTS /usr/include/catch2/catch.hpp)
  set(Catch2_FOUND ON)
  set(include_dir "${PROJECT_BINARY_DIR}/catch2")
  file(MAKE_DIRECTORY "${include_dir}")
  file(CREATE_LINK /usr/include/catch2 "${include_dir}/catch2" SYMBOLIC)
  add_library(Catch2::Catch2 INTERFACE IMPORTED)
  set_target_properties(Catch2::Catch2 PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${include_dir}")
endif()
