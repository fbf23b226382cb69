/*
 * Loading images as modules, and what is in them: functions, variables, texture references. Their
 * attributes are in module_functions.c, the options of the compiler in module_options.c.
 */
#include "../parity.h"
#include "images.h"
#include "module_texts.h"
#include "temporary.h"

#include <fcntl.h>
#include <pthread.h>

static CUmodule load(const void *image) {
    return PAR_MADE(CUmodule, cuModuleLoadData, image);
}

static void see_bytes(const char *what, CUdeviceptr p, size_t size) {
    unsigned char bytes[64];
    char text[160];
    SETUP(cuMemcpyDtoH_v2, (bytes, p, size));
    par_see(what, "%s", par_hex(text, sizeof(text), bytes, size));
}

/* Whether the word at p is the address q. */
static void see_address(const char *what, CUdeviceptr p, CUdeviceptr q) {
    CUdeviceptr word = 0;
    SETUP(cuMemcpyDtoH_v2, (&word, p, sizeof(word)));
    par_see(what, "%s", word == q ? "that address" : word == 0 ? "zero" : "something else");
}

/* Images in memory --------------------------------------------------------------------------------
 */

static void one_image(const char *cls, const void *image) {
    CUmodule m;
    CUfunction f;
    CALLO(cuModuleLoadData, cls, (&m, image), OUT_H(m));
    if (par_last() != CUDA_SUCCESS)
        return;
    CALLO(cuModuleGetFunction, cls, (&f, m, "small"), OUT_C(f));
    CALLO(cuModuleGetFunction, cls, (&f, m, "empty"), OUT_C(f));
    CALL(cuModuleUnload, cls, (m));
}

SCENARIO(images, "module/images", par_context) {
    CUmodule m;
    one_image("ptx", TEXT_PLAIN);
    one_image("ptx-clusters", TEXT_CLUSTERS);
    one_image("cubin", image_kernels_cubin);
    one_image("cubin-small", image_small_cubin);
    one_image("cubin-specific", image_specific_cubin);
    one_image("cubin-older", image_older_cubin);
    one_image("cubin-newer", image_other_cubin);
    one_image("cubin-relocatable", image_part_cubin);
    one_image("fatbin", image_small_fatbin);
    one_image("fatbin-uncompressed", image_plain_fatbin);
    one_image("fatbin-ptx-only", image_ptx_fatbin);
    one_image("fatbin-newer-only", image_other_fatbin);
    CALLO(cuModuleLoadFatBinary, "fatbin", (&m, image_small_fatbin), OUT_H(m));
    CALLO(cuModuleLoadFatBinary, "ptx", (&m, TEXT_PLAIN), OUT_H(m));
    CALLO(cuModuleLoadFatBinary, "cubin", (&m, image_small_cubin), OUT_H(m));
    CALLO(cuModuleLoadDataEx, "no-options", (&m, image_small_cubin, 0, NULL, NULL), OUT_H(m));
    CALL(cuModuleLoadData, "null-out", (NULL, image_small_cubin));
    CALLO(cuModuleLoadData, "null-image", (&m, NULL), OUT_H(m));
    CALL(cuModuleLoadFatBinary, "null-out", (NULL, image_small_fatbin));
    CALLO(cuModuleLoadFatBinary, "null-image", (&m, NULL), OUT_H(m));
    CALL(cuModuleLoadDataEx, "null-out", (NULL, image_small_cubin, 0, NULL, NULL));
    CALLO(cuModuleLoadDataEx, "null-image", (&m, NULL, 0, NULL, NULL), OUT_H(m));
}

/* The wrapper that nvcc's host code has before a fat binary. */
SCENARIO(wrapped, "module/wrapped") {
    struct wrapper {
        unsigned magic, version;
        const void *data;
        void *filename;
    } wrapper = {0x466243b1, 1, image_small_fatbin, NULL};
    CUmodule m;
    par_context();
    one_image("wrapped", &wrapper);
    CALLO(cuModuleLoadFatBinary, "wrapped", (&m, &wrapper), OUT_H(m));
    wrapper.version = 2;
    one_image("wrapped-version-2", &wrapper);
    wrapper.version = 7;
    one_image("wrapped-version-7", &wrapper);
    wrapper.version = 1;
    wrapper.data = image_small_cubin;
    one_image("wrapped-cubin", &wrapper);
    wrapper.data = TEXT_PLAIN;
    one_image("wrapped-ptx", &wrapper);
    wrapper.data = NULL;
    one_image("wrapped-null", &wrapper);
}

