/*
 * Linkers, asked again: objects and archives of a host's compiler, what is undefined but never
 * called, and inputs of each type, each in a linker of its own (in link/inputs the first one that
 * was refused answered for all behind it).
 */
#include "../parity.h"
#include "images.h"
#include "link_file.h"
#include "module_texts.h"

#define VALUE(n) ((void *)(uintptr_t)(n))

static CUlinkState create(void) {
    return PAR_GOT(CUlinkState, cuLinkCreate_v2, 0, NULL, NULL);
}

static void add(const char *cls, CUlinkState s, CUjitInputType type, const void *data,
                size_t size) {
    CALL(cuLinkAddData_v2, cls, (s, type, VALUE(data), size, cls, 0, NULL, NULL));
}

#define ADD(cls, s, type, image) add(cls, s, CU_JIT_INPUT_##type, image, sizeof(image))

/* Which entries there are says which members were linked. */
static void finish(const char *cls, CUlinkState s) {
    static const char *const entries[] = {"calls_library", "first_of_two", "second_of_two",
                                          "reaches", "empty"};
    void *image;
    size_t size;
    unsigned count = 0;
    CUmodule m = NULL;
    CALLO(cuLinkComplete, cls, (s, &image, &size), OUT_C(image));
    if (par_last() == CUDA_SUCCESS)
        CALLO(cuModuleLoadData, cls, (&m, image), OUT_C(m));
    if (par_last() == CUDA_SUCCESS) {
        CALLO(cuModuleGetFunctionCount, cls, (&count, m), OUT_U(count));
        for (size_t i = 0; i < COUNT(entries); i++) {
            CUfunction f = NULL;
            if (par.api->cuModuleGetFunction(&f, m, entries[i]) == CUDA_SUCCESS)
                par_see("entry", "%s", entries[i]);
        }
    }
    SETUP(cuLinkDestroy, (s));
}

/* ---- Objects and archives -------------------------------------------------------------------- */

SCENARIO(object_then_archive, "link-again/object-then-archive", par_context) {
    CUlinkState s = create();
    ADD("object", s, OBJECT, image_caller_object);
    ADD("archive", s, LIBRARY, image_archive);
    finish("object-then-archive", s);
}

SCENARIO(archive_then_object, "link-again/archive-then-object", par_context) {
    CUlinkState s = create();
    ADD("archive", s, LIBRARY, image_archive);
    ADD("object", s, OBJECT, image_caller_object);
    finish("archive-then-object", s);
}

SCENARIO(archive_alone, "link-again/archive-alone", par_context) {
    CUlinkState s = create();
    ADD("archive", s, LIBRARY, image_archive);
    finish("archive-alone", s);
}

SCENARIO(object_alone, "link-again/object-alone", par_context) {
    CUlinkState s = create();
    ADD("object", s, OBJECT, image_caller_object);
    finish("object-alone", s);
}

SCENARIO(archive_reached, "link-again/archive-reached", par_context) {
    CUlinkState s = create();
    ADD("archive", s, LIBRARY, image_archive);
    ADD("reaching-object", s, OBJECT, image_reaching_object);
    finish("archive-reached", s);
}

SCENARIO(archive_twice, "link-again/archive-twice", par_context) {
    CUlinkState s = create();
    ADD("archive", s, LIBRARY, image_archive);
    ADD("archive", s, LIBRARY, image_archive);
    finish("archive-twice", s);
}

SCENARIO(archive_other_name, "link-again/archive-other-name", par_context) {
    CUlinkState s = create();
    ADD("archive", s, LIBRARY, image_archive);
    ADD("archive-of-another-name", s, LIBRARY, image_archive);
    finish("archive-other-name", s);
}

SCENARIO(object_twice, "link-again/object-twice", par_context) {
    CUlinkState s = create();
    ADD("archive", s, LIBRARY, image_archive);
    ADD("object", s, OBJECT, image_caller_object);
    ADD("object", s, OBJECT, image_caller_object);
    finish("object-twice", s);
}

SCENARIO(archive_files, "link-again/archive-files", par_context) {
    CUlinkState s = create();
    add_file("object", s, CU_JIT_INPUT_OBJECT, image_caller_object, sizeof(image_caller_object));
    add_file("archive", s, CU_JIT_INPUT_LIBRARY, image_archive, sizeof(image_archive));
    finish("archive-files", s);
}

