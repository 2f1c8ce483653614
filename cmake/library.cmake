# libqdnn, shared and static, and what an installed tree needs to be found again.
include(CMakePackageConfigHelpers)

set(QDNN_OBJECTS $<TARGET_OBJECTS:qdnn_base> $<TARGET_OBJECTS:qdnn_boards> $<TARGET_OBJECTS:qdnn_ptxgen> $<TARGET_OBJECTS:qdnn_kernels> $<TARGET_OBJECTS:qdnn_driver>)

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
                                             SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
  target_include_directories(${target} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
                                              $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_link_libraries(${target} PRIVATE Threads::Threads ${CMAKE_DL_LIBS} m)
  add_library(qdnn::${target} ALIAS ${target})
endfunction()
qdnn_library(qdnn SHARED qdnn ${QDNN_OBJECTS})
target_link_libraries(qdnn PRIVATE ${QDNN_VM})
# Names are hidden when they are compiled; the script keeps what a static archive brings along out, too.
target_link_options(qdnn PRIVATE -Wl,--version-script=${PROJECT_SOURCE_DIR}/cmake/qdnn.map)
set_target_properties(qdnn PROPERTIES LINK_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/qdnn.map)
# ptxvm as a library of its own, for ptxvm.h: one object that shows the names of that header alone.
add_custom_command(
  OUTPUT ptxvm.o
  COMMAND ${CMAKE_C_COMPILER} -r -nostdlib -o ptxvm.o -Wl,--whole-archive $<TARGET_FILE:ptxvm_core> -Wl,--no-whole-archive
  COMMAND ${CMAKE_OBJCOPY} --wildcard --keep-global-symbol=ptxvm_* ptxvm.o
  DEPENDS ptxvm_core VERBATIM)
add_library(qdnn_ptxvm STATIC ${PROJECT_BINARY_DIR}/ptxvm.o)
set_target_properties(qdnn_ptxvm PROPERTIES OUTPUT_NAME ptxvm EXPORT_NAME ptxvm LINKER_LANGUAGE C)
target_include_directories(qdnn_ptxvm PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/ptxvm>
                                             $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/qdnn>)
target_link_libraries(qdnn_ptxvm PUBLIC Threads::Threads m)

# The PTX builder, in the same way, with its headers as they are installed: qdnn/ptx.h and what it includes.
set(QDNN_PTX_HEADERS ptx.h ptx_call.h sm.h types.def mma.def)
add_custom_command(
  OUTPUT ptxgen.o
  COMMAND ${CMAKE_C_COMPILER} -r -nostdlib -o ptxgen.o $<TARGET_OBJECTS:qdnn_ptxgen>
  COMMAND ${CMAKE_OBJCOPY} --wildcard --keep-global-symbol=ptx_* ptxgen.o
  DEPENDS qdnn_ptxgen $<TARGET_OBJECTS:qdnn_ptxgen>
  COMMAND_EXPAND_LISTS VERBATIM)
add_library(qdnn_ptx STATIC ${PROJECT_BINARY_DIR}/ptxgen.o)
set_target_properties(qdnn_ptx PROPERTIES OUTPUT_NAME ptxgen EXPORT_NAME ptxgen LINKER_LANGUAGE C)
configure_file(ptxgen/library_ptx.h ptx_include/qdnn/ptx.h COPYONLY)
foreach(header IN LISTS QDNN_PTX_HEADERS)
  configure_file(ptxgen/${header} ptx_include/qdnn/ptxgen/${header} COPYONLY)
  install(FILES ptxgen/${header} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/qdnn/ptxgen)
endforeach()
install(FILES ptxgen/library_ptx.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/qdnn RENAME ptx.h)
target_include_directories(qdnn_ptx PUBLIC $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/ptx_include>
                                           $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_link_libraries(qdnn_ptx PUBLIC ${CMAKE_DL_LIBS})
add_library(qdnn::ptxgen ALIAS qdnn_ptx)

qdnn_library(qdnn_static STATIC qdnn ${PROJECT_BINARY_DIR}/qdnn.o)

# The reader of files, in the same way.
add_custom_command(
  OUTPUT qdnn_files.o
  COMMAND ${CMAKE_C_COMPILER} -r -nostdlib -o qdnn_files.o $<TARGET_OBJECTS:qdnn_files_objects> $<TARGET_OBJECTS:qdnn_base>
  COMMAND ${CMAKE_OBJCOPY} --localize-hidden qdnn_files.o
  DEPENDS qdnn_files_inside qdnn_inside
  COMMAND_EXPAND_LISTS VERBATIM)
qdnn_library(qdnn_files STATIC qdnn_files ${PROJECT_BINARY_DIR}/qdnn_files.o)
qdnn_library(qdnn_files_shared SHARED qdnn_files $<TARGET_OBJECTS:qdnn_files_objects> $<TARGET_OBJECTS:qdnn_base>)
target_link_options(qdnn_files_shared PRIVATE -Wl,--version-script=${PROJECT_SOURCE_DIR}/cmake/qdnn.map)

install(TARGETS qdnn qdnn_static qdnn_files qdnn_files_shared qdnn_host_ref qdnn_ptxvm qdnn_ptx EXPORT qdnn-targets)
# In a folder of its own: a libcuda.so.1 must never be found by accident.
install(TARGETS ptxvm_libcuda LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/qdnn/ptxvm NAMELINK_SKIP)
install(FILES host_ref/host_ref.h ptxvm/ptxvm.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/qdnn)
install(FILES LICENSE README.md CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY include/qdnn DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT qdnn-targets NAMESPACE qdnn:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/qdnn)

configure_package_config_file(cmake/qdnn-config.cmake.in qdnn-config.cmake
                              INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/qdnn)
write_basic_package_version_file(qdnn-config-version.cmake COMPATIBILITY SameMinorVersion)
file(RELATIVE_PATH QDNN_PC_TO_PREFIX ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
configure_file(cmake/qdnn.pc.in qdnn.pc @ONLY)
configure_file(cmake/qdnn_files.pc.in qdnn_files.pc @ONLY)
configure_file(cmake/qdnn_ptxgen.pc.in qdnn_ptxgen.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/qdnn-config.cmake ${PROJECT_BINARY_DIR}/qdnn-config-version.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/qdnn)
install(FILES ${PROJECT_BINARY_DIR}/qdnn.pc ${PROJECT_BINARY_DIR}/qdnn_files.pc ${PROJECT_BINARY_DIR}/qdnn_ptxgen.pc
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