SCENARIO(bad_texts, "module/bad-texts", par_context) {
    CUmodule m;
    CALLO(cuModuleLoadData, "empty", (&m, ""), OUT_H(m));
    CALLO(cuModuleLoadData, "blank", (&m, "  \n\n"), OUT_H(m));
    CALLO(cuModuleLoadData, "garbage", (&m, "this is no program"), OUT_H(m));
    CALLO(cuModuleLoadData, "no-version", (&m, ".target sm_70\n.address_size 64\n" TEXT_ENTRY),
          OUT_H(m));
    CALLO(cuModuleLoadData, "no-target", (&m, ".version 7.8\n.address_size 64\n" TEXT_ENTRY),
          OUT_H(m));
    CALLO(cuModuleLoadData, "no-address-size", (&m, ".version 7.8\n.target sm_70\n" TEXT_ENTRY),
          OUT_H(m));
    CALLO(cuModuleLoadData, "address-size-32",
          (&m, ".version 7.8\n.target sm_70\n.address_size 32\n" TEXT_ENTRY), OUT_H(m));
    CALLO(cuModuleLoadData, "version-99",
          (&m, ".version 99.9\n.target sm_70\n.address_size 64\n" TEXT_ENTRY), OUT_H(m));
    CALLO(cuModuleLoadData, "version-9-1",
          (&m, ".version 9.1\n.target sm_70\n.address_size 64\n" TEXT_ENTRY), OUT_H(m));
    CALLO(cuModuleLoadData, "version-9-0",
          (&m, ".version 9.0\n.target sm_75\n.address_size 64\n" TEXT_ENTRY), OUT_H(m));
    CALLO(cuModuleLoadData, "version-1-4", (&m, ".version 1.4\n.target sm_10\n" TEXT_ENTRY),
          OUT_H(m));
    CALLO(cuModuleLoadData, "version-2-3",
          (&m, ".version 2.3\n.target sm_20\n.address_size 64\n" TEXT_ENTRY), OUT_H(m));
    CALLO(cuModuleLoadData, "version-6-0-sm-30",
          (&m, ".version 6.0\n.target sm_30\n.address_size 64\n" TEXT_ENTRY), OUT_H(m));
    CALLO(cuModuleLoadData, "version-no-number",
          (&m, ".version x\n.target sm_70\n.address_size 64\n" TEXT_ENTRY), OUT_H(m));
    CALLO(cuModuleLoadData, "version-6-0-target-90",
          (&m, ".version 6.0\n.target sm_90\n.address_size 64\n" TEXT_ENTRY), OUT_H(m));
    CALLO(cuModuleLoadData, "target-100",
          (&m, ".version 8.7\n.target sm_100\n.address_size 64\n" TEXT_ENTRY), OUT_H(m));
    CALLO(cuModuleLoadData, "target-999",
          (&m, ".version 8.7\n.target sm_999\n.address_size 64\n" TEXT_ENTRY), OUT_H(m));
    CALLO(cuModuleLoadData, "target-90a",
          (&m, ".version 8.0\n.target sm_90a\n.address_size 64\n" TEXT_ENTRY), OUT_H(m));
    CALLO(cuModuleLoadData, "target-100a",
          (&m, ".version 8.7\n.target sm_100a\n.address_size 64\n" TEXT_ENTRY), OUT_H(m));
    CALLO(cuModuleLoadData, "target-no-number",
          (&m, ".version 7.8\n.target fast\n.address_size 64\n" TEXT_ENTRY), OUT_H(m));
    CALLO(cuModuleLoadData, "target-debug",
          (&m, ".version 7.8\n.target sm_70, debug\n.address_size 64\n" TEXT_ENTRY), OUT_H(m));
    CALLO(cuModuleLoadData, "nothing-in-it", (&m, TEXT_HEAD), OUT_H(m));
    CALLO(cuModuleLoadData, "comments", (&m, "// a\n/* b */\n" TEXT_HEAD TEXT_ENTRY), OUT_H(m));
    CALLO(cuModuleLoadData, "truncated", (&m, TEXT_HEAD ".visible .entry empty()\n{\nret;\n"),
          OUT_H(m));
    CALLO(cuModuleLoadData, "no-semicolon", (&m, TEXT_HEAD ".visible .entry empty()\n{\nret\n}\n"),
          OUT_H(m));
    CALLO(cuModuleLoadData, "unknown-instruction",
          (&m, TEXT_HEAD ".visible .entry empty()\n{\nfrobnicate.u32 a, b;\nret;\n}\n"), OUT_H(m));
    CALLO(cuModuleLoadData, "unknown-register",
          (&m, TEXT_HEAD ".visible .entry empty()\n{\nmov.u32 %r1, 0;\nret;\n}\n"), OUT_H(m));
    CALLO(cuModuleLoadData, "unknown-directive", (&m, TEXT_HEAD ".nonsense 3;\n" TEXT_ENTRY),
          OUT_H(m));
    CALLO(cuModuleLoadData, "same-entry-twice", (&m, TEXT_HEAD TEXT_ENTRY TEXT_ENTRY), OUT_H(m));
    CALLO(cuModuleLoadData, "same-variable-twice",
          (&m, TEXT_HEAD ".global .u32 a;\n.global .u32 a;\n" TEXT_ENTRY), OUT_H(m));
    CALLO(cuModuleLoadData, "undefined-function", (&m, TEXT_CALLER), OUT_H(m));
    CALLO(cuModuleLoadData, "functions-only", (&m, TEXT_OUTSIDE), OUT_H(m));
    CALLO(cuModuleLoadData, "undefined-variable-unused",
          (&m, TEXT_HEAD ".extern .global .align 4 .u32 nowhere;\n" TEXT_ENTRY), OUT_H(m));
    CALLO(cuModuleLoadData, "undefined-function-unused",
          (&m, TEXT_HEAD ".extern .func nowhere();\n" TEXT_ENTRY), OUT_H(m));
    CALLO(cuModuleLoadData, "too-much-shared",
          (&m,
           TEXT_HEAD ".visible .entry empty()\n{\n.shared .align 4 .b8 t[60000];\n.reg .b32 r;\n"
                     "ld.volatile.shared.u32 r, [t];\nst.volatile.shared.u32 [t+4], r;\nret;\n}\n"),
          OUT_H(m));
    CALLO(cuModuleLoadData, "bad-initializer",
          (&m, TEXT_HEAD ".global .align 4 .u32 a[2] = {1, 2, 3};\n" TEXT_ENTRY), OUT_H(m));
    CALLO(cuModuleLoadData, "too-many-threads",
          (&m, TEXT_HEAD ".visible .entry empty()\n.maxntid 2048, 1, 1\n{\nret;\n}\n"), OUT_H(m));
}

