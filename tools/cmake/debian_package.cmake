# Configures cpack: in the build folder, it creates lotus_VERSION_ARCHITECTURE.deb with all
# installed files.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME lotus)
set(CPACK_PACKAGE_VENDOR lotus)
set(CPACK_PACKAGE_CONTACT "lotus developers <lotus@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
find_program(LOTUS_DPKG_SHLIBDEPS dpkg-shlibdeps)
mark_as_advanced(LOTUS_DPKG_SHLIBDEPS)
if(CMAKE_CROSSCOMPILING AND CMAKE_SYSTEM_PROCESSOR STREQUAL "aarch64")
  set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE arm64)
  # dpkg-shlibdeps cannot find the dependency of a cross-compiled program. tools/release.sh checks
  # this version.
  set(CPACK_DEBIAN_PACKAGE_DEPENDS "libc6 (>= 2.34)")
elseif(LOTUS_DPKG_SHLIBDEPS)
  set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
endif()
# These scripts make packages reproducible: the same build gives the same package, at any time and
# with any umask.
set(CPACK_PROJECT_CONFIG_FILE "${CMAKE_CURRENT_LIST_DIR}/reproducible_package.cmake")
set(CPACK_PRE_BUILD_SCRIPTS "${CMAKE_CURRENT_LIST_DIR}/debian_files.cmake")
set(CPACK_POST_BUILD_SCRIPTS "${CMAKE_CURRENT_LIST_DIR}/debian_archive.cmake")
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION TRUE)
include(CPack)
