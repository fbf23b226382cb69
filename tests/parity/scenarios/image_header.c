/*
 * What of a program's ELF header is looked at: one field changed in a binary that loads. The binary
 * lies in a larger buffer of zeros, so that what is read behind its end is the same everywhere.
 * Each in a scenario of its own: a driver may die of it.
 */
#include "../parity.h"
#include "images.h"
#include "temporary.h"

static unsigned char image[65536];

static void fresh(void) {
    par_context();
    memset(image, 0, sizeof(image));
    memcpy(image, image_small_cubin, sizeof(image_small_cubin));
}

static void see_module(const char *cls, CUmodule module) {
    unsigned count;
    CUfunction function;
    CALLO(cuModuleGetFunctionCount, cls, (&count, module), OUT_U(count));
    CALLO(cuModuleGetFunction, cls, (&function, module, "small"), OUT_C(function));
    SETUP(cuModuleUnload, (module));
}

static void load(const char *cls) {
    CUmodule module;
    CALLO(cuModuleLoadData, cls, (&module, image), OUT_C(module));
    if (par_last() == CUDA_SUCCESS)
        see_module(cls, module);
}

static void changed(const char *cls, size_t at, size_t size, uint64_t value) {
    fresh();
    for (size_t i = 0; i < size; i++)
        image[at + i] = (unsigned char)(value >> (8 * i));
    load(cls);
}

/* Zeros from here on. */
static void cut(const char *cls, size_t at) {
    fresh();
    memset(image + at, 0, sizeof(image) - at);
    load(cls);
}

/* A file that ends there. */
static void cut_file(const char *cls, size_t at) {
    CUmodule module;
    char path[TEMPORARY_ROOM];
    int fd = temporary_file(path, "parity-cubin");
    fresh();
    if (fd < 0 || write(fd, image, at) != (ssize_t)at) {
        par_see("setup", "SETUP_FAILED file");
        return;
    }
    close(fd);
    CALLO(cuModuleLoad, cls, (&module, path), OUT_C(module));
    unlink(path);
    if (par_last() == CUDA_SUCCESS)
        see_module(cls, module);
}

/* function, class, offset, bytes, value: the fields of ELF's header for 64 bits. */
#define HEADERS(X)                                                                                 \
    X(magic, "cubin-magic", 1, 1, 'F')                                                             \
    X(class_32, "cubin-class-32", 4, 1, 1)                                                         \
    X(class_0, "cubin-class-0", 4, 1, 0)                                                           \
    X(order_big, "cubin-order-big", 5, 1, 2)                                                       \
    X(order_0, "cubin-order-0", 5, 1, 0)                                                           \
    X(version_0, "cubin-version-0", 6, 1, 0)                                                       \
    X(system_0, "cubin-system-0", 7, 1, 0)                                                         \
    X(system_51, "cubin-system-51", 7, 1, 51)                                                      \
    X(abi_0, "cubin-abi-0", 8, 1, 0)                                                               \
    X(abi_7, "cubin-abi-7", 8, 1, 7)                                                               \
    X(abi_9, "cubin-abi-9", 8, 1, 9)                                                               \
    X(type_0, "cubin-type-0", 16, 2, 0)                                                            \
    X(type_1, "cubin-type-1", 16, 2, 1)                                                            \
    X(type_3, "cubin-type-3", 16, 2, 3)                                                            \
    X(machine_62, "cubin-machine-62", 18, 2, 62)                                                   \
    X(word_version_0, "cubin-word-version-0", 20, 4, 0)                                            \
    X(entry_1, "cubin-entry-1", 24, 8, 1)                                                          \
    X(flags_0_0, "cubin-flags-0-is-0", 48, 1, 0)                                                   \
    X(flags_0_255, "cubin-flags-0-is-255", 48, 1, 255)                                             \
    X(flags_1_80, "cubin-flags-1-is-80", 49, 1, 80)                                                \
    X(flags_1_100, "cubin-flags-1-is-100", 49, 1, 100)                                             \
    X(flags_1_0, "cubin-flags-1-is-0", 49, 1, 0)                                                   \
    X(flags_2_1, "cubin-flags-2-is-1", 50, 1, 1)                                                   \
    X(flags_2_255, "cubin-flags-2-is-255", 50, 1, 255)                                             \
    X(flags_3_0, "cubin-flags-3-is-0", 51, 1, 0)                                                   \
    X(flags_3_255, "cubin-flags-3-is-255", 51, 1, 255)                                             \
    X(header_size_0, "cubin-header-size-0", 52, 2, 0)                                              \
    X(header_size_128, "cubin-header-size-128", 52, 2, 128)                                        \
    X(segment_size_0, "cubin-segment-size-0", 54, 2, 0)                                            \
    X(segments_0, "cubin-segments-0", 56, 2, 0)                                                    \
    X(section_size_0, "cubin-section-size-0", 58, 2, 0)                                            \
    X(section_size_32, "cubin-section-size-32", 58, 2, 32)                                         \
    X(sections_0, "cubin-sections-0", 60, 2, 0)                                                    \
    X(sections_1, "cubin-sections-1", 60, 2, 1)                                                    \
    X(sections_17, "cubin-sections-17", 60, 2, 17)                                                 \
    X(names_0, "cubin-names-0", 62, 2, 0)                                                          \
    X(names_2, "cubin-names-2", 62, 2, 2)                                                          \
    X(names_99, "cubin-names-99", 62, 2, 99)                                                       \
    X(section_offset_0, "cubin-section-offset-0", 40, 8, 0)                                        \
    X(section_offset_behind, "cubin-section-offset-behind", 40, 8, 8192)                           \
    X(section_offset_far, "cubin-section-offset-far", 40, 8, 1ull << 40)                           \
    X(segment_offset_behind, "cubin-segment-offset-behind", 32, 8, 8192)                           \
    X(segment_offset_far, "cubin-segment-offset-far", 32, 8, 1ull << 40)

/* Behind the identification, within the header, behind it, before the section headers, in them, and
 * before the program headers. */
#define CUTS(X)                                                                                    \
    X(16)                                                                                          \
    X(52)                                                                                          \
    X(64)                                                                                          \
    X(2048)                                                                                        \
    X(2720)                                                                                        \
    X(3000)                                                                                        \
    X(3872)                                                                                        \
    X(4207)

#define FILE_CUTS(X)                                                                               \
    X(4)                                                                                           \
    X(64)                                                                                          \
    X(2720)                                                                                        \
    X(3872)                                                                                        \
    X(4207)

#define HEADER_RUN(name, cls, at, size, value)                                                     \
    SCENARIO(name, "image/" cls) {                                                                 \
        changed(cls, at, size, value);                                                             \
    }
#define CUT_RUN(at)                                                                                \
    SCENARIO(cut_##at, "image/cubin-cut-" #at) {                                                   \
        cut("cubin-cut-" #at, at);                                                                 \
    }
#define FILE_RUN(at)                                                                               \
    SCENARIO(file_##at, "image/cubin-file-cut-" #at) {                                             \
        cut_file("cubin-file-cut-" #at, at);                                                       \
    }
HEADERS(HEADER_RUN)
CUTS(CUT_RUN)
FILE_CUTS(FILE_RUN)