SCENARIO(bad_bytes, "module/bad-bytes") {
    static unsigned char bytes[8192] __attribute__((aligned(8)));
    CUmodule m;
    par_context();
    memcpy(bytes, image_small_cubin, sizeof(image_small_cubin));
    bytes[18] = 62; /* e_machine: x86-64 */
    CALLO(cuModuleLoadData, "elf-of-the-host", (&m, bytes), OUT_H(m));
    memcpy(bytes, image_small_cubin, sizeof(image_small_cubin));
    bytes[4] = 1; /* EI_CLASS: 32 bits */
    CALLO(cuModuleLoadData, "elf-of-32-bits", (&m, bytes), OUT_H(m));
    memcpy(bytes, image_small_cubin, sizeof(image_small_cubin));
    memset(bytes + 64, 0, sizeof(bytes) - 64);
    CALLO(cuModuleLoadData, "elf-header-only", (&m, bytes), OUT_H(m));
    memcpy(bytes, image_small_cubin, sizeof(image_small_cubin));
    memset(bytes + 60, 0, 2); /* e_shnum */
    CALLO(cuModuleLoadData, "elf-no-sections", (&m, bytes), OUT_H(m));
    memset(bytes, 0, sizeof(bytes));
    memcpy(bytes, "\177ELF", 4);
    CALLO(cuModuleLoadData, "elf-magic-only", (&m, bytes), OUT_H(m));
    memcpy(bytes, image_small_fatbin, 16);
    memset(bytes + 16, 0, sizeof(bytes) - 16);
    CALLO(cuModuleLoadData, "fatbin-header-only", (&m, bytes), OUT_H(m));
    memset(bytes + 8, 0, 8);
    CALLO(cuModuleLoadData, "fatbin-empty", (&m, bytes), OUT_H(m));
    CALLO(cuModuleLoadFatBinary, "fatbin-empty", (&m, bytes), OUT_H(m));
    memset(bytes, 0xff, sizeof(bytes));
    bytes[sizeof(bytes) - 1] = 0;
    CALLO(cuModuleLoadData, "all-ff", (&m, bytes), OUT_H(m));
    CALLO(cuModuleLoadFatBinary, "all-ff", (&m, bytes), OUT_H(m));
}

/* Files -------------------------------------------------------------------------------------------
 */

static const char *write_file(const void *data, size_t size) {
    static char path[TEMPORARY_ROOM];
    int fd = temporary_file(path, "parity-image");
    if (fd < 0 || write(fd, data, size) != (ssize_t)size) {
        par_see("setup", "SETUP_FAILED file");
        _exit(4);
    }
    close(fd);
    return path;
}

SCENARIO(files, "module/files", par_context) {
    CUmodule m;
    const char *path = write_file(TEXT_PLAIN, sizeof(TEXT_PLAIN) - 1);
    CALLO(cuModuleLoad, "ptx", (&m, path), OUT_H(m));
    unlink(path);
    path = write_file(image_small_cubin, sizeof(image_small_cubin));
    CALLO(cuModuleLoad, "cubin", (&m, path), OUT_H(m));
    unlink(path);
    path = write_file(image_small_fatbin, sizeof(image_small_fatbin));
    CALLO(cuModuleLoad, "fatbin", (&m, path), OUT_H(m));
    unlink(path);
    path = write_file("", 0);
    CALLO(cuModuleLoad, "empty", (&m, path), OUT_H(m));
    unlink(path);
    path = write_file("nothing of use", 14);
    CALLO(cuModuleLoad, "garbage", (&m, path), OUT_H(m));
    unlink(path);
    path = write_file(image_small_cubin, 100);
    CALLO(cuModuleLoad, "truncated-cubin", (&m, path), OUT_H(m));
    unlink(path);
    path = write_file(image_small_cubin, 2048);
    CALLO(cuModuleLoad, "half-a-cubin", (&m, path), OUT_H(m));
    unlink(path);
    CALLO(cuModuleLoad, "missing", (&m, "/tmp/parity-there-is-no-such-file"), OUT_H(m));
    CALLO(cuModuleLoad, "folder", (&m, "/tmp"), OUT_H(m));
    CALLO(cuModuleLoad, "empty-name", (&m, ""), OUT_H(m));
    CALLO(cuModuleLoad, "null-name", (&m, NULL), OUT_H(m));
    CALL(cuModuleLoad, "null-out", (NULL, "/tmp/parity-there-is-no-such-file"));
    CALL(cuModuleLoad, "null-both", (NULL, NULL));
}

/* Functions ---------------------------------------------------------------------------------------
 */

