# Read by cpack: files of a package are as old as SOURCE_DATE_EPOCH says, or of 2026.
if("$ENV{SOURCE_DATE_EPOCH}" STREQUAL "")
  set(ENV{SOURCE_DATE_EPOCH} 1767225600)
endif()
