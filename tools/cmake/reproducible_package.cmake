# cpack reads this: the files of a package get the time SOURCE_DATE_EPOCH, or a fixed time in 2026.
if("$ENV{SOURCE_DATE_EPOCH}" STREQUAL "")
  set(ENV{SOURCE_DATE_EPOCH} 1767225600)
endif()