static void functions_of(const char *cls, CUmodule m, const char *const *names) {
    CUfunction f, again;
    CUmodule back;
    const char *name;
    for (size_t i = 0; names[i] != NULL; i++) {
        par_note("%s", names[i]);
        CALLO(cuModuleGetFunction, cls, (&f, m, names[i]), OUT_C(f));
        if (par_last() != CUDA_SUCCESS)
            continue;
        SETUP(cuModuleGetFunction, (&again, m, names[i]));
        par_see("same-handle", "%d", f == again);
        CALLO(cuFuncGetModule, cls, (&back, f), OUT_C(back));
        par_see("same-module", "%d", back == m);
        CALLO(cuFuncGetName, cls, (&name, f), OUT_Z(name));
    }
}

SCENARIO(functions, "module/functions") {
    static const char *const in_ptx[] = {"empty",     "types",  "bounded", "required", "shared",
                                         "invisible", "helper", "counter", "nothing",  "",
                                         "Empty",     "empty ", NULL};
    static const char *const in_cubin[] = {"empty",     "types",   "bounded", "heavy", "clustered",
                                           "variables", "counter", "nothing", NULL};
    CUfunction f, list[20];
    CUmodule m, n, back;
    const char *name;
    unsigned count;
    par_context();
    m = load(TEXT_PLAIN);
    n = load(image_kernels_cubin);
    NAME(m);
    NAME(n);
    functions_of("ptx", m, in_ptx);
    functions_of("cubin", n, in_cubin);
    CALL(cuModuleGetFunction, "null-out", (NULL, m, "empty"));
    CALLO(cuModuleGetFunction, "null-name", (&f, m, NULL), OUT_C(f));
    CALLO(cuModuleGetFunction, "null-module", (&f, NULL, "empty"), OUT_C(f));
    CALLO(cuModuleGetFunctionCount, "ptx", (&count, m), OUT_U(count));
    CALLO(cuModuleGetFunctionCount, "cubin", (&count, n), OUT_U(count));
    CALL(cuModuleGetFunctionCount, "null-out", (NULL, m));
    CALLO(cuModuleGetFunctionCount, "null-module", (&count, NULL), OUT_U(count));
    CALL(cuModuleEnumerateFunctions, "null-out", (NULL, 1, m));
    CALL(cuModuleEnumerateFunctions, "null-out-zero", (NULL, 0, m));
    CALLO(cuModuleEnumerateFunctions, "null-module", (list, 1, NULL), OUT_C(list[0]));
    CALLO(cuModuleEnumerateFunctions, "zero", (list, 0, m), OUT_C(list[0]));
    CALLO(cuModuleEnumerateFunctions, "some", (list, 2, m), OUT_C(list[1]), OUT_C(list[2]));
    CALLO(cuModuleEnumerateFunctions, "more", (list, 20, n), OUT_C(list[8]), OUT_C(list[9]));
    for (unsigned i = 0; i < 9; i++) {
        par_note("%u", i);
        CALLO(cuFuncGetName, "enumerated", (&name, list[i]), OUT_Z(name));
    }
    CALLO(cuModuleEnumerateFunctions, "ptx", (list, 20, m), OUT_C(list[6]), OUT_C(list[7]));
    for (unsigned i = 0; i < 6; i++) {
        par_note("%u", i);
        CALLO(cuFuncGetName, "enumerated-ptx", (&name, list[i]), OUT_Z(name));
    }
    SETUP(cuModuleGetFunction, (&f, m, "empty"));
    CALL(cuFuncGetName, "null-out", (NULL, f));
    CALLO(cuFuncGetName, "null-function", (&name, NULL), OUT_C(name));
    CALL(cuFuncGetModule, "null-out", (NULL, f));
    CALLO(cuFuncGetModule, "null-function", (&back, NULL), OUT_C(back));
}

/* Variables ---------------------------------------------------------------------------------------
 */

static const char *const variables_of_ptx[] = {
    "counter", "bytes",   "to_counter", "to_bytes_2", "state_space", "factors",
    "zeros",   "aligned", "weak_one",   "common_one", "hidden",      "large",
    "nothing", "",        "empty",      "helper",     NULL};
static const char *const variables_of_cubin[] = {"counter",    "table",   "zeros",  "to_counter",
                                                 "to_table_2", "odd",     "factor", "coefficients",
                                                 "unset",      "nothing", NULL};

static void variables_of(const char *cls, CUmodule m, const char *const *names) {
    for (size_t i = 0; names[i] != NULL; i++) {
        CUdeviceptr p;
        size_t bytes;
        par_note("%s", names[i]);
        CALLO(cuModuleGetGlobal_v2, cls, (&p, &bytes, m, names[i]), OUT_C(p), OUT_U(bytes));
        if (par_last() == CUDA_SUCCESS && bytes <= 64 && strncmp(names[i], "to_", 3) != 0 &&
            strcmp(names[i], "state_space") != 0)
            see_bytes("content", p, bytes);
    }
}

static CUdeviceptr global(CUmodule m, const char *name) {
    return PAR_MADE(CUdeviceptr, cuModuleGetGlobal_v2, NULL, m, name);
}