SCENARIO(archive_empty, "link-again/archive-empty", par_context) {
    CUlinkState s = create();
    add("no-members", s, CU_JIT_INPUT_LIBRARY, "!<arch>\n", 8);
    finish("archive-empty", s);
}

/* Ends in the middle of the member with that number of bytes before it. */
SCENARIO(archive_cut, "link-again/archive-cut", par_context) {
    static const size_t sizes[] = {sizeof(image_archive) / 2, sizeof(image_archive) - 100, 68, 40};
    for (size_t i = 0; i < COUNT(sizes); i++) {
        CUlinkState s = create();
        par_note("size=%zu", sizes[i]);
        add("cut", s, CU_JIT_INPUT_LIBRARY, image_archive, sizes[i]);
        finish("archive-cut", s);
    }
}

SCENARIO(archive_as_object, "link-again/archive-as-object", par_context) {
    CUlinkState s = create();
    ADD("archive-as-object", s, OBJECT, image_archive);
    finish("archive-as-object", s);
}

SCENARIO(object_as_library, "link-again/object-as-library", par_context) {
    CUlinkState s = create();
    ADD("object-as-library", s, LIBRARY, image_caller_object);
    finish("object-as-library", s);
}

/* A member by its name; NULL when there is none. */
static const unsigned char *member(const char *name, size_t *size) {
    for (size_t at = 8; at + 60 <= sizeof(image_archive);) {
        char digits[11] = "";
        memcpy(digits, image_archive + at + 48, 10);
        *size = (size_t)strtoul(digits, NULL, 10);
        if (strncmp((const char *)image_archive + at, name, strlen(name)) == 0)
            return image_archive + at + 60;
        at += 60 + *size + *size % 2;
    }
    return NULL;
}

SCENARIO(object_without_code, "link-again/object-without-code", par_context) {
    size_t size;
    const unsigned char *object = member("empty.o/", &size);
    CUlinkState s = create();
    add("no-device-code", s, CU_JIT_INPUT_OBJECT, object, size);
    finish("object-without-code", s);
}

/* Of a toolkit, where there is one: it is no part of the driver. */
SCENARIO(cudadevrt, "link-again/cudadevrt") {
    static const char *const paths[] = {"/usr/local/cuda/lib64/libcudadevrt.a",
                                        "/usr/local/cuda/lib/libcudadevrt.a",
                                        "/usr/local/cuda/targets/x86_64-linux/lib/libcudadevrt.a"};
    const char *path = getenv("GPUMEM_CUDADEVRT");
    for (size_t i = 0; path == NULL && i < COUNT(paths); i++)
        path = access(paths[i], R_OK) == 0 ? paths[i] : NULL;
    if (path == NULL) {
        par_see("absent", "no toolkit with libcudadevrt.a");
        return;
    }
    par_context();
    CUlinkState s = create();
    CALL(cuLinkAddFile_v2, "cudadevrt", (s, CU_JIT_INPUT_LIBRARY, path, 0, NULL, NULL));
    add("text", s, CU_JIT_INPUT_PTX, TEXT_HEAD TEXT_ENTRY, sizeof(TEXT_HEAD TEXT_ENTRY));
    finish("cudadevrt", s);
}

/* ---- Undefined, and never called ------------------------------------------------------------- */

#define CALLS    "{\n.param .b32 out;\ncall.uni (out), nowhere, ();\n}\nret;\n}\n"
#define LACKS    TEXT_HEAD ".extern .func (.param .b32 result) nowhere();\n"
#define UNUSED   LACKS ".visible .func unused()\n{\n" CALLS
#define WITH_ONE UNUSED TEXT_ENTRY
#define POINTS   WITH_ONE ".visible .global .u64 pointer = unused;\n"
#define USES                                                                                       \
    TEXT_HEAD ".extern .func unused();\n.visible .entry uses()\n{\ncall.uni unused;\nret;\n}\n"
#define HIDDEN LACKS ".func hidden()\n{\n" CALLS TEXT_ENTRY
#define VARIABLE                                                                                   \
    TEXT_HEAD ".extern .global .align 4 .u32 nowhere_value;\n"                                     \
              ".visible .func unused()\n{\n.reg .b32 r;\nld.global.u32 r, [nowhere_value];\n"      \
              "st.global.u32 [nowhere_value], r;\nret;\n}\n" TEXT_ENTRY

