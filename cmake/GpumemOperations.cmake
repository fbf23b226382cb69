# A program that counts what the library's public functions do: each function is wrapped by the linker
# (tests/fault/operations.py).
include_guard()
find_package(Python3 REQUIRED COMPONENTS Interpreter)

# gpumem_count_operations(<target> <folder>): for the program of tests/<folder>, which has operations.py.
function(gpumem_count_operations target folder)
    if(NOT TARGET ${target})
        return()
    endif()
    set(script ${PROJECT_SOURCE_DIR}/tests/${folder}/operations.py)
    set(made ${PROJECT_BINARY_DIR}/tests/${folder}/wrapped_operations)
    file(GLOB headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/include/gpumem/*.h)
    add_custom_command(OUTPUT ${made}.c ${made}.options
        COMMAND ${Python3_EXECUTABLE} ${script} ${made}.c ${made}.options
        DEPENDS ${script} ${headers})
    add_custom_target(${target}_options DEPENDS ${made}.options)
    add_dependencies(${target} ${target}_options)
    target_sources(${target} PRIVATE ${made}.c)
    set_source_files_properties(${made}.c PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
    # Written out: as LINKER:, clang would take the words of the file for its own.
    target_link_options(${target} PRIVATE -Wl,@${made}.options)
    set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS ${made}.options)
endfunction()
