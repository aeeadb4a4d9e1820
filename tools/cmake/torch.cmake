# Finds libtorch, for the folders that include this file. Compiling with it takes minutes, so it is
# only used with -DLOTUS_WITH_TORCH=ON. Uses Debian's libtorch-dev, or the one that
# CMAKE_PREFIX_PATH or Torch_DIR names; tools/torch2.sh sets these for PyPI's wheel. Sets
# lotus_torch_found.
option(LOTUS_WITH_TORCH "Build and test the libtorch adapter and its examples" OFF)

set(lotus_torch_found FALSE)
if(LOTUS_WITH_TORCH)
  # A libtorch for CUDA, such as PyPI's, looks for the CUDA toolkit and its compiler, and stops if
  # they are missing, unless this target exists already. The code that is built here runs on the
  # CPU.
  if(NOT TARGET torch::cudart)
    add_library(torch::cudart INTERFACE IMPORTED)
  endif()
  # libtorch's CMake package also warns that libkineto is missing, which is part of libtorch_cpu.
  set(kineto_LIBRARY torch_cpu)
  find_package(Torch CONFIG QUIET)
  if(Torch_FOUND)
    set(lotus_torch_found TRUE)
  else()
    lotus_left_out("libtorch adapter" "libtorch (Debian: libtorch-dev)")
  endif()
endif()

# lotus_link_torch(TARGET): links libtorch, whose headers are system headers, so that they cause no
# warnings. Does not use TORCH_LIBRARIES: it names the libraries for CUDA too, and if Debian's
# libtorch is installed, its libc10 next to the requested one. The target lotus_with_torch builds
# all targets that are linked this way.
function(lotus_link_torch target)
  target_include_directories(${target} SYSTEM PRIVATE ${TORCH_INCLUDE_DIRS})
  target_link_libraries(${target} PRIVATE torch_cpu c10)
  # C++20, if libtorch's headers need it.
  target_compile_features(${target} PRIVATE $<TARGET_PROPERTY:torch,INTERFACE_COMPILE_FEATURES>)
  if(NOT TARGET lotus_with_torch)
    add_custom_target(lotus_with_torch)
  endif()
  add_dependencies(lotus_with_torch ${target})
endfunction()
