/* The linker: inputs of each type, options, what comes out, and errors. */
#include "../parity.h"
#include "images.h"
#include "module_texts.h"
#include "temporary.h"

#include <fcntl.h>

#define VALUE(n) ((void *)(uintptr_t)(n))

static CUlinkState create(void) {
    return PAR_GOT(CUlinkState, cuLinkCreate_v2, 0, NULL, NULL);
}

static void add_text(const char *cls, CUlinkState s, const char *text) {
    CALL(cuLinkAddData_v2, cls,
         (s, CU_JIT_INPUT_PTX, (void *)(uintptr_t)text, strlen(text) + 1, "text", 0, NULL, NULL));
}

static void finish(const char *cls, CUlinkState s) {
    void *image;
    size_t size;
    CUmodule m;
    CUfunction f;
    CALLO(cuLinkComplete, cls, (s, &image, &size), OUT_C(image), OUT_C(size));
    if (par_last() == CUDA_SUCCESS) {
        par_see("output", "%s", memcmp(image, "\177ELF", 4) == 0 ? "ELF" : "other");
        CALLO(cuModuleLoadData, cls, (&m, image), OUT_C(m));
        if (par_last() == CUDA_SUCCESS)
            CALLO(cuModuleGetFunction, cls, (&f, m, "caller"), OUT_C(f));
    }
    CALL(cuLinkDestroy, cls, (s));
}

SCENARIO(two_texts, "link/two-texts", par_context) {
    CUlinkState s = create();
    add_text("first", s, TEXT_CALLER);
    add_text("second", s, TEXT_OUTSIDE);
    finish("two-texts", s);
}

SCENARIO(text_and_cubin, "link/text-and-cubin", par_context) {
    CUlinkState s = create();
    CALL(cuLinkAddData_v2, "relocatable",
         (s, CU_JIT_INPUT_CUBIN, (void *)(uintptr_t)image_part_cubin, sizeof(image_part_cubin),
          "part", 0, NULL, NULL));
    add_text("text", s, TEXT_OUTSIDE);
    finish("text-and-cubin", s);
}

SCENARIO(undefined, "link/undefined", par_context) {
    CUlinkState s = create();
    add_text("caller-only", s, TEXT_CALLER);
    finish("undefined", s);
}

SCENARIO(twice_defined, "link/twice-defined", par_context) {
    CUlinkState s = create();
    add_text("first", s, TEXT_OUTSIDE);
    add_text("again", s, TEXT_OUTSIDE);
    finish("twice-defined", s);
}

SCENARIO_IN(nothing, "link/nothing", par_context, finish("nothing", create()));

SCENARIO(alone, "link/alone", par_context) {
    CUlinkState s = create();
    add_text("plain", s, TEXT_PLAIN);
    finish("alone", s);
}

SCENARIO(bad_text, "link/bad-text", par_context) {
    CUlinkState s = create();
    add_text("garbage", s, "this is no program");
    add_text("bad-instruction", s, TEXT_HEAD ".visible .entry a()\n{\nfrob;\n}\n");
    add_text("newer", s, ".version 99.9\n.target sm_70\n.address_size 64\n" TEXT_ENTRY);
    add_text("good", s, TEXT_PLAIN);
    finish("after-bad", s);
}

SCENARIO(inputs, "link/inputs", par_context) {
    for (int type = -1; type <= CU_JIT_NUM_INPUT_TYPES + 1; type++) {
        CUlinkState s = create();
        par_note("type=%d", type);
        CALL(cuLinkAddData_v2, "cubin",
             (s, (CUjitInputType)type, (void *)(uintptr_t)image_small_cubin,
              sizeof(image_small_cubin), "a", 0, NULL, NULL));
        par_note("type=%d", type);
        CALL(cuLinkAddData_v2, "fatbin",
             (s, (CUjitInputType)type, (void *)(uintptr_t)image_small_fatbin,
              sizeof(image_small_fatbin), "b", 0, NULL, NULL));
        par_note("type=%d", type);
        CALL(cuLinkAddData_v2, "text",
             (s, (CUjitInputType)type, (void *)(uintptr_t)TEXT_OUTSIDE, sizeof(TEXT_OUTSIDE), "c",
              0, NULL, NULL));
        par_note("type=%d", type);
        CALL(cuLinkAddData_v2, "relocatable",
             (s, (CUjitInputType)type, (void *)(uintptr_t)image_part_cubin,
              sizeof(image_part_cubin), "d", 0, NULL, NULL));
        par_note("type=%d", type);
        CALL(cuLinkAddData_v2, "other-architecture",
             (s, (CUjitInputType)type, (void *)(uintptr_t)image_other_cubin,
              sizeof(image_other_cubin), "e", 0, NULL, NULL));
        CALL(cuLinkDestroy, "after-inputs", (s));
    }
}

