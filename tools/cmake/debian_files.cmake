# cpack runs this script before it packs the files of the package.
set(root "${CPACK_TEMPORARY_INSTALL_DIRECTORY}/usr")

# Debian Policy 12.5 requires that the license is in this file, and in no other.
file(RENAME "${root}/share/doc/lotus/LICENSE" "${root}/share/doc/lotus/copyright")

# zsh completions from packages belong into vendor-completions. The folder site-functions is for
# files that the administrator installs.
if(EXISTS "${root}/share/zsh/site-functions")
  file(RENAME "${root}/share/zsh/site-functions" "${root}/share/zsh/vendor-completions")
endif()

# Set permissions that do not depend on the umask, so that every build gives the same package.
file(GLOB_RECURSE entries LIST_DIRECTORIES true "${root}/*")
foreach(entry IN ITEMS "${root}" LISTS entries)
  if(IS_DIRECTORY "${entry}")
    file(CHMOD "${entry}" PERMISSIONS
         OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
  endif()
endforeach()
