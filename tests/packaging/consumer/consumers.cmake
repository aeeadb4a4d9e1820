# consumers(COMPILED HEADER_ONLY): the program linked to the compiled library, header-only, and as a
# program of two files, one of them either way.
function(consumers compiled header_only)
  add_executable(consumer_compiled ../main.cpp ../second.cpp)
  target_link_libraries(consumer_compiled PRIVATE ${compiled})
  add_executable(consumer_header_only ../main.cpp ../second.cpp)
  target_link_libraries(consumer_header_only PRIVATE ${header_only})
  add_library(second OBJECT ../second.cpp)
  target_link_libraries(second PRIVATE ${header_only})
  add_executable(consumer_mixed ../main.cpp $<TARGET_OBJECTS:second>)
  target_link_libraries(consumer_mixed PRIVATE ${compiled})
endfunction()
