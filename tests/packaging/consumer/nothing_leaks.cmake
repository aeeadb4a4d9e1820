# Checks what a consumer gets from the library's targets: only the include path, the language level,
# two libraries and, with the compiled library, the macro that selects it.
foreach(target lotus::lotus lotus::header_only)
  foreach(property INTERFACE_COMPILE_OPTIONS INTERFACE_COMPILE_DEFINITIONS INTERFACE_LINK_OPTIONS)
    get_target_property(value ${target} ${property})
    if(value AND NOT (target STREQUAL "lotus::lotus" AND value STREQUAL "LOTUS_COMPILED"))
      message(FATAL_ERROR "${target} hands its users ${property}: ${value}")
    endif()
  endforeach()
endforeach()

get_property(tests DIRECTORY PROPERTY TESTS)
if(lotus_SOURCE_DIR)
  get_target_property(options lotus COMPILE_OPTIONS)
  if(options)
    message(FATAL_ERROR "inside another project lotus is compiled with ${options}")
  endif()
  get_property(targets DIRECTORY "${lotus_SOURCE_DIR}" PROPERTY BUILDSYSTEM_TARGETS)
  get_property(folders DIRECTORY "${lotus_SOURCE_DIR}" PROPERTY SUBDIRECTORIES)
  get_property(tests DIRECTORY "${lotus_SOURCE_DIR}" PROPERTY TESTS)
  if(NOT targets STREQUAL "lotus_header_only;lotus" OR folders OR tests)
    message(FATAL_ERROR
            "inside another project lotus configures ${targets}, ${folders}, tests ${tests}")
  endif()
endif()

foreach(variable CMAKE_BUILD_TYPE CMAKE_CXX_EXTENSIONS CMAKE_EXPORT_COMPILE_COMMANDS
                 CMAKE_CXX_FLAGS)
  if(NOT "${${variable}}" STREQUAL "")
    message(FATAL_ERROR "lotus sets ${variable} to ${${variable}} in the project that uses it")
  endif()
endforeach()
