# cpack runs this when all files of the package are in place, before it packs them.
set(root "${CPACK_TEMPORARY_INSTALL_DIRECTORY}/usr")

# Debian Policy 12.5 requires the license here, and only here.
file(RENAME "${root}/share/doc/lotus/LICENSE" "${root}/share/doc/lotus/copyright")

# site-functions is for files that the administrator has installed; packages have a folder of their
# own.
if(EXISTS "${root}/share/zsh/site-functions")
  file(RENAME "${root}/share/zsh/site-functions" "${root}/share/zsh/vendor-completions")
endif()

# Fixed permissions: everybody may read the files, and the same build gives the same package with
# any umask.
file(GLOB_RECURSE entries LIST_DIRECTORIES true "${root}/*")
foreach(entry IN ITEMS "${root}" LISTS entries)
  if(IS_DIRECTORY "${entry}")
    file(CHMOD "${entry}" PERMISSIONS
         OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
  endif()
endforeach()