SCENARIO(globals, "module/globals", par_context) {
    CUdeviceptr p, q;
    size_t bytes;
    CUmodule m = load(TEXT_PLAIN);
    CUmodule n = load(image_kernels_cubin);
    NAME(m);
    NAME(n);
    variables_of("ptx", m, variables_of_ptx);
    variables_of("cubin", n, variables_of_cubin);
    see_address("to_counter", global(m, "to_counter"), global(m, "counter"));
    see_address("to_bytes_2", global(m, "to_bytes_2"), global(m, "bytes") + 2);
    see_address("state_space", global(m, "state_space"), global(m, "counter"));
    see_address("cubin-to_counter", global(n, "to_counter"), global(n, "counter"));
    see_address("cubin-to_table_2", global(n, "to_table_2"), global(n, "table") + 8);
    CALLO(cuModuleGetGlobal_v2, "no-size", (&p, NULL, m, "counter"), OUT_R(p, 4));
    CALLO(cuModuleGetGlobal_v2, "again", (&q, &bytes, m, "counter"), OUT_R(q, 4), OUT_U(bytes));
    CALLO(cuModuleGetGlobal_v2, "no-address", (NULL, &bytes, m, "zeros"), OUT_U(bytes));
    CALL(cuModuleGetGlobal_v2, "no-outputs", (NULL, NULL, m, "counter"));
    CALL(cuModuleGetGlobal_v2, "no-outputs-no-such", (NULL, NULL, m, "nothing"));
    CALLO(cuModuleGetGlobal_v2, "null-name", (&p, &bytes, m, NULL), OUT_C(p), OUT_U(bytes));
    CALLO(cuModuleGetGlobal_v2, "null-module", (&p, &bytes, NULL, "counter"), OUT_C(p),
          OUT_U(bytes));
}

SCENARIO(globals_v1, "module/globals-v1", par_context) {
    CUdeviceptr_v1 p;
    unsigned bytes;
    CUmodule m = load(TEXT_PLAIN);
    CALLO(cuModuleGetGlobal, "v1", (&p, &bytes, m, "counter"), OUT_C(p), OUT_U(bytes));
    CALLO(cuModuleGetGlobal, "v1-no-size", (&p, NULL, m, "counter"), OUT_C(p));
    CALLO(cuModuleGetGlobal, "v1-no-address", (NULL, &bytes, m, "counter"), OUT_U(bytes));
    CALLO(cuModuleGetGlobal, "v1-no-such", (&p, &bytes, m, "nothing"), OUT_C(p), OUT_U(bytes));
}

/* A variable as memory: bounds, kinds, copies, sets. */
static void one_as_memory(const char *cls, CUdeviceptr p, size_t size) {
    unsigned value = 0x01020304, type = 9, back = 0;
    int ordinal = -1;
    CUdeviceptr base, start;
    size_t bytes, range;
    void *host;
    CUcontext ctx;
    unsigned managed, mapped; /* truths are 32 bits wide */
    CALLO(cuMemGetAddressRange_v2, cls, (&base, &bytes, p), OUT_R(base, size), OUT_C(bytes));
    par_see("base", "%s", base == p ? "the variable" : base < p ? "before it" : "after it");
    par_see("size", "%s", bytes == size ? "the variable's" : bytes > size ? "more" : "less");
    CALLO(cuPointerGetAttribute, cls, (&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p), OUT_U(type));
    CALLO(cuPointerGetAttribute, cls, (&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, p),
          OUT_I(ordinal));
    CALLO(cuPointerGetAttribute, cls, (&ctx, CU_POINTER_ATTRIBUTE_CONTEXT, p), OUT_H(ctx));
    CALLO(cuPointerGetAttribute, cls, (&host, CU_POINTER_ATTRIBUTE_HOST_POINTER, p), OUT_C(host));
    CALLO(cuPointerGetAttribute, cls, (&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, p),
          OUT_U(managed));
    CALLO(cuPointerGetAttribute, cls, (&mapped, CU_POINTER_ATTRIBUTE_MAPPED, p), OUT_U(mapped));
    CALLO(cuPointerGetAttribute, cls, (&start, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, p),
          OUT_C(start));
    CALLO(cuPointerGetAttribute, cls, (&range, CU_POINTER_ATTRIBUTE_RANGE_SIZE, p), OUT_C(range));
    par_see("range", "%s %s", start == base ? "same start" : "another start",
            range == bytes ? "same size" : "another size");
    CALL(cuMemcpyHtoD_v2, cls, (p, &value, size < 4 ? size : 4));
    CALLO(cuMemcpyDtoH_v2, cls, (&back, p, size < 4 ? size : 4), OUT_X(back));
    CALL(cuMemsetD8_v2, cls, (p, 0x5a, size));
    CALL(cuMemFree_v2, cls, (p));
    CALL(cuMemFreeAsync, cls, (p, NULL));
}

SCENARIO(as_memory, "module/as-memory", par_context) {
    CUmodule m = load(TEXT_PLAIN);
    CUmodule n = load(image_kernels_cubin);
    one_as_memory("ptx-counter", global(m, "counter"), 4);
    one_as_memory("ptx-zeros", global(m, "zeros"), 100);
    one_as_memory("ptx-large", global(m, "large"), 3000000);
    one_as_memory("ptx-const", global(m, "factors"), 16);
    one_as_memory("cubin-counter", global(n, "counter"), 4);
    one_as_memory("cubin-const", global(n, "factor"), 4);
    par_see("aligned", "%d", global(m, "aligned") % 256 == 0);
}

