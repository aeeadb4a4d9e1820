# Run by cpack when all files of the package are in place, before they are packed.
set(root "${CPACK_TEMPORARY_INSTALL_DIRECTORY}/usr")

# The license is where Debian Policy 12.5 wants it, and only there.
file(RENAME "${root}/share/doc/lotus/LICENSE" "${root}/share/doc/lotus/copyright")

# Below site-functions is what the administrator has installed; packages have a folder of their own.
if(EXISTS "${root}/share/zsh/site-functions")
  file(RENAME "${root}/share/zsh/site-functions" "${root}/share/zsh/vendor-completions")
endif()

# Whatever the umask: everybody may read it, and the same build makes the same bytes.
file(GLOB_RECURSE entries LIST_DIRECTORIES true "${root}/*")
foreach(entry IN ITEMS "${root}" LISTS entries)
  if(IS_DIRECTORY "${entry}")
    file(CHMOD "${entry}" PERMISSIONS
         OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
  endif()
endforeach()
