# Libraries that are not libc. None is needed: what is missing switches off what needs it, which `gpumem doctor`
# lists. None is needed at run time either: they are linked statically (cmocka is of tests alone).
# docs/dependencies.md says what each is for.
include_guard()

# What the tests are not built without, and the features of a build that are off, as doctor prints them.
set(missing "")
set(GPUMEM_OFF "")

# Compressed entries of fatbins, and DEFLATE, as a device's engine for decompression knows it. Debian's archives
# are position independent, and the version script keeps their symbols inside libsoftgpu.so.
function(gpumem_decompressor name header package off)
    string(TOUPPER ${name} upper)
    find_path(GPUMEM_${upper}_INCLUDE ${header})
    find_library(GPUMEM_${upper}_LIBRARY NAMES ${ARGN})
    add_library(gpumem_${name} INTERFACE)
    if(GPUMEM_EXTRAS AND GPUMEM_${upper}_INCLUDE AND GPUMEM_${upper}_LIBRARY)
        target_include_directories(gpumem_${name} SYSTEM INTERFACE ${GPUMEM_${upper}_INCLUDE})
        target_link_libraries(gpumem_${name} INTERFACE ${GPUMEM_${upper}_LIBRARY})
        return()
    endif()
    target_compile_definitions(gpumem_${name} INTERFACE SG_WITHOUT_${upper}=1)
    set(missing ${missing} ${package} PARENT_SCOPE)
    set(GPUMEM_OFF ${GPUMEM_OFF} "${off} (${package})" PARENT_SCOPE)
endfunction()
gpumem_decompressor(zstd zstd.h libzstd-dev "kernels that CUDA 13 compressed" libzstd.a zstd)
gpumem_decompressor(lz4 lz4.h liblz4-dev "kernels that CUDA 12 compressed" liblz4.a lz4)
gpumem_decompressor(zlib zlib.h zlib1g-dev "cuMemBatchDecompressAsync of DEFLATE and wheels for gpumem doctor" libz.a z)

# Declarations only: what has Vulkan's functions is found at run time.
find_path(GPUMEM_VULKAN_INCLUDE vulkan/vulkan_core.h)
if(GPUMEM_EXTRAS AND GPUMEM_VULKAN_INCLUDE)
    add_library(gpumem_vulkan_headers INTERFACE)
    target_include_directories(gpumem_vulkan_headers SYSTEM INTERFACE ${GPUMEM_VULKAN_INCLUDE})
else()
    list(APPEND missing libvulkan-dev)
    list(APPEND GPUMEM_OFF "device memory mapped for the CPU by Vulkan (libvulkan-dev)")
endif()

if(GPUMEM_TESTS)
    find_path(GPUMEM_CMOCKA_INCLUDE cmocka.h)
    find_library(GPUMEM_CMOCKA_LIBRARY cmocka)
    if(GPUMEM_CMOCKA_INCLUDE AND GPUMEM_CMOCKA_LIBRARY)
        add_library(gpumem_cmocka INTERFACE)
        target_include_directories(gpumem_cmocka SYSTEM INTERFACE ${GPUMEM_CMOCKA_INCLUDE})
        target_link_libraries(gpumem_cmocka INTERFACE ${GPUMEM_CMOCKA_LIBRARY})
    else()
        list(APPEND missing libcmocka-dev)
    endif()
    find_package(Python3 COMPONENTS Interpreter)
    if(NOT Python3_FOUND)
        list(APPEND missing python3)
    endif()
endif()

if(GPUMEM_OFF)
    list(JOIN GPUMEM_OFF ", " off)
    message(STATUS "Off in this build: ${off}")
endif()
if(GPUMEM_TESTS AND missing)
    list(JOIN missing " " packages)
    message(STATUS "Tests are not built without: apt-get install ${packages}")
    set(GPUMEM_TESTS OFF)
endif()