SCENARIO(past_variable, "module/past-variable", par_context) {
    unsigned char bytes[200] = {0};
    CUmodule m = load(TEXT_PLAIN);
    CALL(cuMemcpyHtoD_v2, "past-zeros", (global(m, "zeros"), bytes, 101));
    CALL(cuMemcpyDtoH_v2, "past-zeros", (bytes, global(m, "zeros"), 101));
    CALL(cuMemsetD8_v2, "past-zeros", (global(m, "zeros"), 0, 101));
    CALL(cuMemcpyDtoH_v2, "past-large", (bytes, global(m, "large") + 3000000 - 8, 16));
    CALL(cuMemcpyDtoH_v2, "past-const", (bytes, global(m, "factors"), 17));
}

/* Two modules of one image have their own variables; unloading gives the memory back. */
SCENARIO(instances, "module/instances", par_context) {
    unsigned value = 99;
    CUmodule m = load(TEXT_PLAIN);
    CUmodule n = load(TEXT_PLAIN);
    CUdeviceptr p = global(m, "counter");
    CUdeviceptr q = global(n, "counter");
    par_see("instances", "%s", p == q ? "one" : "two");
    SETUP(cuMemcpyHtoD_v2, (p, &value, 4));
    see_bytes("first", p, 4);
    see_bytes("second", q, 4);
    CALL(cuModuleUnload, "ok", (m));
    see_bytes("second-after-unload", q, 4);
    CALL(cuMemcpyDtoH_v2, "unloaded", (&value, p, 4));
    CALL(cuModuleUnload, "ok", (n));
}

