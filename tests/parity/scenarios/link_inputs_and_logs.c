/* What the first recordings of linkers left open: one question a scenario. */
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
    CALL(cuLinkAddData_v2, cls, (s, type, VALUE(data), size, "input", 0, NULL, NULL));
}

static void add_text(const char *cls, CUlinkState s, const char *text) {
    add(cls, s, CU_JIT_INPUT_PTX, text, strlen(text) + 1);
}

/* NULL when there is no module. */
static CUmodule finish(const char *cls, CUlinkState s) {
    void *image;
    size_t size;
    CUmodule m = NULL;
    CALLO(cuLinkComplete, cls, (s, &image, &size), OUT_C(image));
    if (par_last() == CUDA_SUCCESS) {
        CALLO(cuModuleLoadData, cls, (&m, image), OUT_C(m));
        if (par_last() != CUDA_SUCCESS)
            m = NULL;
    }
    SETUP(cuLinkDestroy, (s));
    return m;
}

/* Where it is, or 0. */
static CUdeviceptr global(const char *cls, CUmodule m, const char *name) {
    CUdeviceptr p = 0;
    size_t bytes;
    par_note("%s", name);
    CALLO(cuModuleGetGlobal_v2, cls, (&p, &bytes, m, name), OUT_C(p), OUT_U(bytes));
    return par_last() == CUDA_SUCCESS ? p : 0;
}

static void see_value(const char *cls, CUmodule m, const char *name) {
    uint32_t value = 0;
    CUdeviceptr p = m ? global(cls, m, name) : 0;
    if (p) {
        SETUP(cuMemcpyDtoH_v2, (&value, p, sizeof(value)));
        par_see(name, "%u", value);
    }
}

static void see_pointed(const char *cls, CUmodule m, const char *name) {
    CUdeviceptr p = m ? global(cls, m, name) : 0, to = 0;
    uint32_t value = 0;
    if (p) {
        SETUP(cuMemcpyDtoH_v2, (&to, p, sizeof(to)));
        SETUP(cuMemcpyDtoH_v2, (&value, to, sizeof(value)));
        par_see(name, "to %u", value);
    }
}

/* ---- which option makes an undefined name UNKNOWN? ------------------------------------------ */

enum { WALL = 1, INFO = 2, ERROR = 4, VERBOSE = 8 };

static void undefined(const char *cls, int which) {
    char info[2048] = "", error[2048] = "";
    CUjit_option options[6];
    void *v[6], *image;
    size_t size;
    unsigned n = 0;
    if (which & WALL) {
        options[n] = CU_JIT_WALL_TIME;
        v[n++] = VALUE(77);
    }
    if (which & INFO) {
        options[n] = CU_JIT_INFO_LOG_BUFFER;
        v[n++] = info;
        options[n] = CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES;
        v[n++] = VALUE(sizeof(info));
    }
    if (which & ERROR) {
        options[n] = CU_JIT_ERROR_LOG_BUFFER;
        v[n++] = error;
        options[n] = CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES;
        v[n++] = VALUE(sizeof(error));
    }
    if (which & VERBOSE) {
        options[n] = CU_JIT_LOG_VERBOSE;
        v[n++] = VALUE(1);
    }
    CUlinkState s = PAR_GOT(CUlinkState, cuLinkCreate_v2, n, options, v);
    add_text(cls, s, TEXT_CALLER);
    CALLO(cuLinkComplete, cls, (s, &image, &size), OUT_C(image));
    par_see("logs", "info %d error %d", info[0] != 0, error[0] != 0);
    SETUP(cuLinkDestroy, (s));
}

