# Install rules. Nothing of softgpu goes onto the default loader path: lib/gpumem/softgpu is reached
# by path only.
include_guard()
include(CMakePackageConfigHelpers)

if(NOT TARGET gpumem)
    return()
endif()

set(softgpu_dir ${CMAKE_INSTALL_LIBDIR}/gpumem/softgpu)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/gpumem)

# A wheel (SKBUILD) holds no links, and a copy would be a second library: what -lgpumem finds there is a
# script for the linker. It has no archive either.
if(SKBUILD)
    set(skip_links NAMELINK_SKIP)
    set_target_properties(gpumem PROPERTIES VERSION 0)
    foreach(library gpumem.so.0 vkgdr.so.1)
        string(REGEX REPLACE "[.]so[.].*" "" name ${library})
        file(WRITE ${PROJECT_BINARY_DIR}/scripts/lib${name}.so
            "/* The library's name without a version, for the linker. */\nINPUT ( lib${library} )\n")
        install(FILES ${PROJECT_BINARY_DIR}/scripts/lib${name}.so DESTINATION ${CMAKE_INSTALL_LIBDIR})
    endforeach()
else()
    set(skip_links "")
    install(TARGETS gpumem_static EXPORT gpumem_static ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
    # `install --strip` leaves archives alone. Debug information would name this machine's folders.
    install(CODE "
        execute_process(COMMAND_ERROR_IS_FATAL ANY COMMAND ${CMAKE_STRIP} --strip-unneeded
            \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_LIBDIR}/libgpumem.a\")")
endif()
install(TARGETS gpumem vkgdr EXPORT gpumem LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} ${skip_links})
install(FILES include/vkgdr.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY include/gpumem DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
    FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp" PATTERN "functions.def")
if(TARGET softgpu)
    install(TARGETS softgpu EXPORT gpumem LIBRARY DESTINATION ${softgpu_dir} NAMELINK_SKIP)
endif()
if(TARGET softgpu_shim)
    install(TARGETS softgpu_shim LIBRARY DESTINATION ${softgpu_dir} ${skip_links})
    if(SKBUILD)
        # Some programs open libcuda.so: a library that has nothing but the need of libcuda.so.1.
        file(WRITE ${PROJECT_BINARY_DIR}/scripts/nothing.c "")
        add_library(softgpu_name SHARED ${PROJECT_BINARY_DIR}/scripts/nothing.c)
        target_link_libraries(softgpu_name PRIVATE softgpu_shim)
        target_link_options(softgpu_name PRIVATE -Wl,--no-as-needed)
        set_target_properties(softgpu_name PROPERTIES
            OUTPUT_NAME cuda LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/scripts/softgpu
            BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "$ORIGIN")
        install(TARGETS softgpu_name LIBRARY DESTINATION ${softgpu_dir})
    endif()
endif()
if(SKBUILD AND TARGET gpumem_python)
    install(TARGETS gpumem_python LIBRARY DESTINATION .)
endif()
if(TARGET softgpu_audit)
    set(clients_dir ${CMAKE_INSTALL_LIBDIR}/gpumem/clients)
    install(TARGETS softgpu_audit LIBRARY DESTINATION ${clients_dir})
    foreach(tool nvcc ptxas)
        install(PROGRAMS src/softgpu/audit/${tool}.sh DESTINATION ${clients_dir}/bin RENAME ${tool})
    endforeach()
    install(FILES ${PROJECT_BINARY_DIR}/lib/gpumem/clients/python.zip DESTINATION ${clients_dir})
endif()
foreach(abi 12 13)
    install(TARGETS runtime${abi}
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/gpumem/runtime/${abi} NAMELINK_SKIP)
endforeach()
if(TARGET gpumem_command)
    install(TARGETS gpumem_command RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
    # Where man and each shell look by themselves: of a wheel, in the environment, not in the package.
    set(share ${CMAKE_INSTALL_DATADIR})
    if(SKBUILD)
        set(share ${SKBUILD_DATA_DIR}/share)
    endif()
    install(DIRECTORY ${PROJECT_BINARY_DIR}/share/man/man1/ DESTINATION ${share}/man/man1)
    set(completion tools/gpumem/completion)
    install(FILES ${completion}/gpumem.bash DESTINATION ${share}/bash-completion/completions RENAME gpumem)
    install(FILES ${completion}/_gpumem DESTINATION ${share}/zsh/site-functions)
    install(FILES ${completion}/gpumem.fish DESTINATION ${share}/fish/vendor_completions.d)
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

# Pages, the tour's program, and the licences: of the project, and of what is linked in or inlined.
set(doc_dir ${CMAKE_INSTALL_DATADIR}/doc/gpumem)
file(GLOB pages CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/docs/*.md ${PROJECT_SOURCE_DIR}/docs/*.json)
file(GLOB licences CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/packaging/licences/*.txt)
file(READ LICENSE copyright)
foreach(licence IN LISTS licences)
    cmake_path(GET licence STEM name)
    file(READ ${licence} text)
    string(APPEND copyright "\n---- ${name}, of which parts are in the libraries ----\n\n${text}")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${licence})
endforeach()
file(WRITE ${PROJECT_BINARY_DIR}/copyright "${copyright}")
if(NOT SKBUILD)
    install(FILES ${PROJECT_BINARY_DIR}/copyright README.md CHANGELOG.md DESTINATION ${doc_dir})
    install(FILES ${pages} DESTINATION ${doc_dir}/docs)
    install(DIRECTORY docs/pictures DESTINATION ${doc_dir}/docs FILES_MATCHING PATTERN "*.svg" PATTERN "*.png")
    install(FILES ${licences} DESTINATION ${doc_dir}/licences)
    install(DIRECTORY examples DESTINATION ${doc_dir} FILES_MATCHING PATTERN "*.c" PATTERN "*.cpp")
    install(DIRECTORY examples/building DESTINATION ${doc_dir}/examples)
endif()

# pkg-config. Two files: in the prefix that the build was configured for its name is written, so that
# the flags are plain (and none at all for /usr); anywhere else the prefix is counted from the file
# itself, and the folder can be moved.
file(RELATIVE_PATH pc_to_prefix
    ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
cmake_path(SET pc_relative NORMALIZE "${pc_to_prefix}")
string(REGEX REPLACE "/$" "" pc_relative "${pc_relative}")
set(pc_prefix "\${pcfiledir}/${pc_relative}")
foreach(kind movable fixed)
    foreach(name gpumem vkgdr)
        configure_file(cmake/${name}.pc.in ${PROJECT_BINARY_DIR}/pkgconfig/${kind}/${name}.pc @ONLY)
    endforeach()
    set(pc_prefix ${CMAKE_INSTALL_PREFIX})
endforeach()
install(CODE "
    set(kind movable)
    if(CMAKE_INSTALL_PREFIX STREQUAL \"${CMAKE_INSTALL_PREFIX}\")
        set(kind fixed)
    endif()
    file(INSTALL \"${PROJECT_BINARY_DIR}/pkgconfig/\${kind}/gpumem.pc\"
        \"${PROJECT_BINARY_DIR}/pkgconfig/\${kind}/vkgdr.pc\"
        DESTINATION \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_LIBDIR}/pkgconfig\")")

# CMake package: gpumem::gpumem, gpumem::vkgdr and gpumem::softgpu; gpumem::static in a file of its own,
# because a wheel has no archive.
install(EXPORT gpumem NAMESPACE gpumem:: DESTINATION ${package_dir} FILE gpumemTargets.cmake)
if(NOT SKBUILD)
    install(EXPORT gpumem_static NAMESPACE gpumem:: DESTINATION ${package_dir} FILE gpumemStatic.cmake)
endif()
configure_package_config_file(cmake/gpumemConfig.cmake.in ${PROJECT_BINARY_DIR}/gpumemConfig.cmake
    INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/gpumemConfigVersion.cmake
    COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/gpumemConfig.cmake
    ${PROJECT_BINARY_DIR}/gpumemConfigVersion.cmake DESTINATION ${package_dir})
