# How test programs are made: one of all the .c files of a folder. tests/runner runs it, once for each
# test_*.c.
include_guard()

# Harness of every program, compiled once; inside/ is for programs that have the library in them.
file(GLOB GPUMEM_HARNESS CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/harness/*.c)
file(GLOB GPUMEM_HARNESS_INSIDE CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/harness/inside/*.c)
add_library(tests_harness OBJECT ${GPUMEM_HARNESS})
add_library(tests_harness_inside OBJECT EXCLUDE_FROM_ALL ${GPUMEM_HARNESS_INSIDE})

# Parameters of fixtures, callbacks and tests are often not used: their shape is given. clang goes by the
# order of the two options. What tests themselves compute is little, and optimising them takes longer
# than running them.
add_library(gpumem_test_flags INTERFACE)
target_link_libraries(gpumem_test_flags INTERFACE gpumem_flags)
target_compile_options(gpumem_test_flags INTERFACE
    -Wextra -Wno-unused-parameter $<$<CONFIG:Release>:-O1>)

foreach(harness tests_harness tests_harness_inside)
    target_include_directories(${harness} PRIVATE
        ${PROJECT_SOURCE_DIR}/tests/harness ${PROJECT_SOURCE_DIR}/include)
    target_link_libraries(${harness} PRIVATE gpumem_cmocka gpumem_test_flags)
endforeach()

# gpumem_test_folder(<folder> [INSIDE] [EXCLUDE_FROM_ALL] [LINK <targets>]): the program
# tests/<folder>/run of the folder, target tests_<folder>, and one for each folder below it, which has
# the harness of the one above. INSIDE: tests of internals, with src/ as an include path; those in a
# folder named softgpu have the engine in them instead of opening it. With EXCLUDE_FROM_ALL a program
# is built only when it is named.
function(gpumem_test_folder folder)
    cmake_parse_arguments(arg "INSIDE;EXCLUDE_FROM_ALL" "" "LINK" ${ARGN})
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

    file(GLOB above CONFIGURE_DEPENDS ${root}/*.c)
    list(FILTER above EXCLUDE REGEX "/test_[^/]*\\.c$")
    foreach(directory IN LISTS directories)
        file(GLOB sources CONFIGURE_DEPENDS ${directory}/*.c)
        if(NOT directory STREQUAL root)
            list(APPEND sources ${above})
        endif()
        set(link ${arg_LINK})
        if("${directory}/" MATCHES "/softgpu/")
            if(NOT TARGET softgpu_static)
                continue()
            endif()
            # Whole: exports refer weakly to the chapters, and a weak reference fetches nothing from
            # an archive.
            set(link $<LINK_LIBRARY:WHOLE_ARCHIVE,softgpu_static>)
        endif()
        cmake_path(RELATIVE_PATH directory BASE_DIRECTORY ${PROJECT_SOURCE_DIR}/tests
            OUTPUT_VARIABLE output)
        string(REPLACE "/" "_" target tests_${output})
        set(kept "")
        if(arg_EXCLUDE_FROM_ALL)
            set(kept EXCLUDE_FROM_ALL)
        endif()
        add_executable(${target} ${kept} ${sources} $<TARGET_OBJECTS:tests_harness>)
        gpumem_test_target(${target} ${folder} ${output} "${link}")
        if(arg_INSIDE)
            gpumem_test_inside(${target})
        endif()
    endforeach()
endfunction()

function(gpumem_test_target target folder output link)
    target_include_directories(${target} PRIVATE
        ${PROJECT_SOURCE_DIR}/tests/${folder} ${PROJECT_SOURCE_DIR}/tests/harness
        ${PROJECT_SOURCE_DIR}/include)
    target_compile_definitions(${target} PRIVATE
        GPUMEM_SOURCE_DIR="${PROJECT_SOURCE_DIR}" GPUMEM_BINARY_DIR="${PROJECT_BINARY_DIR}")
    target_precompile_headers(${target} PRIVATE ${PROJECT_SOURCE_DIR}/tests/harness/test.h
        <gpumem/driver.h> <gpumem/gpumem.h> <gpumem/softgpu.h>
        <errno.h> <pthread.h> <stdatomic.h> <stdio.h> <stdlib.h> <string.h> <unistd.h>)
    target_link_libraries(${target} PRIVATE
        ${link} test_images test_matrices gpumem_cmocka gpumem_test_flags ${CMAKE_DL_LIBS})
    if(target MATCHES "vulkan")
        add_dependencies(${target} vulkan_icd)
    endif()
    # The build's path first, which a bundle keeps: it puts cmocka into lib/.
    file(RELATIVE_PATH to_lib ${PROJECT_BINARY_DIR}/tests/${output} ${PROJECT_BINARY_DIR}/lib)
    set_target_properties(${target} PROPERTIES
        OUTPUT_NAME run RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests/${output}
        BUILD_RPATH "$ORIGIN/${to_lib}")
endfunction()

# Host memory can be refused to what is in the program: tests/harness/refused_memory.h.
function(gpumem_test_inside target)
    target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/src)
    target_sources(${target} PRIVATE $<TARGET_OBJECTS:tests_harness_inside>)
    target_link_libraries(${target} PRIVATE gpumem_vulkan_headers)
    if(NOT GPUMEM_SANITIZE STREQUAL "off")
        target_link_options(${target} PRIVATE -Wl,--wrap=malloc -Wl,--wrap=calloc
            -Wl,--wrap=realloc -Wl,--wrap=reallocarray -Wl,--wrap=aligned_alloc)
    endif()
endfunction()