#define UNDEFINED(function, title, options)                                                        \
    SCENARIO(function, title) {                                                                    \
        par_context();                                                                             \
        undefined(#function, options);                                                             \
    }
UNDEFINED(log_verbose, "link-more/log-verbose", VERBOSE)
UNDEFINED(log_wall, "link-more/log-wall", WALL)
UNDEFINED(log_error, "link-more/log-error", ERROR)
UNDEFINED(log_info, "link-more/log-info", INFO)
UNDEFINED(log_info_error, "link-more/log-info-error", INFO | ERROR)
UNDEFINED(log_verbose_error, "link-more/log-verbose-error", VERBOSE | ERROR)
UNDEFINED(log_verbose_info_error, "link-more/log-verbose-info-error", VERBOSE | INFO | ERROR)
UNDEFINED(log_wall_info_error, "link-more/log-wall-info-error", WALL | INFO | ERROR)
UNDEFINED(log_all, "link-more/log-all", WALL | INFO | ERROR | VERBOSE)

/* The recorded one was the third linker of its process, of which the second had refused a text. */
SCENARIO(log_after_refused, "link-more/log-after-refused", par_context) {
    CUlinkState s = create();
    add_text("refused", s, TEXT_HEAD ".visible .entry a()\n{\nfrob;\n}\n");
    SETUP(cuLinkDestroy, (s));
    undefined("no-option-after-refused", 0);
    undefined("all-after-refused", WALL | INFO | ERROR | VERBOSE);
}

/* ---- fatbins -------------------------------------------------------------------------------- */

static void put(unsigned char *to, uint64_t value, size_t size) {
    memcpy(to, &value, size); /* both ends are little-endian */
}

/* A fatbin of one uncompressed ELF, as fatbinary of CUDA 13.0 writes it. */
static void add_fatbin(const char *cls, CUlinkState s, unsigned architecture, const void *elf,
                       size_t size) {
    static _Alignas(8) unsigned char bytes[16384];
    size_t padded = (size + 7) & ~(size_t)7;
    memset(bytes, 0, sizeof(bytes));
    put(bytes, 0xba55ed50, 4);
    put(bytes + 4, 1, 2);
    put(bytes + 6, 16, 2);
    put(bytes + 8, 64 + padded, 8);
    put(bytes + 16, 2, 2);
    put(bytes + 18, 0x101, 2);
    put(bytes + 20, 64, 4);
    put(bytes + 24, padded, 8);
    put(bytes + 40, 8, 2);
    put(bytes + 42, 1, 2);
    put(bytes + 44, architecture, 4);
    put(bytes + 56, 0x11, 8);
    memcpy(bytes + 80, elf, size);
    add(cls, s, CU_JIT_INPUT_FATBINARY, bytes, 80 + padded);
}

SCENARIO(fatbin_other, "link-more/fatbin-other", par_context) {
    CUlinkState s = create();
    add_fatbin("other-device", s, 80, image_other_cubin, sizeof(image_other_cubin));
    add_text("after", s, TEXT_OUTSIDE);
    finish("fatbin-other", s);
}

SCENARIO(fatbin_made_other, "link-more/fatbin-made-other", par_context) {
    CUlinkState s = create();
    add("made-other-device", s, CU_JIT_INPUT_FATBINARY, image_other_fatbin,
        sizeof(image_other_fatbin));
    finish("fatbin-made-other", s);
}

SCENARIO(fatbin_after_text, "link-more/fatbin-after-text", par_context) {
    CUlinkState s = create();
    add_text("before", s, TEXT_OUTSIDE);
    add_fatbin("other-device-behind-text", s, 80, image_other_cubin, sizeof(image_other_cubin));
    finish("fatbin-after-text", s);
}

SCENARIO(fatbin_part, "link-more/fatbin-part", par_context) {
    CUlinkState s = create();
    add_fatbin("relocatable", s, 90, image_part_cubin, sizeof(image_part_cubin));
    add_text("outside", s, TEXT_OUTSIDE);
    finish("fatbin-part", s);
}

SCENARIO(fatbin_cubin, "link-more/fatbin-cubin", par_context) {
    CUlinkState s = create();
    add("cubin-as-fatbin", s, CU_JIT_INPUT_FATBINARY, image_part_cubin, sizeof(image_part_cubin));
    add_text("outside", s, TEXT_OUTSIDE);
    finish("fatbin-cubin", s);
}

SCENARIO(fatbin_text, "link-more/fatbin-text", par_context) {
    CUlinkState s = create();
    add("text-as-fatbin", s, CU_JIT_INPUT_FATBINARY, TEXT_OUTSIDE, sizeof(TEXT_OUTSIDE));
    finish("fatbin-text", s);
}

/* ---- objects -------------------------------------------------------------------------------- */

SCENARIO(object_file, "link-more/object-file", par_context) {
    CUlinkState s = create();
    add_file("text-as-object", s, CU_JIT_INPUT_OBJECT, TEXT_OUTSIDE, sizeof(TEXT_OUTSIDE) - 1);
    finish("object-file", s);
}

SCENARIO(object_data, "link-more/object-data", par_context) {
    CUlinkState s = create();
    add("text-as-object", s, CU_JIT_INPUT_OBJECT, TEXT_OUTSIDE, sizeof(TEXT_OUTSIDE));
    finish("object-data", s);
}

SCENARIO(object_text_behind, "link-more/object-text-behind", par_context) {
    CUlinkState s = create();
    add_file("garbage-as-object", s, CU_JIT_INPUT_OBJECT, "no program", 10);
    add_text("behind-object", s, TEXT_OUTSIDE);
    finish("object-text-behind", s);
}

SCENARIO(library_file, "link-more/library-file", par_context) {
    CUlinkState s = create();
    add_file("text-as-library", s, CU_JIT_INPUT_LIBRARY, TEXT_OUTSIDE, sizeof(TEXT_OUTSIDE) - 1);
    finish("library-file", s);
}

/* ---- one name in two inputs ----------------------------------------------------------------- */

#define FUNCTION(linkage, value)                                                                   \
    TEXT_HEAD linkage " .func (.param .b32 result) same()\n{\n.reg .b32 r;\nmov.u32 r, " value     \
                      ";\nst.param.b32 [result], r;\nret;\n}\n"
#define VARIABLE(linkage, value) TEXT_HEAD linkage " .global .align 4 .u32 same = " value ";\n"

static void two(const char *cls, const char *first, const char *second) {
    par_context();
    CUlinkState s = create();
    add_text("first", s, first);
    add_text(cls, s, second);
    see_value(cls, finish(cls, s), "same");
}

#define TWO(function, title, first, second)                                                        \
    SCENARIO(function, title) {                                                                    \
        two(#function, first, second);                                                             \
    }
TWO(functions_weak, "link-more/functions-weak", FUNCTION(".weak", "1"), FUNCTION(".weak", "2"))
TWO(functions_weak_visible, "link-more/functions-weak-visible", FUNCTION(".weak", "1"),
    FUNCTION(".visible", "2"))
TWO(functions_visible_weak, "link-more/functions-visible-weak", FUNCTION(".visible", "1"),
    FUNCTION(".weak", "2"))
TWO(functions_visible, "link-more/functions-visible", FUNCTION(".visible", "1"),
    FUNCTION(".visible", "2"))
TWO(functions_hidden, "link-more/functions-hidden", FUNCTION("", "1"), FUNCTION("", "2"))
TWO(functions_hidden_visible, "link-more/functions-hidden-visible", FUNCTION("", "1"),
    FUNCTION(".visible", "2"))
TWO(variables_weak, "link-more/variables-weak", VARIABLE(".weak", "1"), VARIABLE(".weak", "2"))
TWO(variables_weak_visible, "link-more/variables-weak-visible", VARIABLE(".weak", "1"),
    VARIABLE(".visible", "2"))
TWO(variables_visible_weak, "link-more/variables-visible-weak", VARIABLE(".visible", "1"),
    VARIABLE(".weak", "2"))
TWO(variables_visible, "link-more/variables-visible", VARIABLE(".visible", "1"),
    VARIABLE(".visible", "2"))
TWO(variables_hidden_visible, "link-more/variables-hidden-visible", VARIABLE("", "1"),
    VARIABLE(".visible", "2"))
TWO(variables_visible_hidden, "link-more/variables-visible-hidden", VARIABLE(".visible", "1"),
    VARIABLE("", "2"))
TWO(variables_weak_larger, "link-more/variables-weak-larger", VARIABLE(".weak", "1"),
    TEXT_HEAD ".weak .global .align 4 .u32 same[2] = {2, 3};\n")
TWO(variables_common, "link-more/variables-common",
    TEXT_HEAD ".common .global .align 4 .u32 same;\n",
    TEXT_HEAD ".common .global .align 4 .u32 same[4];\n")
TWO(variables_common_visible, "link-more/variables-common-visible",
    TEXT_HEAD ".common .global .align 4 .u32 same;\n", VARIABLE(".visible", "2"))
TWO(variable_function_weak, "link-more/variable-function-weak", VARIABLE(".weak", "1"),
    FUNCTION(".weak", "2"))
TWO(entries_weak, "link-more/entries-weak", TEXT_HEAD ".weak .entry both()\n{\nret;\n}\n",
    TEXT_HEAD ".weak .entry both(.param .u64 p)\n{\nret;\n}\n")
TWO(entries_hidden, "link-more/entries-hidden", TEXT_HEAD ".entry both()\n{\nret;\n}\n",
    TEXT_HEAD ".entry both(.param .u64 p)\n{\nret;\n}\n")

/* Each input's pointer should lead to its own. */
SCENARIO(hidden_each, "link-more/hidden-each", par_context) {
    CUlinkState s = create();
    add_text("first", s,
             VARIABLE("", "1") ".visible .global .align 8 .u64 to_first = generic(same);\n");
    add_text("second", s,
             VARIABLE("", "2") ".visible .global .align 8 .u64 to_second = generic(same);\n");
    CUmodule m = finish("hidden-each", s);
    see_pointed("hidden-each", m, "to_first");
    see_pointed("hidden-each", m, "to_second");
    see_value("hidden-each", m, "same");
}

/* A name that is given by the second input alone, to both; of the first it is hidden. */
SCENARIO(hidden_and_visible, "link-more/hidden-and-visible", par_context) {
    CUlinkState s = create();
    add_text("first", s,
             VARIABLE("", "1") ".visible .global .align 8 .u64 to_first = generic(same);\n");
    add_text("second", s,
             VARIABLE(".visible", "2") ".visible .global .align 8 .u64 to_second = "
                                       "generic(same);\n");
    add_text("third", s,
             TEXT_HEAD ".extern .global .align 4 .u32 same;\n"
                       ".visible .global .align 8 .u64 to_third = generic(same);\n");
    CUmodule m = finish("hidden-and-visible", s);
    see_pointed("hidden-and-visible", m, "to_first");
    see_pointed("hidden-and-visible", m, "to_second");
    see_pointed("hidden-and-visible", m, "to_third");
    see_value("hidden-and-visible", m, "same");
}

/* Does a hidden variable give an external name of another input? */
SCENARIO(hidden_for_other, "link-more/hidden-for-other", par_context) {
    CUlinkState s = create();
    add_text("first", s, VARIABLE("", "1"));
    add_text("second", s,
             TEXT_HEAD ".extern .global .align 4 .u32 same;\n"
                       ".visible .global .align 8 .u64 to_second = generic(same);\n");
    see_pointed("hidden-for-other", finish("hidden-for-other", s), "to_second");
}

SCENARIO(weak_pointers, "link-more/weak-pointers", par_context) {
    CUlinkState s = create();
    add_text("first", s,
             VARIABLE(".weak", "1") ".visible .global .align 8 .u64 to_first = generic(same);\n");
    add_text("second", s,
             VARIABLE(".weak", "2") ".visible .global .align 8 .u64 to_second = generic(same);\n");
    CUmodule m = finish("weak-pointers", s);
    see_pointed("weak-pointers", m, "to_first");
    see_pointed("weak-pointers", m, "to_second");
    see_value("weak-pointers", m, "same");
}

/* Which of two parameter lists counts says which entry was taken. */
SCENARIO(weak_entry_taken, "link-more/weak-entry-taken", par_context) {
    CUfunction f = NULL;
    size_t offset, size;
    CUlinkState s = create();
    add_text("first", s, TEXT_HEAD ".weak .entry both(.param .u32 p)\n{\nret;\n}\n");
    add_text("second", s, TEXT_HEAD ".weak .entry both(.param .u64 p)\n{\nret;\n}\n");
    CUmodule m = finish("weak-entry-taken", s);
    if (m) {
        SETUP(cuModuleGetFunction, (&f, m, "both"));
        CALLO(cuFuncGetParamInfo, "weak-entry-taken", (f, 0, &offset, &size), OUT_U(size));
    }
}

/* ---- where a text ends ---------------------------------------------------------------------- */

SCENARIO(size_before_more, "link-more/size-before-more", par_context) {
    static const char text[] = TEXT_OUTSIDE "frob;\n";
    CUlinkState s = create();
    add("bad-behind-size", s, CU_JIT_INPUT_PTX, text, sizeof(TEXT_OUTSIDE) - 1);
    finish("size-before-more", s);
}

SCENARIO(size_before_good, "link-more/size-before-good", par_context) {
    static const char text[] = TEXT_OUTSIDE ".visible .global .align 4 .u32 same = 3;\n";
    CUlinkState s = create();
    add("good-behind-size", s, CU_JIT_INPUT_PTX, text, sizeof(TEXT_OUTSIDE) - 1);
    see_value("size-before-good", finish("size-before-good", s), "same");
}

SCENARIO(size_of_one, "link-more/size-of-one", par_context) {
    CUlinkState s = create();
    add("size-1", s, CU_JIT_INPUT_PTX, TEXT_OUTSIDE, 1);
    see_value("size-of-one", finish("size-of-one", s), "shared_value");
}

SCENARIO(zero_inside, "link-more/zero-inside", par_context) {
    static const char text[] = TEXT_OUTSIDE "\0.visible .global .align 4 .u32 same = 3;\n";
    CUlinkState s = create();
    add("good-behind-zero", s, CU_JIT_INPUT_PTX, text, sizeof(text));
    see_value("zero-inside", finish("zero-inside", s), "same");
}

SCENARIO(zero_inside_bad, "link-more/zero-inside-bad", par_context) {
    static const char text[] = TEXT_OUTSIDE "\0frob;\n";
    CUlinkState s = create();
    add("bad-behind-zero", s, CU_JIT_INPUT_PTX, text, sizeof(text));
    see_value("zero-inside-bad", finish("zero-inside-bad", s), "shared_value");
}
