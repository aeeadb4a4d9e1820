# libtorch, for the folders that include this file. Compiling against it takes minutes, so it is
# asked for: -DLOTUS_WITH_TORCH=ON. Debian's libtorch-dev, or what CMAKE_PREFIX_PATH or Torch_DIR
# names; tools/torch2.sh does that with PyPI's wheel. Sets lotus_torch_found.
option(LOTUS_WITH_TORCH "Build and test the libtorch adapter and its examples" OFF)

set(lotus_torch_found FALSE)
if(LOTUS_WITH_TORCH)
  # A libtorch for CUDA, as PyPI's, asks for the CUDA toolkit and its compiler, and stops where they
  # are not; but not where this target is known already. What is built here runs on the CPU.
  if(NOT TARGET torch::cudart)
    add_library(torch::cudart INTERFACE IMPORTED)
  endif()
  # It also warns that it lacks libkineto, which stands within libtorch_cpu.
  set(kineto_LIBRARY torch_cpu)
  find_package(Torch CONFIG QUIET)
  if(Torch_FOUND)
    set(lotus_torch_found TRUE)
  else()
    lotus_left_out("libtorch adapter" "libtorch (Debian: libtorch-dev)")
  endif()
endif()

# lotus_link_torch(TARGET): libtorch's headers are not ours, their warnings neither. Linked without
# TORCH_LIBRARIES: they name the libraries for CUDA too, and where Debian's libtorch is installed its
# libc10 beside the one asked for. The target lotus_with_torch builds all that is linked so.
function(lotus_link_torch target)
  target_include_directories(${target} SYSTEM PRIVATE ${TORCH_INCLUDE_DIRS})
  target_link_libraries(${target} PRIVATE torch_cpu c10)
  # C++20, where its headers need that.
  target_compile_features(${target} PRIVATE $<TARGET_PROPERTY:torch,INTERFACE_COMPILE_FEATURES>)
  if(NOT TARGET lotus_with_torch)
    add_custom_target(lotus_with_torch)
  endif()
  add_dependencies(lotus_with_torch ${target})
endfunction()
