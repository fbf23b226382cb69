/*
 * NVIDIA's environment variables for core dumps, as CUDA-GDB's documentation describes them. They
 * are read once, by cuInit; cuCoredumpSetAttribute* does not change what one of them sets.
 */
#include "softgpu/core/config.h"
#include "softgpu/coredump/coredump.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* An empty value counts as unset. */
static const char *lookup(const char *variable) {
    const char *value = secure_getenv(variable);
    return value && value[0] ? value : NULL;
}

static void ignore(const char *variable, const char *value, const char *accepted) {
    sg_log(SG_LOG_WARNING, "%s='%.64s' is ignored: it takes %s", variable, value, accepted);
}

static unsigned given(CUcoredumpSettings setting) {
    return 1u << setting;
}

static unsigned read_switch(const char *variable, CUcoredumpSettings setting, unsigned char *on) {
    const char *value = lookup(variable);
    if (!value)
        return 0;
    if (strcmp(value, "0") != 0 && strcmp(value, "1") != 0) {
        ignore(variable, value, "0 or 1");
        return 0;
    }
    *on = value[0] == '1';
    return given(setting);
}

static unsigned read_name(const char *variable, CUcoredumpSettings setting,
                          char name[SG_COREDUMP_NAME]) {
    const char *value = lookup(variable);
    if (!value)
        return 0;
    size_t length = strlen(value);
    if (length >= SG_COREDUMP_NAME) {
        ignore(variable, value, "at most 1023 characters");
        return 0;
    }
    memset(name, 0, SG_COREDUMP_NAME); /* settings are compared as bytes */
    memcpy(name, value, length + 1);
    return given(setting);
}

static const struct {
    const char *name;
    unsigned flag;
} flag_names[] = {
    {"skip_nonrelocated_elf_images", CU_COREDUMP_SKIP_NONRELOCATED_ELF_IMAGES},
    {"skip_global_memory", CU_COREDUMP_SKIP_GLOBAL_MEMORY},
    {"skip_shared_memory", CU_COREDUMP_SKIP_SHARED_MEMORY},
    {"skip_local_memory", CU_COREDUMP_SKIP_LOCAL_MEMORY},
    {"skip_abort", CU_COREDUMP_SKIP_ABORT},
    {"skip_constbank_memory", CU_COREDUMP_SKIP_CONSTBANK_MEMORY},
};

static bool find_flag(const char *name, size_t length, unsigned *flags) {
    for (size_t i = 0; i < sizeof flag_names / sizeof flag_names[0]; i++)
        if (strlen(flag_names[i].name) == length && memcmp(flag_names[i].name, name, length) == 0) {
            *flags |= flag_names[i].flag;
            return true;
        }
    return false;
}

static unsigned read_flags(unsigned *flags) {
    static const char variable[] = "CUDA_COREDUMP_GENERATION_FLAGS";
    const char *value = lookup(variable);
    unsigned found = 0;
    if (!value)
        return 0;
    for (const char *at = value; *at;) {
        size_t length = strcspn(at, ",");
        if (length > 0 && !find_flag(at, length, &found)) {
            ignore(variable, value, "skip_* names between commas, as CUDA-GDB's documentation has");
            return 0;
        }
        at += length + (at[length] == ',');
    }
    *flags = found;
    return given(CU_COREDUMP_GENERATION_FLAGS);
}

unsigned sg_coredump_environment(struct sg_coredump *settings, char pipe[SG_COREDUMP_NAME]) {
    return read_switch("CUDA_ENABLE_COREDUMP_ON_EXCEPTION", CU_COREDUMP_ENABLE_ON_EXCEPTION,
                       &settings->on_exception) |
           read_switch("CUDA_ENABLE_CPU_COREDUMP_ON_EXCEPTION", CU_COREDUMP_TRIGGER_HOST,
                       &settings->trigger_host) |
           read_switch("CUDA_ENABLE_LIGHTWEIGHT_COREDUMP", CU_COREDUMP_LIGHTWEIGHT,
                       &settings->lightweight) |
           read_switch("CUDA_ENABLE_USER_TRIGGERED_COREDUMP", CU_COREDUMP_ENABLE_USER_TRIGGER,
                       &settings->user_trigger) |
           read_name("CUDA_COREDUMP_FILE", CU_COREDUMP_FILE, settings->file) |
           read_name("CUDA_COREDUMP_PIPE", CU_COREDUMP_PIPE, pipe) | read_flags(&settings->flags);
}
