# Builds the three libtorch pipelines of the Lotus paper, torch_<name>, and runs each as a test.
include("${PROJECT_SOURCE_DIR}/tools/cmake/torch.cmake")
if(NOT lotus_torch_found)
  return()
endif()
if(NOT TARGET lotus_imagenet)
  lotus_left_out("examples/torch_*" "libjpeg or CLI11 (Debian: libjpeg62-turbo-dev, libcli11-dev)")
  return()
endif()

# lotus_torch_example(NAME [SOURCE...]): builds <build>/examples/NAME from NAME.cpp.
function(lotus_torch_example name)
  lotus_example(${name} torch_common/options.cpp ${ARGN})
  target_link_libraries(example_${name} PRIVATE lotus_imagenet CLI11::CLI11)
  lotus_link_torch(example_${name})
  # Most of the compile time is that of libtorch's headers, so they are compiled only once.
  lotus_as_one_file(example_${name})
endfunction()

lotus_torch_example(torch_image_classification imagenet/image_source.cpp)
lotus_torch_example(torch_segmentation torch_common/volumes.cpp)
lotus_torch_example(torch_detection imagenet/image_source.cpp)

if(LOTUS_BUILD_TESTS)
  set(small --epochs 2 --workers 2)
  lotus_example_test(torch_image_classification example_torch_image_classification
      ${small} --count 20 --size 64 --batch-size 8)
  lotus_example_test(torch_segmentation example_torch_segmentation
      ${small} --count 5 --size 24)
  lotus_example_test(torch_detection example_torch_detection
      ${small} --count 5 --size 64)
  lotus_example_test(torch_no_workers example_torch_segmentation
      --count 3 --size 24 --workers 0 --log-file none)
  # These tests check whether lotus-tool can read the logs of the examples.
  if(TARGET lotus-tool)
    foreach(pair image_classification:RandomResizedCrop segmentation:GaussianNoise detection:Resize)
      string(REPLACE ":" ";" pair "${pair}")
      list(GET pair 0 name)
      list(GET pair 1 operation)
      lotus_example_test(torch_${name}_stats lotus-tool stats ../torch_${name}/run)
      set_tests_properties(example_torch_${name} PROPERTIES FIXTURES_SETUP torch_${name}_logs)
      set_tests_properties(example_torch_${name}_stats PROPERTIES
          FIXTURES_REQUIRED torch_${name}_logs PASS_REGULAR_EXPRESSION "${operation} ")
    endforeach()
  endif()
  lotus_example_fails(torch_wrong_count 2 "--count: Value 0"
      "$<TARGET_FILE:example_torch_segmentation>" --count 0)
  get_property(tests DIRECTORY PROPERTY TESTS)
  list(FILTER tests INCLUDE REGEX "^example_torch_")
  set_tests_properties(${tests} PROPERTIES LABELS "examples;torch")
endif()