SCENARIO(add_bad, "link/add-bad", par_context) {
    char text[] = TEXT_OUTSIDE;
    CUjit_option bad = (CUjit_option)999, level = CU_JIT_OPTIMIZATION_LEVEL;
    CUjit_option registers = CU_JIT_MAX_REGISTERS, target = CU_JIT_TARGET;
    CUjit_option wall = CU_JIT_WALL_TIME;
    void *v = VALUE(1), *t = VALUE(90);
    CUlinkState s = create();
    CALL(cuLinkAddData_v2, "null-state",
         (NULL, CU_JIT_INPUT_PTX, text, sizeof(text), "a", 0, NULL, NULL));
    CALL(cuLinkAddData_v2, "null-data", (s, CU_JIT_INPUT_PTX, NULL, 10, "a", 0, NULL, NULL));
    CALL(cuLinkAddData_v2, "zero-size", (s, CU_JIT_INPUT_PTX, text, 0, "a", 0, NULL, NULL));
    CALL(cuLinkAddData_v2, "no-final-zero",
         (s, CU_JIT_INPUT_PTX, text, sizeof(text) - 1, "a", 0, NULL, NULL));
    CALL(cuLinkAddData_v2, "half", (s, CU_JIT_INPUT_PTX, text, 60, "a", 0, NULL, NULL));
    CALL(cuLinkAddData_v2, "no-name",
         (s, CU_JIT_INPUT_PTX, text, sizeof(text), NULL, 0, NULL, NULL));
    CALL(cuLinkAddData_v2, "option-unknown",
         (s, CU_JIT_INPUT_PTX, text, sizeof(text), "a", 1, &bad, &v));
    CALL(cuLinkAddData_v2, "option-level",
         (s, CU_JIT_INPUT_PTX, text, sizeof(text), "a", 1, &level, &v));
    CALL(cuLinkAddData_v2, "option-registers",
         (s, CU_JIT_INPUT_PTX, text, sizeof(text), "a", 1, &registers, &v));
    CALL(cuLinkAddData_v2, "option-target",
         (s, CU_JIT_INPUT_PTX, text, sizeof(text), "a", 1, &target, &t));
    CALL(cuLinkAddData_v2, "option-wall-time",
         (s, CU_JIT_INPUT_PTX, text, sizeof(text), "a", 1, &wall, &v));
    CALL(cuLinkAddData_v2, "options-null",
         (s, CU_JIT_INPUT_PTX, text, sizeof(text), "a", 1, NULL, NULL));
    CALL(cuLinkAddData, "v1", (s, CU_JIT_INPUT_PTX, text, sizeof(text), "a", 0, NULL, NULL));
    CALL(cuLinkAddFile_v2, "null-state", (NULL, CU_JIT_INPUT_PTX, "/tmp/x", 0, NULL, NULL));
    CALL(cuLinkAddFile_v2, "null-path", (s, CU_JIT_INPUT_PTX, NULL, 0, NULL, NULL));
    CALL(cuLinkAddFile_v2, "missing",
         (s, CU_JIT_INPUT_PTX, "/tmp/parity-there-is-no-such-file", 0, NULL, NULL));
    CALL(cuLinkAddFile_v2, "folder", (s, CU_JIT_INPUT_PTX, "/tmp", 0, NULL, NULL));
    CALL(cuLinkAddFile_v2, "type-6", (s, (CUjitInputType)6, "/tmp", 0, NULL, NULL));
    CALL(cuLinkAddFile, "v1-missing",
         (s, CU_JIT_INPUT_PTX, "/tmp/parity-there-is-no-such-file", 0, NULL, NULL));
    CALL(cuLinkDestroy, "ok", (s));
}

