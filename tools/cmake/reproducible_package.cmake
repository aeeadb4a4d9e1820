# cpack reads this file. It gives the files of a package the time SOURCE_DATE_EPOCH, or a fixed time
# if this variable is not set, so that the same build gives the same package.
if("$ENV{SOURCE_DATE_EPOCH}" STREQUAL "")
  set(ENV{SOURCE_DATE_EPOCH} 1767225600)
endif()
