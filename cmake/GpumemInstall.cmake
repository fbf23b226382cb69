# Install rules. Nothing of softgpu goes onto the default loader path: lib/gpumem/softgpu is reached
# by path only.
include_guard()
include(CMakePackageConfigHelpers)

if(NOT TARGET gpumem)
    return()
endif()

set(softgpu_dir ${CMAKE_INSTALL_LIBDIR}/gpumem/softgpu)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/gpumem)

install(TARGETS gpumem gpumem_static EXPORT gpumem
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY include/gpumem DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
    FILES_MATCHING PATTERN "*.h" PATTERN "functions.def")
if(TARGET softgpu)
    install(TARGETS softgpu LIBRARY DESTINATION ${softgpu_dir} NAMELINK_SKIP)
endif()
if(TARGET softgpu_shim)
    install(TARGETS softgpu_shim LIBRARY DESTINATION ${softgpu_dir})
endif()
if(TARGET gpumem_command)
    install(TARGETS gpumem_command RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()

# Profiles: in the build tree at the same place relative to softgpu as in an install.
file(GLOB profiles CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/profiles/*.ini)
install(FILES ${profiles} DESTINATION ${CMAKE_INSTALL_DATADIR}/gpumem/profiles)
set(built_profiles "")
foreach(profile IN LISTS profiles)
    cmake_path(GET profile FILENAME name)
    set(copy ${PROJECT_BINARY_DIR}/share/gpumem/profiles/${name})
    add_custom_command(OUTPUT ${copy} DEPENDS ${profile}
        COMMAND ${CMAKE_COMMAND} -E copy ${profile} ${copy})
    list(APPEND built_profiles ${copy})
endforeach()
add_custom_target(gpumem_profiles ALL DEPENDS ${built_profiles})
if(TARGET softgpu)
    add_dependencies(softgpu gpumem_profiles)
endif()

install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/gpumem RENAME copyright)

# pkg-config, relocatable: the prefix is counted from the .pc file itself.
file(RELATIVE_PATH pc_to_prefix
    ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
configure_file(cmake/gpumem.pc.in ${PROJECT_BINARY_DIR}/gpumem.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/gpumem.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# CMake package: gpumem::gpumem and gpumem::static.
install(EXPORT gpumem NAMESPACE gpumem:: DESTINATION ${package_dir} FILE gpumemTargets.cmake)
configure_package_config_file(cmake/gpumemConfig.cmake.in ${PROJECT_BINARY_DIR}/gpumemConfig.cmake
    INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/gpumemConfigVersion.cmake
    COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/gpumemConfig.cmake
    ${PROJECT_BINARY_DIR}/gpumemConfigVersion.cmake DESTINATION ${package_dir})
