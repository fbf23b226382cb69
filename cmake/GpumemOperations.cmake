# Programs that count what the library's public functions do: each function is wrapped by the linker
# (tests/fault/operations.py).
include_guard()
find_package(Python3 REQUIRED COMPONENTS Interpreter)

# gpumem_count_operations(<folder>): for the programs of tests/<folder>, which has operations.py.
function(gpumem_count_operations folder)
    set(script ${PROJECT_SOURCE_DIR}/tests/${folder}/operations.py)
    set(made ${PROJECT_BINARY_DIR}/tests/${folder}/operations)
    file(GLOB headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/include/gpumem/*.h)
    add_custom_command(OUTPUT ${made}.c ${made}.options
        COMMAND ${Python3_EXECUTABLE} ${script} ${made}.c ${made}.options
        DEPENDS ${script} ${headers})
    add_library(${folder}_operations OBJECT ${made}.c)
    target_include_directories(${folder}_operations PRIVATE
        ${PROJECT_SOURCE_DIR}/tests/${folder} ${PROJECT_SOURCE_DIR}/include)
    target_link_libraries(${folder}_operations PRIVATE gpumem_flags)
    add_custom_target(${folder}_wrap_options DEPENDS ${made}.options)
    file(GLOB programs CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/${folder}/test_*.c)
    foreach(program IN LISTS programs)
        cmake_path(GET program STEM name)
        if(NOT TARGET ${folder}_${name})
            continue()
        endif()
        add_dependencies(${folder}_${name} ${folder}_wrap_options)
        target_sources(${folder}_${name} PRIVATE $<TARGET_OBJECTS:${folder}_operations>)
        # Written out: as LINKER:, clang would take the words of the file for its own.
        target_link_options(${folder}_${name} PRIVATE -Wl,@${made}.options)
        set_property(TARGET ${folder}_${name} APPEND PROPERTY LINK_DEPENDS ${made}.options)
    endforeach()
endfunction()
