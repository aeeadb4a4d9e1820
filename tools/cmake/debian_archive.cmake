# cpack runs this script after it has created the package. The members of the package have the
# permissions of temporary files, which depend on the umask. To get the same package on every
# machine, packs them again with ar's deterministic mode (D), which sets fixed permissions.
find_program(LOTUS_AR ar)
if(LOTUS_AR)
  foreach(package IN LISTS CPACK_PACKAGE_FILES)
    set(members "${package}.members")
    file(MAKE_DIRECTORY "${members}")
    foreach(arguments IN ITEMS "x;${package}"
                               "rcD;${package}.new;debian-binary;control.tar.gz;data.tar.gz")
      execute_process(COMMAND "${LOTUS_AR}" ${arguments} WORKING_DIRECTORY "${members}"
                      COMMAND_ERROR_IS_FATAL ANY)
    endforeach()
    file(RENAME "${package}.new" "${package}")
    file(REMOVE_RECURSE "${members}")
  endforeach()
endif()
