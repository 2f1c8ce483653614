# libqdnn, shared and static, and what an installed tree needs to be found again.
include(CMakePackageConfigHelpers)

set(QDNN_OBJECTS $<TARGET_OBJECTS:qdnn_base> $<TARGET_OBJECTS:qdnn_ptxgen> $<TARGET_OBJECTS:qdnn_kernels> $<TARGET_OBJECTS:qdnn_driver>)

# The linked ptxvm, as archives: whoever links our libraries and ptxvm's own has each object once.
set(QDNN_VM "")
if(QDNN_PTXVM)
  set(QDNN_VM ptxvm_cuda ptxvm_core)
  set(QDNN_VM_FILES $<TARGET_FILE:ptxvm_cuda> $<TARGET_FILE:ptxvm_core>)
endif()

# Our own tools and tests link this one: it shows what is inside.
add_library(qdnn_inside STATIC ${QDNN_OBJECTS})
target_include_directories(qdnn_inside PUBLIC ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/include)
target_link_libraries(qdnn_inside PUBLIC ${QDNN_VM} Threads::Threads ${CMAKE_DL_LIBS})

# The reader of files for our own tools and tests. What it shares with the library comes from there.
add_library(qdnn_files_inside STATIC $<TARGET_OBJECTS:qdnn_files_objects>)
target_include_directories(qdnn_files_inside PUBLIC ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/include)
target_link_libraries(qdnn_files_inside PUBLIC qdnn_inside)

# The static library is one object in which hidden names have become local, so that a user's program may have an emit() too.
add_custom_command(
  OUTPUT qdnn.o
  COMMAND ${CMAKE_C_COMPILER} -r -nostdlib -o qdnn.o ${QDNN_OBJECTS} ${QDNN_VM_FILES}
  COMMAND ${CMAKE_OBJCOPY} --localize-hidden qdnn.o
  DEPENDS qdnn_inside ${QDNN_VM} # qdnn_inside is made of the same objects
  COMMAND_EXPAND_LISTS VERBATIM)

function(qdnn_library target type name)
  add_library(${target} ${type} ${ARGN})
  set_target_properties(${target} PROPERTIES OUTPUT_NAME ${name} LINKER_LANGUAGE C VERSION ${PROJECT_VERSION}
                                             SOVERSION ${PROJECT_VERSION_MAJOR})
  target_include_directories(${target} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
                                              $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_link_libraries(${target} PRIVATE Threads::Threads ${CMAKE_DL_LIBS} m)
  add_library(qdnn::${target} ALIAS ${target})
endfunction()
qdnn_library(qdnn SHARED qdnn ${QDNN_OBJECTS})
target_link_libraries(qdnn PRIVATE ${QDNN_VM})
qdnn_library(qdnn_static STATIC qdnn ${PROJECT_BINARY_DIR}/qdnn.o)

# The reader of files, in the same way.
add_custom_command(
  OUTPUT qdnn_files.o
  COMMAND ${CMAKE_C_COMPILER} -r -nostdlib -o qdnn_files.o $<TARGET_OBJECTS:qdnn_files_objects> $<TARGET_OBJECTS:qdnn_base>
  COMMAND ${CMAKE_OBJCOPY} --localize-hidden qdnn_files.o
  DEPENDS qdnn_files_inside qdnn_inside
  COMMAND_EXPAND_LISTS VERBATIM)
qdnn_library(qdnn_files STATIC qdnn_files ${PROJECT_BINARY_DIR}/qdnn_files.o)

install(TARGETS qdnn qdnn_static qdnn_files EXPORT qdnn-targets)
install(TARGETS ptxvm ptxvm_ptxas)
install(DIRECTORY include/qdnn DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT qdnn-targets NAMESPACE qdnn:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/qdnn)

configure_package_config_file(cmake/qdnn-config.cmake.in qdnn-config.cmake
                              INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/qdnn)
write_basic_package_version_file(qdnn-config-version.cmake COMPATIBILITY SameMajorVersion)
file(RELATIVE_PATH QDNN_PC_TO_PREFIX ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
configure_file(cmake/qdnn.pc.in qdnn.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/qdnn-config.cmake ${PROJECT_BINARY_DIR}/qdnn-config-version.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/qdnn)
install(FILES ${PROJECT_BINARY_DIR}/qdnn.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
