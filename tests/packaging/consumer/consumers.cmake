# consumers(COMPILED HEADER_ONLY): builds the program with the compiled library, header-only, and as
# two files of which only one uses the compiled library.
set(sources "${CMAKE_CURRENT_LIST_DIR}")
function(consumers compiled header_only)
  add_executable(consumer_compiled ${sources}/main.cpp ${sources}/second.cpp)
  target_link_libraries(consumer_compiled PRIVATE ${compiled})
  add_executable(consumer_header_only ${sources}/main.cpp ${sources}/second.cpp)
  target_link_libraries(consumer_header_only PRIVATE ${header_only})
  add_library(second OBJECT ${sources}/second.cpp)
  target_link_libraries(second PRIVATE ${header_only})
  add_executable(consumer_mixed ${sources}/main.cpp $<TARGET_OBJECTS:second>)
  target_link_libraries(consumer_mixed PRIVATE ${compiled})
endfunction()
