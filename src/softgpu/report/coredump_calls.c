/* Reading and writing core dump settings. */
#include "softgpu/coredump/coredump.h"

#include "softgpu/context/context.h"
#include "softgpu/core/calls.h"
#include "softgpu/core/text.h"
#include "softgpu/report/report.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- One setting ----------------------------------------------------------------------------- */

struct setting {
    void *bytes;
    size_t size; /* 0 for a value that is not a setting in this scope */
    bool text;
    bool truth; /* the stored value is 0 or 1 */
    bool fixed; /* set by the environment */
};

static struct setting locate(struct sg_coredump *in, bool process, CUcoredumpSettings which) {
    switch ((int)which) {
    case CU_COREDUMP_ENABLE_ON_EXCEPTION:
        return (struct setting){.bytes = &in->on_exception, .size = 1};
    case CU_COREDUMP_TRIGGER_HOST:
        return (struct setting){.bytes = &in->trigger_host, .size = 1, .truth = true};
    case CU_COREDUMP_LIGHTWEIGHT:
        return (struct setting){.bytes = &in->lightweight, .size = 1, .truth = true};
    case CU_COREDUMP_ENABLE_USER_TRIGGER:
        return (struct setting){.bytes = &in->user_trigger, .size = process ? 1 : 0};
    case CU_COREDUMP_FILE:
        return (struct setting){.bytes = in->file, .size = SG_COREDUMP_NAME, .text = true};
    case CU_COREDUMP_PIPE:
        return (struct setting){
            .bytes = sg_coredump_pipe, .size = process ? SG_COREDUMP_NAME : 0, .text = true};
    case CU_COREDUMP_GENERATION_FLAGS:
        return (struct setting){.bytes = &in->flags, .size = sizeof in->flags};
    default:
        return (struct setting){.size = 0};
    }
}

static struct setting find(struct sg_coredump *in, bool process, CUcoredumpSettings which) {
    struct setting setting = locate(in, process, which);
    setting.fixed = setting.size > 0 && (sg_coredump_fixed >> which & 1) != 0;
    return setting;
}

/* Text is truncated to the available size; fixed-size values need exactly their size. */
static CUresult get(struct setting from, void *value, size_t *size) {
    if (from.size == 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (!value) {
        *size = from.size;
        return CUDA_SUCCESS;
    }
    if (from.text) {
        if (*size > 0)
            snprintf(value, *size, "%s", (const char *)from.bytes);
        return CUDA_SUCCESS;
    }
    if (*size != from.size)
        return CUDA_ERROR_INVALID_VALUE;
    memcpy(value, from.bytes, from.size);
    return CUDA_SUCCESS;
}

static void set_text(char *name, const char *value, size_t size) {
    memset(name, 0, SG_COREDUMP_NAME);
    memcpy(name, value, strnlen(value, size));
}

/* Documented: a value from the environment always takes precedence over one that is set. What the
 * call returns is not documented: here it checks its arguments, succeeds and changes nothing,
 * because the program need not know of the variable. */
static CUresult set(struct setting to, const void *value, size_t *size) {
    if (to.size == 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (!value) {
        *size = to.size;
        return CUDA_SUCCESS;
    }
    if (to.text ? strnlen(value, *size) >= SG_COREDUMP_NAME : *size != to.size)
        return CUDA_ERROR_INVALID_VALUE;
    if (to.fixed)
        return CUDA_SUCCESS;
    if (to.text) {
        set_text(to.bytes, value, *size);
        return CUDA_SUCCESS;
    }
    memcpy(to.bytes, value, to.size);
    unsigned char *byte = to.bytes;
    if (to.truth)
        *byte = *byte != 0;
    return CUDA_SUCCESS;
}

/* ---- Calls ----------------------------------------------------------------------------------- */

/* As on H200, the size is checked first, then the context, then the setting; a poisoned context
 * still has settings. */
static CUresult of_context(struct sg_coredump **settings, const size_t *size) {
    if (!size)
        return CUDA_ERROR_INVALID_VALUE;
    struct sg_context *context = sg_context_peek();
    if (!context)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (!context->alive)
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    *settings = &context->coredump;
    return CUDA_SUCCESS;
}

CUresult sg_cuCoredumpGetAttribute(CUcoredumpSettings attrib, void *value, size_t *size) {
    struct sg_coredump *settings;
    CUresult result = of_context(&settings, size);
    return result == CUDA_SUCCESS ? get(find(settings, false, attrib), value, size) : result;
}

CUresult sg_cuCoredumpGetAttributeGlobal(CUcoredumpSettings attrib, void *value, size_t *size) {
    return size ? get(find(&sg_coredump_process, true, attrib), value, size)
                : CUDA_ERROR_INVALID_VALUE;
}

CUresult sg_cuCoredumpSetAttribute(CUcoredumpSettings attrib, void *value, size_t *size) {
    struct sg_coredump *settings;
    CUresult result = of_context(&settings, size);
    return result == CUDA_SUCCESS ? set(find(settings, false, attrib), value, size) : result;
}

CUresult sg_cuCoredumpSetAttributeGlobal(CUcoredumpSettings attrib, void *value, size_t *size) {
    if (!size)
        return CUDA_ERROR_INVALID_VALUE;
    if (attrib == CU_COREDUMP_PIPE && sg_coredump_process.user_trigger)
        return CUDA_ERROR_NOT_SUPPORTED; /* the pipe being listened to keeps its name */
    return set(find(&sg_coredump_process, true, attrib), value, size);
}

/* ---- State ----------------------------------------------------------------------------------- */

/* Only values that were set: default names differ between processes. */
static void dump(struct sg_text *text, const char *of, const struct sg_coredump *settings) {
    if (memcmp(settings, &sg_coredump_initial, sizeof sg_coredump_initial) == 0)
        return;
    sg_text_line(text, "coredump %s enabled %u host %u light %u user %u flags 0x%x file %s", of,
                 settings->on_exception, settings->trigger_host, settings->lightweight,
                 settings->user_trigger, settings->flags,
                 strcmp(settings->file, sg_coredump_initial.file) == 0 ? "default"
                                                                       : settings->file);
}

void sg_dump_coredumps(struct sg_text *text) {
    dump(text, "process", &sg_coredump_process);
    const struct sg_context *context = sg_context_peek();
    if (context && context->alive)
        dump(text, "current-context", &context->coredump);
}
