# How test programs are made. tests/runner runs them.
include_guard()

file(GLOB GPUMEM_HARNESS CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/harness/*.c)

# Splits the .c files of one directory: programs are test_*.c, the rest is their harness.
function(gpumem_split_tests directory programs harness)
    file(GLOB all CONFIGURE_DEPENDS ${directory}/*.c)
    set(found ${all})
    list(FILTER found INCLUDE REGEX "/test_[^/]*\\.c$")
    list(FILTER all EXCLUDE REGEX "/test_[^/]*\\.c$")
    set(${programs} "${found}" PARENT_SCOPE)
    set(${harness} "${all}" PARENT_SCOPE)
endfunction()

# gpumem_test_folder(<folder> [INTERNAL] [EXCLUDE_FROM_ALL] [LINK <targets>]): programs of
# tests/<folder> and the folders below it. INTERNAL gives them src/ as an include path. Those in a
# folder named softgpu link the engine itself instead of opening it. With EXCLUDE_FROM_ALL a program
# is built only when it is named.
function(gpumem_test_folder folder)
    cmake_parse_arguments(arg "INTERNAL;EXCLUDE_FROM_ALL" "" "LINK" ${ARGN})
    set(kept "")
    if(arg_EXCLUDE_FROM_ALL)
        set(kept EXCLUDE_FROM_ALL)
    endif()
    set(root ${PROJECT_SOURCE_DIR}/tests/${folder})
    foreach(target IN LISTS arg_LINK)
        if(NOT TARGET ${target})
            return()
        endif()
    endforeach()

    file(GLOB_RECURSE all CONFIGURE_DEPENDS ${root}/test_*.c)
    set(directories "")
    foreach(source IN LISTS all)
        cmake_path(GET source PARENT_PATH directory)
        list(APPEND directories ${directory})
    endforeach()
    list(REMOVE_DUPLICATES directories)

    gpumem_split_tests(${root} ignored root_harness)
    foreach(directory IN LISTS directories)
        gpumem_split_tests(${directory} programs harness)
        if(NOT directory STREQUAL root)
            list(APPEND harness ${root_harness})
        endif()
        set(link ${arg_LINK})
        set(whole ${arg_LINK})
        if("${directory}/" MATCHES "/softgpu/")
            if(NOT TARGET softgpu_static)
                continue()
            endif()
            set(link softgpu_static)
            # Whole: exports refer weakly to the chapters, and a weak reference fetches nothing from
            # an archive.
            set(whole $<LINK_LIBRARY:WHOLE_ARCHIVE,softgpu_static>)
        endif()
        # Compiled once for all programs of the directory.
        cmake_path(RELATIVE_PATH directory BASE_DIRECTORY ${PROJECT_SOURCE_DIR}/tests
            OUTPUT_VARIABLE shared)
        string(REPLACE "/" "_" shared ${shared}_harness)
        add_library(${shared} OBJECT ${kept} ${harness} ${GPUMEM_HARNESS})
        gpumem_test_target(${shared} ${folder} "${link}" ${arg_INTERNAL})
        foreach(source IN LISTS programs)
            gpumem_test_program(${folder} ${source} ${shared} "${whole}" ${arg_INTERNAL})
        endforeach()
    endforeach()
endfunction()

# gpumem_test_target(<target> <folder> <link> [INTERNAL]): what is compiled for tests of a folder.
function(gpumem_test_target target folder link)
    target_include_directories(${target} PRIVATE
        ${PROJECT_SOURCE_DIR}/tests/${folder} ${PROJECT_SOURCE_DIR}/tests/harness
        ${PROJECT_SOURCE_DIR}/include)
    if("${ARGN}")
        target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/src)
        target_link_libraries(${target} PRIVATE gpumem_vulkan_headers)
    endif()
    target_compile_definitions(${target} PRIVATE
        GPUMEM_SOURCE_DIR="${PROJECT_SOURCE_DIR}" GPUMEM_BINARY_DIR="${PROJECT_BINARY_DIR}")
    target_link_libraries(${target} PRIVATE
        ${link} test_images test_matrices gpumem_cmocka gpumem_flags gpumem_xxhash ${CMAKE_DL_LIBS})
endfunction()

function(gpumem_test_program folder source harness link)
    cmake_path(RELATIVE_PATH source BASE_DIRECTORY ${PROJECT_SOURCE_DIR}/tests
        OUTPUT_VARIABLE relative)
    cmake_path(REMOVE_EXTENSION relative)
    string(REPLACE "/" "_" target ${relative})
    cmake_path(GET relative PARENT_PATH output)
    cmake_path(GET relative FILENAME name)

    add_executable(${target} ${kept} ${source} $<TARGET_OBJECTS:${harness}>)
    gpumem_test_target(${target} ${folder} "${link}" ${ARGN})
    if(target MATCHES "vulkan")
        add_dependencies(${target} vulkan_icd)
    endif()
    # The build's path first, which a bundle keeps: it puts cmocka into lib/.
    file(RELATIVE_PATH to_lib ${PROJECT_BINARY_DIR}/tests/${output} ${PROJECT_BINARY_DIR}/lib)
    set_target_properties(${target} PROPERTIES
        OUTPUT_NAME ${name} RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests/${output}
        BUILD_RPATH "$ORIGIN/${to_lib}")
endfunction()
