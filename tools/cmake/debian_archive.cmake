# cpack runs this when the package is created. The package's members have the permissions of files
# that cpack has just written, which depend on the umask; ar's deterministic mode (D) gives them
# fixed ones.
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
