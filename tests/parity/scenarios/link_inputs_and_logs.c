/* What the first recordings of linkers left open: one question a scenario. */
#include "../parity.h"
#include "images.h"
#include "module_texts.h"
#include "temporary.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define VALUE(n) ((void *)(uintptr_t)(n))

static CUlinkState create(void) {
    CUlinkState s = NULL;
    SETUP(cuLinkCreate_v2, (0, NULL, NULL, &s));
    return s;
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
    CUlinkState s = NULL;
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
    SETUP(cuLinkCreate_v2, (n, options, v, &s));
    add_text(cls, s, TEXT_CALLER);
    CALLO(cuLinkComplete, cls, (s, &image, &size), OUT_C(image));
    par_see("logs", "info %d error %d", info[0] != 0, error[0] != 0);
    SETUP(cuLinkDestroy, (s));
}

#define UNDEFINED(function, options)                                                               \
    static void function(void) {                                                                   \
        par_context();                                                                             \
        undefined(#function, options);                                                             \
    }
UNDEFINED(log_verbose, VERBOSE)
UNDEFINED(log_wall, WALL)
UNDEFINED(log_error, ERROR)
UNDEFINED(log_info, INFO)
UNDEFINED(log_info_error, INFO | ERROR)
UNDEFINED(log_verbose_error, VERBOSE | ERROR)
UNDEFINED(log_verbose_info_error, VERBOSE | INFO | ERROR)
UNDEFINED(log_wall_info_error, WALL | INFO | ERROR)
UNDEFINED(log_all, WALL | INFO | ERROR | VERBOSE)

/* The recorded one was the third linker of its process, of which the second had refused a text. */
static void log_after_refused(void) {
    par_context();
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

static void fatbin_other(void) {
    par_context();
    CUlinkState s = create();
    add_fatbin("other-device", s, 80, image_other_cubin, sizeof(image_other_cubin));
    add_text("after", s, TEXT_OUTSIDE);
    finish("fatbin-other", s);
}

static void fatbin_made_other(void) {
    par_context();
    CUlinkState s = create();
    add("made-other-device", s, CU_JIT_INPUT_FATBINARY, image_other_fatbin,
        sizeof(image_other_fatbin));
    finish("fatbin-made-other", s);
}

static void fatbin_after_text(void) {
    par_context();
    CUlinkState s = create();
    add_text("before", s, TEXT_OUTSIDE);
    add_fatbin("other-device-behind-text", s, 80, image_other_cubin, sizeof(image_other_cubin));
    finish("fatbin-after-text", s);
}

static void fatbin_part(void) {
    par_context();
    CUlinkState s = create();
    add_fatbin("relocatable", s, 90, image_part_cubin, sizeof(image_part_cubin));
    add_text("outside", s, TEXT_OUTSIDE);
    finish("fatbin-part", s);
}

static void fatbin_cubin(void) {
    par_context();
    CUlinkState s = create();
    add("cubin-as-fatbin", s, CU_JIT_INPUT_FATBINARY, image_part_cubin, sizeof(image_part_cubin));
    add_text("outside", s, TEXT_OUTSIDE);
    finish("fatbin-cubin", s);
}

static void fatbin_text(void) {
    par_context();
    CUlinkState s = create();
    add("text-as-fatbin", s, CU_JIT_INPUT_FATBINARY, TEXT_OUTSIDE, sizeof(TEXT_OUTSIDE));
    finish("fatbin-text", s);
}

/* ---- objects -------------------------------------------------------------------------------- */

static void add_file(const char *cls, CUlinkState s, CUjitInputType type, const void *data,
                     size_t size) {
    char path[TEMPORARY_ROOM];
    int fd = temporary_file(path, "parity-link");
    if (fd < 0 || write(fd, data, size) != (ssize_t)size) {
        par_see("setup", "SETUP_FAILED file");
        return;
    }
    CALL(cuLinkAddFile_v2, cls, (s, type, path, 0, NULL, NULL));
    close(fd);
    unlink(path);
}

static void object_file(void) {
    par_context();
    CUlinkState s = create();
    add_file("text-as-object", s, CU_JIT_INPUT_OBJECT, TEXT_OUTSIDE, sizeof(TEXT_OUTSIDE) - 1);
    finish("object-file", s);
}

static void object_data(void) {
    par_context();
    CUlinkState s = create();
    add("text-as-object", s, CU_JIT_INPUT_OBJECT, TEXT_OUTSIDE, sizeof(TEXT_OUTSIDE));
    finish("object-data", s);
}

static void object_text_behind(void) {
    par_context();
    CUlinkState s = create();
    add_file("garbage-as-object", s, CU_JIT_INPUT_OBJECT, "no program", 10);
    add_text("behind-object", s, TEXT_OUTSIDE);
    finish("object-text-behind", s);
}

static void library_file(void) {
    par_context();
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

#define TWO(function, first, second)                                                               \
    static void function(void) {                                                                   \
        two(#function, first, second);                                                             \
    }
TWO(functions_weak, FUNCTION(".weak", "1"), FUNCTION(".weak", "2"))
TWO(functions_weak_visible, FUNCTION(".weak", "1"), FUNCTION(".visible", "2"))
TWO(functions_visible_weak, FUNCTION(".visible", "1"), FUNCTION(".weak", "2"))
TWO(functions_visible, FUNCTION(".visible", "1"), FUNCTION(".visible", "2"))
TWO(functions_hidden, FUNCTION("", "1"), FUNCTION("", "2"))
TWO(functions_hidden_visible, FUNCTION("", "1"), FUNCTION(".visible", "2"))
TWO(variables_weak, VARIABLE(".weak", "1"), VARIABLE(".weak", "2"))
TWO(variables_weak_visible, VARIABLE(".weak", "1"), VARIABLE(".visible", "2"))
TWO(variables_visible_weak, VARIABLE(".visible", "1"), VARIABLE(".weak", "2"))
TWO(variables_visible, VARIABLE(".visible", "1"), VARIABLE(".visible", "2"))
TWO(variables_hidden_visible, VARIABLE("", "1"), VARIABLE(".visible", "2"))
TWO(variables_visible_hidden, VARIABLE(".visible", "1"), VARIABLE("", "2"))
TWO(variables_weak_larger, VARIABLE(".weak", "1"),
    TEXT_HEAD ".weak .global .align 4 .u32 same[2] = {2, 3};\n")
TWO(variables_common, TEXT_HEAD ".common .global .align 4 .u32 same;\n",
    TEXT_HEAD ".common .global .align 4 .u32 same[4];\n")
TWO(variables_common_visible, TEXT_HEAD ".common .global .align 4 .u32 same;\n",
    VARIABLE(".visible", "2"))
TWO(variable_function_weak, VARIABLE(".weak", "1"), FUNCTION(".weak", "2"))
TWO(entries_weak, TEXT_HEAD ".weak .entry both()\n{\nret;\n}\n",
    TEXT_HEAD ".weak .entry both(.param .u64 p)\n{\nret;\n}\n")
TWO(entries_hidden, TEXT_HEAD ".entry both()\n{\nret;\n}\n",
    TEXT_HEAD ".entry both(.param .u64 p)\n{\nret;\n}\n")

/* Each input's pointer should lead to its own. */
static void hidden_each(void) {
    par_context();
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
static void hidden_and_visible(void) {
    par_context();
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
static void hidden_for_other(void) {
    par_context();
    CUlinkState s = create();
    add_text("first", s, VARIABLE("", "1"));
    add_text("second", s,
             TEXT_HEAD ".extern .global .align 4 .u32 same;\n"
                       ".visible .global .align 8 .u64 to_second = generic(same);\n");
    see_pointed("hidden-for-other", finish("hidden-for-other", s), "to_second");
}

static void weak_pointers(void) {
    par_context();
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
static void weak_entry_taken(void) {
    CUfunction f = NULL;
    size_t offset, size;
    par_context();
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

static void size_before_more(void) {
    static const char text[] = TEXT_OUTSIDE "frob;\n";
    par_context();
    CUlinkState s = create();
    add("bad-behind-size", s, CU_JIT_INPUT_PTX, text, sizeof(TEXT_OUTSIDE) - 1);
    finish("size-before-more", s);
}

static void size_before_good(void) {
    static const char text[] = TEXT_OUTSIDE ".visible .global .align 4 .u32 same = 3;\n";
    par_context();
    CUlinkState s = create();
    add("good-behind-size", s, CU_JIT_INPUT_PTX, text, sizeof(TEXT_OUTSIDE) - 1);
    see_value("size-before-good", finish("size-before-good", s), "same");
}

static void size_of_one(void) {
    par_context();
    CUlinkState s = create();
    add("size-1", s, CU_JIT_INPUT_PTX, TEXT_OUTSIDE, 1);
    see_value("size-of-one", finish("size-of-one", s), "shared_value");
}

static void zero_inside(void) {
    static const char text[] = TEXT_OUTSIDE "\0.visible .global .align 4 .u32 same = 3;\n";
    par_context();
    CUlinkState s = create();
    add("good-behind-zero", s, CU_JIT_INPUT_PTX, text, sizeof(text));
    see_value("zero-inside", finish("zero-inside", s), "same");
}

static void zero_inside_bad(void) {
    static const char text[] = TEXT_OUTSIDE "\0frob;\n";
    par_context();
    CUlinkState s = create();
    add("bad-behind-zero", s, CU_JIT_INPUT_PTX, text, sizeof(text));
    see_value("zero-inside-bad", finish("zero-inside-bad", s), "shared_value");
}

PAR_SCENARIOS = {
    {"link-more/log-verbose", log_verbose, 0, 0},
    {"link-more/log-wall", log_wall, 0, 0},
    {"link-more/log-error", log_error, 0, 0},
    {"link-more/log-info", log_info, 0, 0},
    {"link-more/log-info-error", log_info_error, 0, 0},
    {"link-more/log-verbose-error", log_verbose_error, 0, 0},
    {"link-more/log-verbose-info-error", log_verbose_info_error, 0, 0},
    {"link-more/log-wall-info-error", log_wall_info_error, 0, 0},
    {"link-more/log-all", log_all, 0, 0},
    {"link-more/log-after-refused", log_after_refused, 0, 0},
    {"link-more/fatbin-other", fatbin_other, 0, 0},
    {"link-more/fatbin-made-other", fatbin_made_other, 0, 0},
    {"link-more/fatbin-after-text", fatbin_after_text, 0, 0},
    {"link-more/fatbin-part", fatbin_part, 0, 0},
    {"link-more/fatbin-cubin", fatbin_cubin, 0, 0},
    {"link-more/fatbin-text", fatbin_text, 0, 0},
    {"link-more/object-file", object_file, 0, 0},
    {"link-more/object-data", object_data, 0, 0},
    {"link-more/object-text-behind", object_text_behind, 0, 0},
    {"link-more/library-file", library_file, 0, 0},
    {"link-more/functions-weak", functions_weak, 0, 0},
    {"link-more/functions-weak-visible", functions_weak_visible, 0, 0},
    {"link-more/functions-visible-weak", functions_visible_weak, 0, 0},
    {"link-more/functions-visible", functions_visible, 0, 0},
    {"link-more/functions-hidden", functions_hidden, 0, 0},
    {"link-more/functions-hidden-visible", functions_hidden_visible, 0, 0},
    {"link-more/variables-weak", variables_weak, 0, 0},
    {"link-more/variables-weak-visible", variables_weak_visible, 0, 0},
    {"link-more/variables-visible-weak", variables_visible_weak, 0, 0},
    {"link-more/variables-visible", variables_visible, 0, 0},
    {"link-more/variables-hidden-visible", variables_hidden_visible, 0, 0},
    {"link-more/variables-visible-hidden", variables_visible_hidden, 0, 0},
    {"link-more/variables-weak-larger", variables_weak_larger, 0, 0},
    {"link-more/variables-common", variables_common, 0, 0},
    {"link-more/variables-common-visible", variables_common_visible, 0, 0},
    {"link-more/variable-function-weak", variable_function_weak, 0, 0},
    {"link-more/entries-weak", entries_weak, 0, 0},
    {"link-more/entries-hidden", entries_hidden, 0, 0},
    {"link-more/hidden-each", hidden_each, 0, 0},
    {"link-more/hidden-and-visible", hidden_and_visible, 0, 0},
    {"link-more/hidden-for-other", hidden_for_other, 0, 0},
    {"link-more/weak-pointers", weak_pointers, 0, 0},
    {"link-more/weak-entry-taken", weak_entry_taken, 0, 0},
    {"link-more/size-before-more", size_before_more, 0, 0},
    {"link-more/size-before-good", size_before_good, 0, 0},
    {"link-more/size-of-one", size_of_one, 0, 0},
    {"link-more/zero-inside", zero_inside, 0, 0},
    {"link-more/zero-inside-bad", zero_inside_bad, 0, 0},
};
