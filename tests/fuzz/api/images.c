/* Programs: modules, libraries, links, and what they have by name. */
#include "world.h"

#define MODULE()  OF(CUmodule, MODULES)
#define LIBRARY() OF(CUlibrary, LIBRARIES)
#define LINK()    OF(CUlinkState, LINKS)

static const char *draw_name(void) {
    static const char *const names[] = {"plain", "asks",   "bounded", "word",    "fixed", "shared",
                                        "tex_a", "surf_a", "given",   "no such", ""};
    return byte() < 0xf8 ? names[byte() % (sizeof names / sizeof names[0])] : NULL;
}

/* Options that are read when the call is made; buffers of the frame of the call. */
struct options {
    CUjit_option names[3];
    void *values[3];
    char log[2][40];
    unsigned count;
};

static void draw_options(struct options *options) {
    unsigned pick = byte();
    options->count = pick < 0x80 ? 0 : 1 + pick % 3;
    for (unsigned i = 0; i < 3; i++) {
        options->names[i] = (CUjit_option)(byte() % 36);
        switch (options->names[i]) {
        case CU_JIT_INFO_LOG_BUFFER:
        case CU_JIT_ERROR_LOG_BUFFER:
            options->values[i] = maybe(options->log[i & 1]);
            break;
        case CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES:
        case CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES:
            options->values[i] = (void *)(uintptr_t)(byte() % sizeof options->log[0]);
            break;
        case CU_JIT_GLOBAL_SYMBOL_NAMES:
        case CU_JIT_GLOBAL_SYMBOL_ADDRESSES:
        case CU_JIT_REFERENCED_KERNEL_NAMES:
        case CU_JIT_REFERENCED_VARIABLE_NAMES:
        case CU_JIT_GLOBAL_SYMBOL_COUNT:
        case CU_JIT_REFERENCED_KERNEL_COUNT:
        case CU_JIT_REFERENCED_VARIABLE_COUNT:
            options->values[i] = NULL;
            break;
        default:
            options->values[i] = (void *)(uintptr_t)byte();
            break;
        }
    }
}

static void load(void) {
    struct options options;
    CUmodule made = NULL;
    const char *text = draw_program();
    draw_options(&options);
    if (byte() & 1)
        cuModuleLoadData(maybe(&made), text);
    else
        cuModuleLoadDataEx(maybe(&made), text, options.count, maybe(options.names),
                           maybe(options.values));
    remember(MODULES, (uintptr_t)made);
}

static void unload(void) {
    cuModuleUnload(MODULE());
}

static void load_library(void) {
    struct options options;
    CUlibrary made = NULL;
    CUlibraryOption names[1] = {(CUlibraryOption)(byte() < 0xf0 ? 1 : byte() & 3)};
    void *values[1] = {(void *)(uintptr_t)(byte() & 1)};
    const char *text = draw_program();
    draw_options(&options);
    /* No table, and no promise that the text stays: the next program takes its place. */
    if (names[0] == CU_LIBRARY_HOST_UNIVERSAL_FUNCTION_AND_DATA_TABLE ||
        names[0] == CU_LIBRARY_BINARY_IS_PRESERVED)
        values[0] = NULL;
    cuLibraryLoadData(maybe(&made), text, maybe(options.names), maybe(options.values),
                      options.count, maybe(names), maybe(values), byte() & 1);
    remember(LIBRARIES, (uintptr_t)made);
}

static void unload_library(void) {
    cuLibraryUnload(LIBRARY());
}

static void load_file(void) {
    CUmodule module = NULL;
    CUlibrary library = NULL;
    const char *path = byte() & 1 ? "/dev/null" : "/nowhere";
    if (byte() & 1)
        cuModuleLoad(maybe(&module), maybe((void *)(uintptr_t)path));
    else
        cuLibraryLoadFromFile(maybe(&library), path, NULL, NULL, 0, NULL, NULL, 0);
}

