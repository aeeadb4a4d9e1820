# Creates the single header, which contains all headers of include/lotus, when a header changes.
#
# lotus_single_header  lotus/lotus.hpp in the build folder, as for a user who copies this one file.
#                      The tests include it under the names of all other headers.
# amalgamate           writes the single header to single_include/lotus, where it is committed.
set(single_header_dir "${PROJECT_BINARY_DIR}/single_include")
file(GLOB_RECURSE lotus_headers CONFIGURE_DEPENDS
     RELATIVE "${PROJECT_SOURCE_DIR}/include" "${PROJECT_SOURCE_DIR}/include/lotus/*.hpp")
include(tools/cmake/opt_in_headers.cmake)
foreach(header IN LISTS lotus_headers)
  if(header MATCHES "${lotus_opt_in_headers}")
    configure_file("include/${header}" "${single_header_dir}/${header}" COPYONLY)
  elseif(NOT header STREQUAL "lotus/lotus.hpp")
    file(CONFIGURE OUTPUT "${single_header_dir}/${header}"
         CONTENT "#include <lotus/lotus.hpp>\n")
  endif()
endforeach()

set(amalgamate "${PROJECT_SOURCE_DIR}/tools/cmake/amalgamate.cmake")
list(TRANSFORM lotus_headers PREPEND "${PROJECT_SOURCE_DIR}/include/" OUTPUT_VARIABLE header_files)
add_custom_command(OUTPUT "${single_header_dir}/lotus/lotus.hpp"
    COMMAND "${CMAKE_COMMAND}" "-DOUTPUT=${single_header_dir}/lotus/lotus.hpp" -P "${amalgamate}"
    DEPENDS "${amalgamate}" "${PROJECT_SOURCE_DIR}/LICENSE" ${header_files}
    COMMENT "Writing the single header" VERBATIM)
add_custom_target(lotus_single_header_file DEPENDS "${single_header_dir}/lotus/lotus.hpp")
add_custom_target(amalgamate COMMAND "${CMAKE_COMMAND}" -P "${amalgamate}" VERBATIM)

add_library(lotus_single_header INTERFACE)
add_dependencies(lotus_single_header lotus_single_header_file)
target_include_directories(lotus_single_header INTERFACE "${single_header_dir}")
target_compile_features(lotus_single_header INTERFACE cxx_std_17)
target_link_libraries(lotus_single_header INTERFACE Threads::Threads ${CMAKE_DL_LIBS})
