# Finds libtorch for the folders that include this file, and sets lotus_torch_found. libtorch is
# only used with -DLOTUS_WITH_TORCH=ON, because code that uses it takes minutes to compile. Uses
# Debian's libtorch-dev, or the libtorch that CMAKE_PREFIX_PATH or Torch_DIR names. tools/torch2.sh
# sets these variables for PyPI's package.
option(LOTUS_WITH_TORCH "Build and test the libtorch adapter and its examples" OFF)

set(lotus_torch_found FALSE)
if(LOTUS_WITH_TORCH)
  # A libtorch for CUDA, such as PyPI's, looks for the CUDA toolkit and its compiler and fails if
  # they are missing. It skips this if the target torch::cudart exists. The code that is built here
  # runs only on the CPU.
  if(NOT TARGET torch::cudart)
    add_library(torch::cudart INTERFACE IMPORTED)
  endif()
  # libtorch's CMake package warns that the library kineto is missing. It is part of libtorch_cpu.
  set(kineto_LIBRARY torch_cpu)
  find_package(Torch CONFIG QUIET)
  if(Torch_FOUND)
    set(lotus_torch_found TRUE)
  else()
    lotus_left_out("libtorch adapter" "libtorch (Debian: libtorch-dev)")
  endif()
endif()

# lotus_link_torch(TARGET): links libtorch to a target. Its headers are treated as system headers,
# so that they cause no warnings. Does not use TORCH_LIBRARIES, because this variable also names
# CUDA libraries, and it names Debian's libc10 as well if Debian's libtorch is installed next to
# another one. The target lotus_with_torch builds all targets that are linked this way.
function(lotus_link_torch target)
  target_include_directories(${target} SYSTEM PRIVATE ${TORCH_INCLUDE_DIRS})
  target_link_libraries(${target} PRIVATE torch_cpu c10)
  # Compile with the C++ standard that libtorch's headers need, which may be C++20.
  target_compile_features(${target} PRIVATE $<TARGET_PROPERTY:torch,INTERFACE_COMPILE_FEATURES>)
  if(NOT TARGET lotus_with_torch)
    add_custom_target(lotus_with_torch)
  endif()
  add_dependencies(lotus_with_torch ${target})
endfunction()
