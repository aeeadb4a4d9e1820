# libtorch, for the folders that include this file. Compiling against it takes minutes, so it is
# asked for: -DLOTUS_WITH_TORCH=ON. Sets lotus_torch_found.
option(LOTUS_WITH_TORCH "Build and test the libtorch adapter and its examples" OFF)

set(lotus_torch_found FALSE)
if(LOTUS_WITH_TORCH)
  # Debian's libtorch-dev, or a libtorch from elsewhere by CMAKE_PREFIX_PATH or Torch_DIR.
  find_package(Torch CONFIG QUIET)
  if(Torch_FOUND)
    set(lotus_torch_found TRUE)
  else()
    lotus_left_out("libtorch adapter" "libtorch (Debian: libtorch-dev)")
  endif()
endif()

# lotus_link_torch(TARGET): libtorch's headers are not ours, their warnings neither.
function(lotus_link_torch target)
  target_include_directories(${target} SYSTEM PRIVATE ${TORCH_INCLUDE_DIRS})
  target_link_libraries(${target} PRIVATE ${TORCH_LIBRARIES})
endfunction()
