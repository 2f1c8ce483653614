# Removes what the last `cmake --install` of this build folder wrote.
if(NOT EXISTS ${MANIFEST})
  message(FATAL_ERROR "${MANIFEST} is not there: nothing was installed from this build folder")
endif()
file(STRINGS ${MANIFEST} files)
foreach(file IN LISTS files)
  message(STATUS "removing ${file}")
  file(REMOVE $ENV{DESTDIR}${file})
endforeach()
