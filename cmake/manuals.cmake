# Man pages of the commands, made from their own --help.
foreach(target IN ITEMS ptxgen ptxvm ptxvm_ptxas qdnn_tool)
  get_target_property(name ${target} OUTPUT_NAME)
  if(NOT name)
    set(name ${target})
  endif()
  set(page ${PROJECT_BINARY_DIR}/man/${name}.1)
  add_custom_command(
    OUTPUT ${page}
    COMMAND ${CMAKE_COMMAND} -DPROGRAM=$<TARGET_FILE:${target}> -DNAME=${name} -DVERSION=${PROJECT_VERSION} -DOUTPUT=${page}
            -P ${PROJECT_SOURCE_DIR}/cmake/manpage.cmake
    DEPENDS ${target} ${PROJECT_SOURCE_DIR}/cmake/manpage.cmake
    VERBATIM)
  list(APPEND QDNN_MANUALS ${page})
endforeach()
add_custom_target(manuals ALL DEPENDS ${QDNN_MANUALS})
install(FILES ${QDNN_MANUALS} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