SCENARIO(files, "link/files", par_context) {
    char path[TEMPORARY_ROOM];
    int fd = temporary_file(path, "parity-link");
    if (fd < 0 || write(fd, TEXT_OUTSIDE, sizeof(TEXT_OUTSIDE) - 1) < 0) {
        par_see("setup", "SETUP_FAILED file");
        return;
    }
    CUlinkState s = create();
    CALL(cuLinkAddFile_v2, "ptx", (s, CU_JIT_INPUT_PTX, path, 0, NULL, NULL));
    add_text("caller", s, TEXT_CALLER);
    finish("file-and-text", s);
    s = create();
    CALL(cuLinkAddFile, "v1-ptx", (s, CU_JIT_INPUT_PTX, path, 0, NULL, NULL));
    CALL(cuLinkAddFile_v2, "ptx-as-cubin", (s, CU_JIT_INPUT_CUBIN, path, 0, NULL, NULL));
    CALL(cuLinkAddFile_v2, "ptx-as-library", (s, CU_JIT_INPUT_LIBRARY, path, 0, NULL, NULL));
    CALL(cuLinkAddFile_v2, "ptx-as-object", (s, CU_JIT_INPUT_OBJECT, path, 0, NULL, NULL));
    finish("v1", s);
    close(fd);
    unlink(path);
}

SCENARIO(states, "link/states", par_context) {
    void *image, *again;
    size_t size;
    CUlinkState s = create();
    add_text("plain", s, TEXT_PLAIN);
    CALLO(cuLinkComplete, "ok", (s, &image, &size), OUT_C(image), OUT_C(size));
    CALLO(cuLinkComplete, "again", (s, &again, &size), OUT_C(again), OUT_C(size));
    par_see("same-image", "%d", image == again);
    add_text("after-complete", s, TEXT_OUTSIDE);
    CALL(cuLinkDestroy, "ok", (s));
    s = create();
    add_text("plain", s, TEXT_PLAIN);
    CALLO(cuLinkComplete, "no-size", (s, &image, NULL), OUT_C(image));
    s = create();
    add_text("plain", s, TEXT_PLAIN);
    CALLO(cuLinkComplete, "no-image", (s, NULL, &size), OUT_C(size));
    CALL(cuLinkComplete, "no-outputs", (s, NULL, NULL));
    CALLO(cuLinkComplete, "null-state", (NULL, &image, &size), OUT_C(image));
    CALL(cuLinkDestroy, "null", (NULL));
    CALL(cuLinkDestroy, "ok", (s));
    s = create();
    SETUP(cuLinkDestroy, (s));
    CALL(cuLinkAddData_v2, "stale-handle",
         (s, CU_JIT_INPUT_PTX, (void *)(uintptr_t)TEXT_OUTSIDE, sizeof(TEXT_OUTSIDE), "a", 0, NULL,
          NULL));
    CALLO(cuLinkComplete, "stale-handle", (s, &image, &size), OUT_C(image));
    CALL(cuLinkDestroy, "stale-handle", (s));
}

static void create_one(const char *cls, CUjit_option option, void *value) {
    CUlinkState s;
    par_note("option=%d value=%d", (int)option, (int)(intptr_t)value);
    CALLO(cuLinkCreate_v2, cls, (1, &option, &value, &s), OUT_C(s));
    if (par_last() == CUDA_SUCCESS) {
        add_text(cls, s, TEXT_PLAIN);
        void *image;
        size_t size;
        CALLO(cuLinkComplete, cls, (s, &image, &size), OUT_C(image));
        SETUP(cuLinkDestroy, (s));
    }
}

SCENARIO(create_options, "link/create-options", par_context) {
    static const int targets[] = {50, 75, 80, 89, 90, 100, 120, 999};
    CUlinkState s;
    CUjit_option level = CU_JIT_OPTIMIZATION_LEVEL;
    void *v = VALUE(3);
    for (int option = 0; option <= CU_JIT_NUM_OPTIONS; option++)
        create_one("alone", (CUjit_option)option, NULL);
    for (size_t i = 0; i < COUNT(targets); i++)
        create_one("target", CU_JIT_TARGET, VALUE(targets[i]));
    for (int i = 1; i <= 5; i++)
        create_one("level", CU_JIT_OPTIMIZATION_LEVEL, VALUE(i));
    create_one("lto", CU_JIT_LTO, VALUE(1));
    create_one("debug", CU_JIT_GENERATE_DEBUG_INFO, VALUE(1));
    create_one("lines", CU_JIT_GENERATE_LINE_INFO, VALUE(1));
    create_one("unknown", (CUjit_option)999, NULL);
    CALL(cuLinkCreate_v2, "null-out", (0, NULL, NULL, NULL));
    CALLO(cuLinkCreate_v2, "null-options", (1, NULL, NULL, &s), OUT_C(s));
    CALLO(cuLinkCreate_v2, "null-values", (1, &level, NULL, &s), OUT_C(s));
    CALLO(cuLinkCreate, "v1", (0, NULL, NULL, &s), OUT_C(s));
    CALLO(cuLinkCreate, "v1-level", (1, &level, &v, &s), OUT_C(s));
}

