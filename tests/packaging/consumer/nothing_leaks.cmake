# A consumer gets the include path, the language level and two libraries, and nothing else.
foreach(property INTERFACE_COMPILE_OPTIONS INTERFACE_COMPILE_DEFINITIONS INTERFACE_LINK_OPTIONS)
  get_target_property(value lotus::lotus ${property})
  if(value)
    message(FATAL_ERROR "lotus::lotus hands its users ${property}: ${value}")
  endif()
endforeach()

get_property(tests DIRECTORY PROPERTY TESTS)
if(lotus_SOURCE_DIR)
  get_property(targets DIRECTORY "${lotus_SOURCE_DIR}" PROPERTY BUILDSYSTEM_TARGETS)
  get_property(folders DIRECTORY "${lotus_SOURCE_DIR}" PROPERTY SUBDIRECTORIES)
  get_property(tests DIRECTORY "${lotus_SOURCE_DIR}" PROPERTY TESTS)
  if(NOT targets STREQUAL "lotus" OR folders OR tests)
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