static void module_parts(void) {
    CUmodule module = MODULE();
    CUfunction functions[3] = {NULL};
    CUtexref texture = NULL;
    CUsurfref surface = NULL;
    CUdeviceptr address = 0;
    size_t size;
    unsigned count;
    switch (byte() % 6) {
    case 0:
        cuModuleGetFunction(maybe(functions), module, draw_name());
        remember(FUNCTIONS, (uintptr_t)functions[0]);
        break;
    case 1:
        cuModuleGetGlobal_v2(maybe(&address), maybe(&size), module, draw_name());
        remember(ADDRESSES, address);
        break;
    case 2:
        cuModuleGetTexRef(maybe(&texture), module, draw_name());
        remember(TEXTURE_REFERENCES, (uintptr_t)texture);
        break;
    case 3:
        cuModuleGetSurfRef(maybe(&surface), module, draw_name());
        remember(SURFACE_REFERENCES, (uintptr_t)surface);
        break;
    case 4:
        cuModuleGetFunctionCount(maybe(&count), module);
        break;
    default:
        cuModuleEnumerateFunctions(maybe(functions), byte() & 3, module);
        for (unsigned i = 0; i < 3; i++)
            remember(FUNCTIONS, (uintptr_t)functions[i]);
        break;
    }
}

static void library_parts(void) {
    CUlibrary library = LIBRARY();
    CUkernel kernels[3] = {NULL};
    CUmodule module = NULL;
    CUdeviceptr address = 0;
    size_t size;
    unsigned count;
    void *function;
    switch (byte() % 7) {
    case 0:
        cuLibraryGetKernel(maybe(kernels), library, draw_name());
        remember(KERNELS, (uintptr_t)kernels[0]);
        break;
    case 1:
        cuLibraryGetGlobal(maybe(&address), maybe(&size), library, draw_name());
        remember(ADDRESSES, address);
        break;
    case 2:
        cuLibraryGetManaged(maybe(&address), maybe(&size), library, draw_name());
        remember(ADDRESSES, address);
        break;
    case 3:
        cuLibraryGetModule(maybe(&module), library);
        remember(MODULES, (uintptr_t)module);
        break;
    case 4:
        cuLibraryGetUnifiedFunction(maybe(&function), library, draw_name());
        break;
    case 5:
        cuLibraryGetKernelCount(maybe(&count), library);
        break;
    default:
        cuLibraryEnumerateKernels(maybe(kernels), byte() & 3, library);
        for (unsigned i = 0; i < 3; i++)
            remember(KERNELS, (uintptr_t)kernels[i]);
        break;
    }
}

/* The options of a link are used until it ends: it has none that are pointers. */
static void link_create(void) {
    CUlinkState made = NULL;
    CUjit_option names[1] = {byte() & 1 ? CU_JIT_OPTIMIZATION_LEVEL : CU_JIT_TARGET};
    void *values[1] = {(void *)(uintptr_t)(byte() & 1 ? 90u : byte())};
    cuLinkCreate_v2(byte() & 1, maybe(names), maybe(values), maybe(&made));
    remember(LINKS, (uintptr_t)made);
}

static void link_add(void) {
    char *text = draw_program();
    unsigned pick = byte();
    CUjitInputType type = pick < 0xf0 ? CU_JIT_INPUT_PTX : (CUjitInputType)(pick & 7);
    size_t size = strlen(text) + 1;
    if (byte() >= 0xe0)
        size = draw_little(200);
    cuLinkAddData_v2(LINK(), type, maybe(text), size, byte() & 1 ? "name" : NULL, 0, NULL, NULL);
    if (byte() >= 0xf8)
        cuLinkAddFile_v2(LINK(), type, "/dev/null", 0, NULL, NULL);
}

static void link_complete(void) {
    CUlinkState state = LINK();
    void *image = NULL;
    size_t size;
    CUmodule made = NULL;
    if (cuLinkComplete(state, maybe(&image), maybe(&size)) != CUDA_SUCCESS || !image)
        return;
    cuModuleLoadData(&made, image);
    remember(MODULES, (uintptr_t)made);
    if (byte() & 1)
        cuLinkAddData_v2(LINK(), CU_JIT_INPUT_CUBIN, image, size, NULL, 0, NULL, NULL);
}

static void link_destroy(void) {
    cuLinkDestroy(LINK());
}

static const call_fn list[] = {
    load,         load,         load,         unload,        load_library,  load_library,
    module_parts, module_parts, module_parts, library_parts, library_parts, unload_library,
    load_file,    link_create,  link_add,     link_add,      link_complete, link_destroy,
};
const struct calls image_calls = {list, sizeof list / sizeof list[0]};
