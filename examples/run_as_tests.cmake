# Runs the examples as tests. The tests write only to the build folder.

# lotus_example_test(NAME COMMAND...): adds a test that succeeds if the command succeeds.
function(lotus_example_test name)
  add_test(NAME example_${name} COMMAND ${ARGN})
  set(folder "${CMAKE_CURRENT_BINARY_DIR}/tests/${name}")
  file(MAKE_DIRECTORY "${folder}")
  set_tests_properties(example_${name} PROPERTIES
      WORKING_DIRECTORY "${folder}" TIMEOUT 120 LABELS examples)
endfunction()

# lotus_example_fails(NAME STATUS MESSAGE COMMAND...): adds a test that succeeds if the command ends
# with this exit status and prints this message.
function(lotus_example_fails name status message)
  lotus_example_test(${name} "${CMAKE_COMMAND}" -Dstatus=${status} "-Dmessage=${message}"
      -P "${CMAKE_CURRENT_SOURCE_DIR}/expect_failure.cmake" -- ${ARGN})
endfunction()

lotus_example_test(quick_start example_quick_start 3)
lotus_example_test(operations example_operations)

if(TARGET lotus-tool)
  lotus_example_test(production "${CMAKE_CURRENT_SOURCE_DIR}/production/operate.sh"
      "$<TARGET_FILE:example_production>" "$<TARGET_FILE:lotus-tool>")
endif()

if(TARGET example_imagenet_pipeline)
  set(pipeline example_imagenet_pipeline
      --make-images ../images --count 40 --batch-size 6 --step-ms 1 --epochs 2)
  lotus_example_test(imagenet_threads ${pipeline} --workers 3)
  lotus_example_test(imagenet_processes ${pipeline} --workers 3 --worker-kind process)
  lotus_example_test(imagenet_no_workers ${pipeline} --workers 0)
  lotus_example_test(imagenet_not_recorded ${pipeline} --log-file none)
  lotus_example_test(map_imagenet_ops example_map_imagenet_ops)
  lotus_example_test(imagenet_help example_imagenet_pipeline --help)
  # This test creates the images that all other tests read.
  set_tests_properties(example_imagenet_threads PROPERTIES FIXTURES_SETUP lotus_example_images)
  set_tests_properties(
      example_imagenet_processes example_imagenet_no_workers example_imagenet_not_recorded
      PROPERTIES FIXTURES_REQUIRED lotus_example_images)

  if(LOTUS_SANITIZE MATCHES "thread")
    # ThreadSanitizer ends a forked process that starts a thread, but lotus starts one to write
    # logs.
    set_tests_properties(example_imagenet_processes PROPERTIES
        ENVIRONMENT "TSAN_OPTIONS=die_after_fork=0")
  endif()

  set(program "$<TARGET_FILE:example_imagenet_pipeline>")
  lotus_example_fails(imagenet_wrong_kind 2 "--worker-kind: fibre" ${program} --worker-kind fibre)
  lotus_example_fails(imagenet_wrong_count 2 "--count: Value 0" ${program} --count 0)
  lotus_example_fails(imagenet_no_folder 1 "nowhere: No such file" ${program} --images nowhere)
  lotus_example_fails(imagenet_no_images 1 "no images; expected" ${program} --images .)
endif()

foreach(name tbb_stages opencv_workers ffmpeg_clips)
  if(TARGET example_${name})
    lotus_example_fails(${name}_no_folder 1 "nowhere" "$<TARGET_FILE:example_${name}>" nowhere)
  endif()
endforeach()