static void texts(const char *cls, const char *first, const char *second) {
    par_context();
    CUlinkState s = create();
    add("first", s, CU_JIT_INPUT_PTX, first, strlen(first) + 1);
    if (second != NULL)
        add("second", s, CU_JIT_INPUT_PTX, second, strlen(second) + 1);
    finish(cls, s);
}

#define TEXTS(function, title, cls, first, second)                                                 \
    SCENARIO(function, title) {                                                                    \
        texts(cls, first, second);                                                                 \
    }
TEXTS(unused_alone, "link-again/unused-alone", "unused-alone", UNUSED, NULL)
TEXTS(unused_beside_entry, "link-again/unused-beside-entry", "unused-beside-entry", WITH_ONE, NULL)
TEXTS(unused_used, "link-again/unused-used", "unused-used", WITH_ONE, USES)
TEXTS(unused_used_before, "link-again/unused-used-before", "unused-used-before", USES, WITH_ONE)
TEXTS(unused_pointed_to, "link-again/unused-pointed-to", "unused-pointed-to", POINTS, NULL)
TEXTS(unused_hidden, "link-again/unused-hidden", "unused-hidden", HIDDEN, NULL)
TEXTS(unused_variable, "link-again/unused-variable", "unused-variable", VARIABLE, NULL)

/* ---- Each input in a linker of its own ------------------------------------------------------- */

static void inputs(CUjitInputType type) {
    static const struct {
        const char *cls;
        const void *data;
        size_t size;
    } kinds[] = {
        {"relocatable", image_part_cubin, sizeof(image_part_cubin)},
        {"cubin", image_small_cubin, sizeof(image_small_cubin)},
        {"other-architecture", image_other_cubin, sizeof(image_other_cubin)},
        {"fatbin", image_small_fatbin, sizeof(image_small_fatbin)},
        {"fatbin-of-text", image_ptx_fatbin, sizeof(image_ptx_fatbin)},
        {"fatbin-other-architecture", image_other_fatbin, sizeof(image_other_fatbin)},
        {"object", image_caller_object, sizeof(image_caller_object)},
        {"archive", image_archive, sizeof(image_archive)},
        {"text", TEXT_OUTSIDE, sizeof(TEXT_OUTSIDE)},
        {"zeros", "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 16},
        {"garbage", "no program", 11},
    };
    par_context();
    for (size_t i = 0; i < COUNT(kinds); i++) {
        void *image;
        size_t size;
        CUlinkState s = create();
        par_note("type=%d", (int)type);
        add(kinds[i].cls, s, type, kinds[i].data, kinds[i].size);
        par_note("type=%d behind %s", (int)type, kinds[i].cls);
        add("text", s, CU_JIT_INPUT_PTX, TEXT_HEAD TEXT_ENTRY, sizeof(TEXT_HEAD TEXT_ENTRY));
        par_note("type=%d %s", (int)type, kinds[i].cls);
        CALLO(cuLinkComplete, "inputs", (s, &image, &size), OUT_C(image));
        SETUP(cuLinkDestroy, (s));
    }
}

#define INPUTS(function, title, type)                                                              \
    SCENARIO(function, title) {                                                                    \
        inputs(CU_JIT_INPUT_##type);                                                               \
    }
INPUTS(inputs_cubin, "link-again/inputs-cubin", CUBIN)
INPUTS(inputs_ptx, "link-again/inputs-ptx", PTX)
INPUTS(inputs_fatbinary, "link-again/inputs-fatbinary", FATBINARY)
INPUTS(inputs_object, "link-again/inputs-object", OBJECT)
INPUTS(inputs_library, "link-again/inputs-library", LIBRARY)
INPUTS(inputs_nvvm, "link-again/inputs-nvvm", NVVM)

/* link/files#010 followed machine code that was refused. */
SCENARIO(text_file_as_object, "link-again/after-refused", par_context) {
    CUlinkState s = create();
    add("refused-cubin", s, CU_JIT_INPUT_CUBIN, "no program", 11);
    add_file("text-as-object-after-refused", s, CU_JIT_INPUT_OBJECT, TEXT_OUTSIDE,
             sizeof(TEXT_OUTSIDE) - 1);
    ADD("object-after-refused", s, OBJECT, image_caller_object);
    ADD("archive-after-refused", s, LIBRARY, image_archive);
    finish("after-refused", s);
}
