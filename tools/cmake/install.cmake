# Configures cmake --install: installs the headers, the library, lotus-tool, the targets
# lotus::lotus and lotus::header_only for find_package, and lotus.pc and lotus-header-only.pc for
# pkg-config.
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

# The installed package files find headers and library relative to their own path, so that the
# installed folder may be moved.
set(lotus_package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/lotus")
set(lotus_pkgconfig_dir "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
file(RELATIVE_PATH lotus_pc_to_prefix "/prefix/${lotus_pkgconfig_dir}" "/prefix")
set(lotus_pc_libs "-pthread")
foreach(library IN LISTS CMAKE_DL_LIBS)
  string(APPEND lotus_pc_libs " -l${library}")
endforeach()

configure_package_config_file(tools/cmake/lotus-config.cmake.in
    "${PROJECT_BINARY_DIR}/cmake/lotus-config.cmake"
    INSTALL_DESTINATION "${lotus_package_dir}"
    NO_SET_AND_CHECK_MACRO)
# While the version is 0.x, each minor version may be incompatible.
write_basic_package_version_file("${PROJECT_BINARY_DIR}/cmake/lotus-config-version.cmake"
    COMPATIBILITY SameMinorVersion)
foreach(package lotus lotus-header-only)
  configure_file(tools/cmake/${package}.pc.in "${PROJECT_BINARY_DIR}/cmake/${package}.pc" @ONLY)
  install(FILES "${PROJECT_BINARY_DIR}/cmake/${package}.pc" DESTINATION "${lotus_pkgconfig_dir}")
endforeach()

install(DIRECTORY include/ DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" FILES_MATCHING PATTERN "*.hpp" PATTERN "*.h")
install(TARGETS lotus lotus_header_only EXPORT lotus
        ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}"
        INCLUDES DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
install(EXPORT lotus FILE lotus-targets.cmake NAMESPACE lotus:: DESTINATION "${lotus_package_dir}")
# Also install lotus.cps, for tools that read the Common Package Specification.
if(CMAKE_VERSION VERSION_GREATER_EQUAL 4.3)
  install(PACKAGE_INFO lotus EXPORT lotus VERSION ${PROJECT_VERSION}
          COMPAT_VERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}.0
          DEFAULT_TARGETS lotus LICENSE MIT)
endif()
install(FILES "${PROJECT_BINARY_DIR}/cmake/lotus-config.cmake"
              "${PROJECT_BINARY_DIR}/cmake/lotus-config-version.cmake"
        DESTINATION "${lotus_package_dir}")
install(FILES LICENSE DESTINATION "${CMAKE_INSTALL_DATADIR}/doc/lotus")
if(TARGET lotus_memory)
  # This library is only preloaded by its path. It has its own folder, so that ldconfig does not
  # list it.
  install(TARGETS lotus_memory DESTINATION "${CMAKE_INSTALL_LIBDIR}/lotus/preload")
endif()
if(TARGET lotus-tool)
  install(TARGETS lotus-tool DESTINATION "${CMAKE_INSTALL_BINDIR}")
endif()
