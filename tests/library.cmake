# One test program for each header of the library, named after it.
lotus_test(clock clock_test.cpp)
lotus_test(names names_test.cpp)
lotus_test(line line_test.cpp)
lotus_test(scope scope_test.cpp)
lotus_test(batch batch_test.cpp)
lotus_test(compose compose_test.cpp)
lotus_test(session session_test.cpp)

# What happens when things go wrong: faults/.
add_executable(victim faults/victim.cpp)
target_link_libraries(victim PRIVATE lotus_own_code)
lotus_test(kill faults/kill_test.cpp PROGRAMS victim NOT_SINGLE LABELS faults)
lotus_test(fork faults/fork_test.cpp NOT_SINGLE LABELS faults no_tsan)
lotus_test(signal faults/signal_test.cpp NOT_SINGLE LABELS faults)
lotus_test(host_program faults/host_program_test.cpp NOT_SINGLE LABELS faults no_tsan)
# Has an mmap() of its own, as the sanitizers do.
lotus_test(large_pages faults/large_pages_test.cpp NOT_SINGLE LABELS faults no_asan no_tsan)
lotus_test(disk faults/disk_test.cpp NOT_SINGLE LABELS faults)

add_executable(exit_order faults/exit_order.cpp)
target_link_libraries(exit_order PRIVATE lotus_own_code)
lotus_test(exit_order faults/exit_order_test.cpp PROGRAMS exit_order NOT_SINGLE LABELS faults)

foreach(plugin first second)
  add_library(plugin_${plugin} MODULE faults/plugin.cpp)
  target_link_libraries(plugin_${plugin} PRIVATE lotus_own_code)
  target_compile_definitions(plugin_${plugin} PRIVATE PLUGIN_NAME="${plugin}")
endforeach()
# As those of PyTorch's older wheels.
target_compile_definitions(plugin_second PRIVATE _GLIBCXX_USE_CXX11_ABI=0)
add_executable(plugin_host_recording faults/plugin_host.cpp)
target_compile_definitions(plugin_host_recording PRIVATE HOST_RECORDS)
target_link_libraries(plugin_host_recording PRIVATE lotus_own_code)
add_executable(plugin_host_plain faults/plugin_host.cpp)
target_link_libraries(plugin_host_plain PRIVATE lotus_own_flags ${CMAKE_DL_LIBS})
set_target_properties(plugin_first plugin_second plugin_host_recording plugin_host_plain
    PROPERTIES CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON ENABLE_EXPORTS OFF)
lotus_test(plugin faults/plugin_test.cpp NOT_SINGLE LABELS faults
    PROGRAMS plugin_host_recording plugin_host_plain
    DEFINITIONS FIRST_PLUGIN="$<TARGET_FILE:plugin_first>" SECOND_PLUGIN="$<TARGET_FILE:plugin_second>")
add_dependencies(test_plugin plugin_first plugin_second)

add_executable(torture faults/torture.cpp)
target_link_libraries(torture PRIVATE lotus_own_code)
# A process of a sanitizer's forks and dies many times slower.
set(torture_rounds 200)
if(LOTUS_SANITIZE)
  set(torture_rounds 40)
endif()
add_test(NAME torture COMMAND torture --rounds ${torture_rounds})
set_tests_properties(torture PROPERTIES TIMEOUT 300 LABELS "faults;no_tsan"
    ENVIRONMENT ASAN_OPTIONS=detect_leaks=0)

add_executable(sustained faults/sustained.cpp)
target_link_libraries(sustained PRIVATE lotus_own_code)
add_test(NAME sustained COMMAND sustained --seconds 3)
set_tests_properties(sustained PROPERTIES TIMEOUT 120 LABELS faults PROCESSORS 2)

# The README's programs and commands, as they stand.
if(TARGET lotus-tool)
  add_test(NAME readme COMMAND "${CMAKE_COMMAND}" "-DSOURCE=${PROJECT_SOURCE_DIR}"
      "-DWORK=${CMAKE_CURRENT_BINARY_DIR}/readme" "-DCXX=${CMAKE_CXX_COMPILER}"
      "-DTOOL=$<TARGET_FILE:lotus-tool>" -P "${CMAKE_CURRENT_SOURCE_DIR}/readme.cmake")
  set_tests_properties(readme PROPERTIES TIMEOUT 300)
endif()