/* The values of size options become the bytes used; the buffers are the linker's until its end. */
SCENARIO(logs, "link/logs", par_context) {
    char info[2048] = "", error[2048] = "";
    CUjit_option options[] = {CU_JIT_WALL_TIME,
                              CU_JIT_INFO_LOG_BUFFER,
                              CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
                              CU_JIT_ERROR_LOG_BUFFER,
                              CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
                              CU_JIT_LOG_VERBOSE};
    void *start[] = {VALUE(77), info, VALUE(sizeof(info)), error, VALUE(sizeof(error)), VALUE(1)};
    void *v[6], *image;
    size_t size;
    CUlinkState s;
    memcpy(v, start, sizeof(v));
    CALLO(cuLinkCreate_v2, "logs", (6, options, v, &s), OUT_C(s));
    par_see("created", "info %d error %d time %d", (int)(uintptr_t)v[2], (int)(uintptr_t)v[4],
            v[0] == VALUE(77));
    add_text("good", s, TEXT_OUTSIDE);
    par_see("added", "info %d error %d time %d", (uintptr_t)v[2] == sizeof(info),
            (uintptr_t)v[4] == sizeof(error), v[0] == VALUE(77));
    add_text("caller", s, TEXT_CALLER);
    CALLO(cuLinkComplete, "logs", (s, &image, &size), OUT_C(image));
    par_see("completed", "info %d error %d time %d", (uintptr_t)v[2] > 0, (uintptr_t)v[4] > 0,
            v[0] == VALUE(77));
    par_see("info", "%.*s", (int)strcspn(info, " \n"), info);
    par_see("used", "%s",
            (uintptr_t)v[2] == strlen(info)       ? "length"
            : (uintptr_t)v[2] == strlen(info) + 1 ? "length+1"
                                                  : "other");
    SETUP(cuLinkDestroy, (s));
    memcpy(v, start, sizeof(v));
    SETUP(cuLinkCreate_v2, (6, options, v, &s));
    add_text("bad", s, TEXT_HEAD ".visible .entry a()\n{\nfrob;\n}\n");
    par_see("refused", "info %d error %d", (int)(uintptr_t)v[2], (uintptr_t)v[4] > 0);
    par_see("error", "%.*s", (int)strcspn(error, " \n"), error);
    par_see("used", "%s",
            (uintptr_t)v[4] == strlen(error)       ? "length"
            : (uintptr_t)v[4] == strlen(error) + 1 ? "length+1"
                                                   : "other");
    CALL(cuLinkDestroy, "logs", (s));
    memcpy(v, start, sizeof(v));
    memset(error, 0, sizeof(error));
    SETUP(cuLinkCreate_v2, (6, options, v, &s));
    add_text("caller-only", s, TEXT_CALLER);
    CALLO(cuLinkComplete, "undefined", (s, &image, &size), OUT_C(image));
    par_see("error", "%d %.*s", (uintptr_t)v[4] > 0, (int)strcspn(error, " \n"), error);
    CALL(cuLinkDestroy, "logs", (s));
}

SCENARIO(contexts, "link/contexts", par_context) {
    void *image;
    size_t size;
    CUcontext other = par_new_context();
    CUlinkState s = create();
    CUlinkState t = create();
    SETUP(cuCtxSetCurrent, (par.primary));
    add_text("other-ctx", s, TEXT_PLAIN);
    CALLO(cuLinkComplete, "other-ctx", (s, &image, &size), OUT_C(image));
    CALL(cuLinkDestroy, "other-ctx", (s));
    SETUP(cuCtxSetCurrent, (NULL));
    add_text("no-ctx", t, TEXT_PLAIN);
    CALLO(cuLinkComplete, "no-ctx", (t, &image, &size), OUT_C(image));
    CALL(cuLinkDestroy, "no-ctx", (t));
    CALLO(cuLinkCreate_v2, "no-ctx", (0, NULL, NULL, &s), OUT_C(s));
    SETUP(cuCtxSetCurrent, (other));
    s = create();
    SETUP(cuCtxDestroy_v2, (other));
    add_text("destroyed-ctx", s, TEXT_PLAIN);
    CALLO(cuLinkComplete, "destroyed-ctx", (s, &image, &size), OUT_C(image));
    CALL(cuLinkDestroy, "destroyed-ctx", (s));
}
