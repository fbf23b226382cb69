# Build options, and the interface target `gpumem_flags` that carries them to our own targets.
include_guard()

set(GPUMEM_SANITIZE off CACHE STRING
    "off, address (with UndefinedBehaviorSanitizer) or thread")
set_property(CACHE GPUMEM_SANITIZE PROPERTY STRINGS off address thread)
option(GPUMEM_WERROR "Warnings are errors" OFF)
option(GPUMEM_TESTS "Build the test programs (needs cmocka)" ON)
option(GPUMEM_BENCH "Build the benchmarks" ON)
option(GPUMEM_EXAMPLES "Build the examples" ON)
option(GPUMEM_COVERAGE "Count which lines and branches of src/ run (./dev coverage)" OFF)
option(GPUMEM_LANES_V4 "Compile the interpreter for x86-64-v4, too" ON)
option(GPUMEM_EXTRAS "Use LZ4, zstd, zlib and Vulkan's headers, where they are" ON)
option(GPUMEM_FUZZ "Build the fuzz targets (needs clang; tests/fuzz/run does it)" OFF)

if(NOT CMAKE_BUILD_TYPE)
    set(CMAKE_BUILD_TYPE Release CACHE STRING "Release or Debug" FORCE)
endif()
# No NDEBUG in Release: an assertion that holds costs nothing that was ever measured here, and test
# programs must not lose theirs. -g stays in; install and bundle strip.
set(CMAKE_C_FLAGS_RELEASE "-O2 -g")
set(CMAKE_C_FLAGS_DEBUG "-O0 -g")

set(CMAKE_C_STANDARD 17)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)

add_library(gpumem_flags INTERFACE)
target_compile_definitions(gpumem_flags INTERFACE _GNU_SOURCE)
target_compile_options(gpumem_flags INTERFACE -Wall -Wextra -Wpedantic -Wconversion)
target_link_libraries(gpumem_flags INTERFACE Threads::Threads)
# A compiler that nobody has tried may know of warnings that nobody has seen.
set(tried_GNU 12 17)
set(tried_Clang 14 20)
set(tried "${tried_${CMAKE_C_COMPILER_ID}}")
if(GPUMEM_WERROR AND tried)
    list(GET tried 0 first)
    list(GET tried 1 beyond)
    if(CMAKE_C_COMPILER_VERSION VERSION_LESS first OR CMAKE_C_COMPILER_VERSION VERSION_GREATER_EQUAL beyond)
        message(STATUS "${CMAKE_C_COMPILER_ID} ${CMAKE_C_COMPILER_VERSION} was not tried: its warnings are no errors")
        set(GPUMEM_WERROR OFF)
    endif()
endif()
if(GPUMEM_WERROR)
    target_compile_options(gpumem_flags INTERFACE -Werror)
endif()

if(CMAKE_BUILD_TYPE STREQUAL "Debug")
    # Checks that cost too much elsewhere.
    target_compile_definitions(gpumem_flags INTERFACE GPUMEM_DEBUG=1)
endif()

if(GPUMEM_SANITIZE STREQUAL "address")
    set(sanitize -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
elseif(GPUMEM_SANITIZE STREQUAL "thread")
    set(sanitize -fsanitize=thread -fno-omit-frame-pointer)
elseif(GPUMEM_SANITIZE STREQUAL "off")
    set(sanitize "")
    if(CMAKE_BUILD_TYPE STREQUAL "Release")
        target_compile_definitions(gpumem_flags INTERFACE _FORTIFY_SOURCE=2)
        target_compile_options(gpumem_flags INTERFACE -fstack-protector-strong)
    endif()
else()
    message(FATAL_ERROR "GPUMEM_SANITIZE is '${GPUMEM_SANITIZE}': off, address or thread")
endif()
if(sanitize)
    # A sanitizer's run needs to be quick more than its code needs to be plain. Its reports need lines and no
    # variables: a sixth of the compiler's time is saved.
    set(CMAKE_C_FLAGS_DEBUG "-O1 -g1")
    target_compile_options(gpumem_flags INTERFACE ${sanitize})
    target_link_options(gpumem_flags INTERFACE ${sanitize})
    target_compile_definitions(gpumem_flags INTERFACE GPUMEM_SANITIZE_${GPUMEM_SANITIZE}=1)
endif()

# Sources below src/ alone are compiled with GPUMEM_COUNTERS, since nobody asks what tests leave out of themselves.
set(GPUMEM_COUNTERS "")
if(GPUMEM_COVERAGE)
    # Atomic: gcov computes most counts as differences, which lost increments of other threads make negative.
    set(GPUMEM_COUNTERS --coverage -fprofile-update=atomic)
    add_library(coverage_image OBJECT tests/coverage/image.c)
    set_target_properties(coverage_image PROPERTIES POSITION_INDEPENDENT_CODE ON)
    add_library(coverage_exit SHARED tests/coverage/exit.c)
    set_target_properties(coverage_exit PROPERTIES C_VISIBILITY_PRESET hidden
        LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests/coverage)
    target_link_options(gpumem_flags INTERFACE --coverage)
    target_link_libraries(gpumem_flags INTERFACE $<TARGET_OBJECTS:coverage_image>)
endif()