SCENARIO(unload, "module/unload", par_context) {
    CUmodule m, n, back;
    CUdeviceptr p;
    size_t bytes;
    unsigned count;
    int value;
    const char *name;
    CUfunctionLoadingState state;
    m = load(TEXT_PLAIN);
    CUfunction f = par_function(m, "empty");
    CALL(cuModuleUnload, "null", (NULL));
    CALL(cuModuleUnload, "ok", (m));
    CALL(cuModuleUnload, "stale-handle", (m));
    CALLO(cuModuleGetFunction, "stale-handle", (&f, m, "empty"), OUT_C(f));
    CALLO(cuModuleGetGlobal_v2, "stale-handle", (&p, &bytes, m, "counter"), OUT_C(p), OUT_U(bytes));
    CALLO(cuModuleGetFunctionCount, "stale-handle", (&count, m), OUT_U(count));
    n = load(TEXT_PLAIN);
    SETUP(cuModuleGetFunction, (&f, n, "empty"));
    SETUP(cuModuleUnload, (n));
    CALLO(cuFuncGetAttribute, "stale-handle", (&value, CU_FUNC_ATTRIBUTE_NUM_REGS, f),
          OUT_I(value));
    CALLO(cuFuncGetName, "stale-handle", (&name, f), OUT_C(name));
    CALLO(cuFuncGetModule, "stale-handle", (&back, f), OUT_C(back));
    CALLO(cuFuncIsLoaded, "stale-handle", (&state, f), OUT_I(state));
    CALL(cuFuncLoad, "stale-handle", (f));
    CALL(cuFuncSetCacheConfig, "stale-handle", (f, CU_FUNC_CACHE_PREFER_L1));
    CALL(cuLaunchKernel, "stale-handle", (f, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    CALLO(cuOccupancyMaxActiveBlocksPerMultiprocessor, "stale-handle", (&value, f, 32, 0),
          OUT_I(value));
}

/* Texture references ------------------------------------------------------------------------------
 */

SCENARIO(references, "module/references", par_context) {
    CUmodule m, n;
    CUtexref t;
    CUsurfref s;
    CALLO(cuModuleLoadData, "textures", (&m, TEXT_TEXTURES), OUT_H(m));
    if (par_last() != CUDA_SUCCESS)
        return;
    n = load(image_small_cubin);
    CALLO(cuModuleGetTexRef, "ok", (&t, m, "picture"), OUT_C(t));
    CALLO(cuModuleGetTexRef, "surface", (&t, m, "board"), OUT_C(t));
    CALLO(cuModuleGetTexRef, "no-such", (&t, m, "nothing"), OUT_C(t));
    CALLO(cuModuleGetTexRef, "function", (&t, m, "look"), OUT_C(t));
    CALLO(cuModuleGetTexRef, "other-module", (&t, n, "picture"), OUT_C(t));
    CALL(cuModuleGetTexRef, "null-out", (NULL, m, "picture"));
    CALLO(cuModuleGetTexRef, "null-name", (&t, m, NULL), OUT_C(t));
    CALLO(cuModuleGetTexRef, "null-module", (&t, NULL, "picture"), OUT_C(t));
    CALLO(cuModuleGetSurfRef, "ok", (&s, m, "board"), OUT_C(s));
    CALLO(cuModuleGetSurfRef, "texture", (&s, m, "picture"), OUT_C(s));
    CALLO(cuModuleGetSurfRef, "no-such", (&s, m, "nothing"), OUT_C(s));
    CALL(cuModuleGetSurfRef, "null-out", (NULL, m, "board"));
    CALLO(cuModuleGetSurfRef, "null-name", (&s, m, NULL), OUT_C(s));
    CALLO(cuModuleGetSurfRef, "null-module", (&s, NULL, "board"), OUT_C(s));
}

SCENARIO(managed, "module/managed", par_context) {
    CUmodule m;
    CUdeviceptr p;
    size_t bytes;
    unsigned is = 9; /* truths are 32 bits wide */
    CALLO(cuModuleLoadData, "managed", (&m, TEXT_MANAGED), OUT_H(m));
    if (par_last() != CUDA_SUCCESS)
        return;
    CALLO(cuModuleGetGlobal_v2, "plain", (&p, &bytes, m, "plain_one"), OUT_C(p), OUT_U(bytes));
    CALLO(cuModuleGetGlobal_v2, "managed", (&p, &bytes, m, "managed_one"), OUT_C(p), OUT_U(bytes));
    CALLO(cuPointerGetAttribute, "managed", (&is, CU_POINTER_ATTRIBUTE_IS_MANAGED, p), OUT_U(is));
    par_see("host-sees", "%u", *(unsigned *)(uintptr_t)p);
    see_bytes("device-sees", p, 4);
    CALL(cuModuleUnload, "managed", (m));
}

/* Contexts ----------------------------------------------------------------------------------------
 */

SCENARIO(contexts, "module/contexts", par_context) {
    CUdeviceptr p;
    size_t bytes;
    int value;
    const char *name;
    CUmodule m = load(TEXT_PLAIN);
    CUfunction f = par_function(m, "empty");
    par_new_context();
    CALLO(cuModuleGetFunction, "other-ctx", (&f, m, "types"), OUT_C(f));
    CALLO(cuModuleGetGlobal_v2, "other-ctx", (&p, &bytes, m, "counter"), OUT_C(p), OUT_U(bytes));
    CALLO(cuFuncGetAttribute, "other-ctx", (&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, f),
          OUT_I(value));
    CALLO(cuFuncGetName, "other-ctx", (&name, f), OUT_Z(name));
    CALL(cuFuncSetCacheConfig, "other-ctx", (f, CU_FUNC_CACHE_PREFER_L1));
    CALL(cuLaunchKernel, "other-ctx-bad-block", (f, 1, 1, 1, 0, 1, 1, 0, NULL, NULL, NULL));
    CALL(cuLaunchKernel, "other-ctx", (f, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    CALLO(cuOccupancyMaxActiveBlocksPerMultiprocessor, "other-ctx", (&value, f, 32, 0),
          OUT_I(value));
    CALL(cuModuleUnload, "other-ctx", (m));
    SETUP(cuCtxSetCurrent, (NULL));
    CUmodule n = NULL;
    CALLO(cuModuleLoadData, "no-ctx", (&n, TEXT_PLAIN), OUT_H(n));
    CALLO(cuModuleGetFunction, "no-ctx", (&f, m, "empty"), OUT_C(f));
    CALLO(cuModuleGetGlobal_v2, "no-ctx", (&p, &bytes, m, "counter"), OUT_C(p), OUT_U(bytes));
    CALLO(cuFuncGetAttribute, "no-ctx", (&value, CU_FUNC_ATTRIBUTE_NUM_REGS, f), OUT_C(value));
}

SCENARIO(no_context, "module/no-context", par_context) {
    CUmodule m, back;
    CUfunction f, list[4];
    CUdeviceptr p;
    size_t bytes;
    int value;
    unsigned count;
    const char *name;
    CUfunctionLoadingState state;
    m = load(TEXT_PLAIN);
    SETUP(cuModuleGetFunction, (&f, m, "types"));
    SETUP(cuCtxSetCurrent, (NULL));
    CALLO(cuModuleGetFunction, "no-ctx", (&f, m, "types"), OUT_C(f));
    CALLO(cuModuleGetGlobal_v2, "no-ctx", (&p, &bytes, m, "counter"), OUT_C(p), OUT_U(bytes));
    CALLO(cuModuleGetFunctionCount, "no-ctx", (&count, m), OUT_U(count));
    CALLO(cuModuleEnumerateFunctions, "no-ctx", (list, 1, m), OUT_C(list[0]));
    CALLO(cuFuncGetAttribute, "no-ctx", (&value, CU_FUNC_ATTRIBUTE_NUM_REGS, f), OUT_I(value));
    CALLO(cuFuncGetName, "no-ctx", (&name, f), OUT_Z(name));
    CALLO(cuFuncGetModule, "no-ctx", (&back, f), OUT_C(back));
    CALLO(cuFuncGetParamInfo, "no-ctx", (f, 0, &bytes, NULL), OUT_U(bytes));
    CALLO(cuFuncIsLoaded, "no-ctx", (&state, f), OUT_I(state));
    CALL(cuFuncLoad, "no-ctx", (f));
    CALL(cuFuncSetAttribute, "no-ctx", (f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 64));
    CALL(cuFuncSetCacheConfig, "no-ctx", (f, CU_FUNC_CACHE_PREFER_L1));
    CALL(cuFuncSetSharedMemConfig, "no-ctx", (f, CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE));
    CALL(cuLaunchKernel, "no-ctx", (f, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    CALLO(cuOccupancyMaxActiveBlocksPerMultiprocessor, "no-ctx", (&value, f, 32, 0), OUT_I(value));
    CALL(cuFuncSetBlockShape, "no-ctx", (f, 1, 1, 1));
    CALL(cuParamSetSize, "no-ctx", (f, 8));
    CALL(cuModuleUnload, "no-ctx", (m));
}

SCENARIO(context_destroyed, "module/context-destroyed", par_context) {
    CUmodule m, back;
    CUdeviceptr p;
    size_t bytes;
    int value;
    const char *name;
    CUfunctionLoadingState state;
    CUcontext other = par_new_context();
    m = load(TEXT_PLAIN);
    CUfunction f = par_function(m, "empty");
    SETUP(cuCtxDestroy_v2, (other));
    SETUP(cuCtxSetCurrent, (par.primary));
    CALLO(cuModuleGetFunction, "destroyed-ctx", (&f, m, "types"), OUT_C(f));
    CALLO(cuModuleGetGlobal_v2, "destroyed-ctx", (&p, &bytes, m, "counter"), OUT_C(p),
          OUT_U(bytes));
    CALLO(cuFuncGetAttribute, "destroyed-ctx", (&value, CU_FUNC_ATTRIBUTE_NUM_REGS, f),
          OUT_I(value));
    CALLO(cuFuncGetName, "destroyed-ctx", (&name, f), OUT_C(name));
    CALLO(cuFuncGetModule, "destroyed-ctx", (&back, f), OUT_C(back));
    CALLO(cuFuncIsLoaded, "destroyed-ctx", (&state, f), OUT_C(state));
    CALL(cuModuleUnload, "destroyed-ctx", (m));
}

/* Loading modes -----------------------------------------------------------------------------------
 */

static void mode(const char *value) {
    CUmoduleLoadingMode loading;
    CUfunctionLoadingState state;
    CUfunction f, g, list[20];
    int registers;
    if (value != NULL)
        setenv("CUDA_MODULE_LOADING", value, 1);
    else
        unsetenv("CUDA_MODULE_LOADING");
    par_context();
    CALLO(cuModuleGetLoadingMode, "ok", (&loading), OUT_I(loading));
    CUmodule m = load(TEXT_PLAIN);
    CUmodule n = load(image_kernels_cubin);
    SETUP(cuModuleEnumerateFunctions, (list, 20, n));
    CALLO(cuFuncIsLoaded, "enumerated", (&state, list[0]), OUT_I(state));
    CALLO(cuFuncGetAttribute, "enumerated", (&registers, CU_FUNC_ATTRIBUTE_BINARY_VERSION, list[0]),
          OUT_I(registers));
    CALLO(cuFuncGetAttribute, "enumerated",
          (&registers, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, list[0]), OUT_I(registers));
    CALLO(cuFuncIsLoaded, "enumerated", (&state, list[0]), OUT_I(state));
    CALL(cuFuncLoad, "enumerated", (list[0]));
    CALLO(cuFuncIsLoaded, "enumerated-loaded", (&state, list[0]), OUT_I(state));
    SETUP(cuModuleGetFunction, (&f, m, "empty"));
    CALLO(cuFuncIsLoaded, "ptx", (&state, f), OUT_I(state));
    CALL(cuFuncLoad, "ptx", (f));
    CALLO(cuFuncIsLoaded, "ptx", (&state, f), OUT_I(state));
    SETUP(cuModuleGetFunction, (&g, n, "empty"));
    CALLO(cuFuncIsLoaded, "cubin", (&state, g), OUT_I(state));
    CALLO(cuFuncGetAttribute, "cubin", (&registers, CU_FUNC_ATTRIBUTE_NUM_REGS, g),
          OUT_I(registers));
    CALLO(cuFuncIsLoaded, "cubin-asked", (&state, g), OUT_I(state));
    CALL(cuFuncLoad, "cubin", (g));
    CALL(cuFuncLoad, "cubin-again", (g));
    CALLO(cuFuncIsLoaded, "cubin-loaded", (&state, g), OUT_I(state));
    CALL(cuFuncIsLoaded, "null-out", (NULL, g));
    CALLO(cuFuncIsLoaded, "null-function", (&state, NULL), OUT_I(state));
    CALL(cuFuncLoad, "null-function", (NULL));
}

SCENARIO_IS(mode_default, "module/mode-default", mode(NULL));
SCENARIO_IS(mode_eager, "module/mode-eager", mode("EAGER"));
SCENARIO_IS(mode_lazy, "module/mode-lazy", mode("LAZY"));
SCENARIO_IS(mode_lower, "module/mode-lower", mode("eager"));
SCENARIO_IS(mode_default_name, "module/mode-default-name", mode("DEFAULT"));
SCENARIO_IS(mode_garbage, "module/mode-garbage", mode("sometimes"));
SCENARIO_IS(mode_empty, "module/mode-empty", mode(""));

/* Values that never were handles: each may end the process, which costs its own line only. */
SCENARIO(random_handles, "module/random-handles", par_context) {
    CUmodule m = (CUmodule)(uintptr_t)0x1234;
    CUfunction f = (CUfunction)(uintptr_t)0x1234;
    CUdeviceptr p;
    size_t bytes;
    int value;
    unsigned count;
    const char *name;
    CALL(cuModuleUnload, "random-handle", (m));
    CALLO(cuModuleGetFunction, "random-handle", (&f, m, "a"), OUT_C(f));
    CALLO(cuModuleGetGlobal_v2, "random-handle", (&p, &bytes, m, "a"), OUT_C(p), OUT_U(bytes));
    CALLO(cuModuleGetFunctionCount, "random-handle", (&count, m), OUT_U(count));
    f = (CUfunction)(uintptr_t)0x1234;
    CALLO(cuFuncGetAttribute, "random-handle", (&value, CU_FUNC_ATTRIBUTE_NUM_REGS, f),
          OUT_I(value));
    CALLO(cuFuncGetName, "random-handle", (&name, f), OUT_C(name));
    CALL(cuFuncLoad, "random-handle", (f));
}
