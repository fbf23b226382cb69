/* Options of the compiler, as cuModuleLoadDataEx takes them. Logs are seen by size and first word.
 */
#include "../parity.h"
#include "images.h"
#include "module_texts.h"

#define VALUE(n) ((void *)(uintptr_t)(n))

static void one(const char *cls, const void *image, CUjit_option option, void *value) {
    CUmodule m;
    par_note("option=%d value=%d", (int)option, (int)(intptr_t)value);
    CALLO(cuModuleLoadDataEx, cls, (&m, image, 1, &option, &value), OUT_C(m));
}

SCENARIO(alone, "module/options-alone", par_context) {
    static const int odd[] = {0, 1, 2, -1, 1000};
    for (int option = 0; option <= CU_JIT_NUM_OPTIONS; option++) {
        bool pointer =
            option == CU_JIT_INFO_LOG_BUFFER || option == CU_JIT_ERROR_LOG_BUFFER ||
            option == CU_JIT_GLOBAL_SYMBOL_NAMES || option == CU_JIT_GLOBAL_SYMBOL_ADDRESSES ||
            option == CU_JIT_REFERENCED_KERNEL_NAMES || option == CU_JIT_REFERENCED_VARIABLE_NAMES;
        for (size_t i = 0; i < (pointer ? 1 : COUNT(odd)); i++)
            one("ptx", TEXT_PLAIN, (CUjit_option)option, VALUE((intptr_t)odd[i]));
    }
    one("ptx", TEXT_PLAIN, (CUjit_option)-1, NULL);
    one("ptx", TEXT_PLAIN, (CUjit_option)1000, NULL);
}

SCENARIO(alone_cubin, "module/options-cubin", par_context) {
    for (int option = 0; option <= CU_JIT_NUM_OPTIONS; option++)
        one("cubin", image_small_cubin, (CUjit_option)option, NULL);
    one("cubin", image_small_cubin, CU_JIT_TARGET, VALUE(80));
    one("cubin", image_small_cubin, CU_JIT_TARGET, VALUE(90));
    one("cubin", image_small_cubin, CU_JIT_OPTIMIZATION_LEVEL, VALUE(9));
    one("cubin", image_small_cubin, CU_JIT_CACHE_MODE, VALUE(9));
}

SCENARIO(values, "module/options-values", par_context) {
    static const int targets[] = {30, 50, 75, 80, 89, 90, 91, 100, 120, 999, 0x10000 + 90};
    for (int level = 0; level <= 5; level++)
        one("level", TEXT_PLAIN, CU_JIT_OPTIMIZATION_LEVEL, VALUE(level));
    for (size_t i = 0; i < COUNT(targets); i++)
        one("target", TEXT_PLAIN, CU_JIT_TARGET, VALUE(targets[i]));
    for (int mode = 0; mode <= 3; mode++)
        one("cache-mode", TEXT_PLAIN, CU_JIT_CACHE_MODE, VALUE(mode));
    for (int strategy = 0; strategy <= 2; strategy++)
        one("fallback", TEXT_PLAIN, CU_JIT_FALLBACK_STRATEGY, VALUE(strategy));
    static const int registers[] = {1, 4, 16, 32, 255, 256, 100000};
    for (size_t i = 0; i < COUNT(registers); i++)
        one("registers", TEXT_PLAIN, CU_JIT_MAX_REGISTERS, VALUE(registers[i]));
    static const int threads[] = {1, 64, 1024, 1025, 100000};
    for (size_t i = 0; i < COUNT(threads); i++)
        one("threads", TEXT_PLAIN, CU_JIT_THREADS_PER_BLOCK, VALUE(threads[i]));
}

