# Checks that only include/lotus/version.hpp contains the version, and that the changelog begins
# with it.
# cmake -DSOURCE=checkout -DVERSION=x.y.z -P version.cmake
cmake_minimum_required(VERSION 3.21)
file(STRINGS "${SOURCE}/docs/changelog.md" versions REGEX "^## [0-9]")
list(GET versions 0 newest)
if(NOT newest STREQUAL "## ${VERSION}")
  message(SEND_ERROR "docs/changelog.md begins with '${newest}', not with version ${VERSION}")
endif()
file(GLOB_RECURSE files "${SOURCE}/include/*" "${SOURCE}/tools/*" "${SOURCE}/docs/*" "${SOURCE}/.github/*")
list(APPEND files "${SOURCE}/README.md" "${SOURCE}/.github/SECURITY.md" "${SOURCE}/CMakeLists.txt"
     "${SOURCE}/meson.build" "${SOURCE}/conanfile.py")
list(FILTER files EXCLUDE REGEX "/docs/changelog[.]md$|[.]png$")
string(REPLACE "." "[.]" pattern "(^|[^0-9.])${VERSION}([^0-9.]|$)")
foreach(file IN LISTS files)
  file(STRINGS "${file}" lines REGEX "${pattern}")
  if(lines)
    message(SEND_ERROR "${file} repeats the version: ${lines}")
  endif()
endforeach()