/* What the compiler writes back: size of logs, time, threads. */
SCENARIO(outputs, "module/options-outputs", par_context) {
    char info[4096] = "", error[4096] = "";
    CUmodule m;
    int registers;
    CUjit_option options[] = {CU_JIT_WALL_TIME,
                              CU_JIT_INFO_LOG_BUFFER,
                              CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
                              CU_JIT_ERROR_LOG_BUFFER,
                              CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
                              CU_JIT_LOG_VERBOSE,
                              CU_JIT_CACHE_MODE};
    void *values_in[] = {VALUE(77),
                         info,
                         VALUE(sizeof(info)),
                         error,
                         VALUE(sizeof(error)),
                         VALUE(1),
                         VALUE(CU_JIT_CACHE_OPTION_NONE)};
    void *v[7];
    memcpy(v, values_in, sizeof(v));
    CALLO(cuModuleLoadDataEx, "logs-ptx", (&m, TEXT_PLAIN, 7, options, v), OUT_C(m));
    par_see("logs", "info %d error %d time %s", (uintptr_t)v[2] > 0, (uintptr_t)v[4] > 0,
            v[0] == VALUE(77) ? "untouched" : "set");
    par_see("info", "%.*s", (int)strcspn(info, " \n"), info);
    par_see("used", "%s",
            (uintptr_t)v[2] == strlen(info)       ? "length"
            : (uintptr_t)v[2] == strlen(info) + 1 ? "length+1"
                                                  : "other");
    memcpy(v, values_in, sizeof(v));
    memset(info, 0, sizeof(info));
    CALLO(cuModuleLoadDataEx, "logs-bad-ptx",
          (&m, TEXT_HEAD ".visible .entry a()\n{\nfrob;\n}\n", 7, options, v), OUT_C(m));
    par_see("logs", "info %d error %d", (uintptr_t)v[2] > 0, (uintptr_t)v[4] > 0);
    par_see("error", "%.*s", (int)strcspn(error, " \n"), error);
    par_see("used", "%s",
            (uintptr_t)v[4] == strlen(error)       ? "length"
            : (uintptr_t)v[4] == strlen(error) + 1 ? "length+1"
                                                   : "other");
    memcpy(v, values_in, sizeof(v));
    memset(info, 'x', sizeof(info));
    CALLO(cuModuleLoadDataEx, "logs-cubin", (&m, image_small_cubin, 7, options, v), OUT_C(m));
    par_see("logs", "info %d error %d time %s first %d", (uintptr_t)v[2] > 0, (uintptr_t)v[4] > 0,
            v[0] == VALUE(77) ? "untouched" : "set", info[0]);
    memcpy(v, values_in, sizeof(v));
    v[2] = VALUE(8);
    v[4] = VALUE(8);
    memset(error, 'x', sizeof(error));
    CALLO(cuModuleLoadDataEx, "short-logs",
          (&m, TEXT_HEAD ".visible .entry a()\n{\nfrob;\n}\n", 7, options, v), OUT_C(m));
    par_see("short", "used %d seventh %d eighth %d ninth %c", (int)(uintptr_t)v[4], error[6] != 0,
            error[7] != 0, error[8]);
    memcpy(v, values_in, sizeof(v));
    v[2] = VALUE(0);
    v[4] = VALUE(0);
    CALLO(cuModuleLoadDataEx, "no-room", (&m, TEXT_PLAIN, 7, options, v), OUT_C(m));
    CUjit_option limits[] = {CU_JIT_MAX_REGISTERS, CU_JIT_THREADS_PER_BLOCK};
    void *limit[] = {VALUE(32), VALUE(256)};
    CALLO(cuModuleLoadDataEx, "threads", (&m, TEXT_PLAIN, 2, limits, limit), OUT_C(m));
    par_see("threads", "%d", (int)(uintptr_t)limit[1]);
    limit[0] = VALUE(16);
    CALLO(cuModuleLoadDataEx, "registers", (&m, TEXT_PLAIN, 1, limits, limit), OUT_C(m));
    CUfunction f = par_function(m, "writes");
    CALLO(cuFuncGetAttribute, "registers", (&registers, CU_FUNC_ATTRIBUTE_NUM_REGS, f),
          OUT_I(registers));
}

SCENARIO(sets, "module/options-sets", par_context) {
    char buffer[256];
    CUmodule m;
    CUjit_option size_only[] = {CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES};
    CUjit_option buffer_only[] = {CU_JIT_INFO_LOG_BUFFER};
    CUjit_option both_targets[] = {CU_JIT_TARGET_FROM_CUCONTEXT, CU_JIT_TARGET};
    CUjit_option twice[] = {CU_JIT_OPTIMIZATION_LEVEL, CU_JIT_OPTIMIZATION_LEVEL};
    CUjit_option null_buffer[] = {CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES};
    void *v[2] = {VALUE(64), VALUE(90)};
    CALLO(cuModuleLoadDataEx, "size-without-buffer", (&m, TEXT_PLAIN, 1, size_only, v), OUT_C(m));
    v[0] = buffer;
    CALLO(cuModuleLoadDataEx, "buffer-without-size", (&m, TEXT_PLAIN, 1, buffer_only, v), OUT_C(m));
    v[0] = NULL;
    v[1] = VALUE(90);
    CALLO(cuModuleLoadDataEx, "two-targets", (&m, TEXT_PLAIN, 2, both_targets, v), OUT_C(m));
    v[0] = VALUE(1);
    v[1] = VALUE(2);
    CALLO(cuModuleLoadDataEx, "twice", (&m, TEXT_PLAIN, 2, twice, v), OUT_C(m));
    v[0] = NULL;
    v[1] = VALUE(64);
    CALLO(cuModuleLoadDataEx, "null-buffer", (&m, TEXT_PLAIN, 2, null_buffer, v), OUT_C(m));
    CALLO(cuModuleLoadDataEx, "bad-option-and-image",
          (&m, "garbage", 1, (CUjit_option[]){(CUjit_option)999}, v), OUT_C(m));
    CALLO(cuModuleLoadDataEx, "null-options", (&m, TEXT_PLAIN, 1, NULL, v), OUT_C(m));
    CALLO(cuModuleLoadDataEx, "null-values", (&m, TEXT_PLAIN, 1, twice, NULL), OUT_C(m));
}
