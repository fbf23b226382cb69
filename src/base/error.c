#define GM_ERROR_DEFINITIONS
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* initial-exec would break dlopen of libgpumem on some libcs; the default model costs one call. */
static _Thread_local struct gm_error_record last;

static void append(const char *separator, const char *text) {
    size_t used = strlen(last.message);
    snprintf(last.message + used, sizeof last.message - used, "%s%s", separator, text);
}

static void record(gpumem_status status, const char *call, const char *format, va_list args) {
    vsnprintf(last.message, sizeof last.message, format, args);
    snprintf(last.call, sizeof last.call, "%s", call);
    last.error = (gpumem_error){.status = status};
}

gpumem_status gm_fail(gpumem_status status, const char *format, ...) {
    va_list args;
    va_start(args, format);
    record(status, "", format, args);
    va_end(args);
    return status;
}

gpumem_status gm_fail_system(gpumem_status status, int error, const char *call, const char *format,
                             ...) {
    va_list args;
    va_start(args, format);
    record(status, call, format, args);
    va_end(args);
    last.error.system_code = error;
    char text[128];
    append(": ", strerror_r(error, text, sizeof text));
    return status;
}

gpumem_status gm_fail_driver(gpumem_status status, int code, const char *reason, const char *call,
                             const char *format, ...) {
    va_list args;
    va_start(args, format);
    record(status, call, format, args);
    va_end(args);
    last.error.driver_code = code;
    append(": ", call);
    append(" answered ", reason);
    return status;
}

gpumem_status gm_fail_vulkan(gpumem_status status, int code, const char *reason, const char *call,
                             const char *format, ...) {
    va_list args;
    va_start(args, format);
    record(status, call, format, args);
    va_end(args);
    last.error.vulkan_code = code;
    append(": ", call);
    append(" answered ", reason);
    return status;
}

/* Copies only as far as the text goes: each free of a buffer saves the record, which is mostly
 * empty. */
static void copy(struct gm_error_record *to, const struct gm_error_record *from) {
    to->error = from->error;
    memcpy(to->call, from->call, strlen(from->call) + 1);
    memcpy(to->message, from->message, strlen(from->message) + 1);
}

void gm_error_save(struct gm_error_record *saved) {
    copy(saved, &last);
}

void gm_error_restore(const struct gm_error_record *saved) {
    copy(&last, saved);
}

const gpumem_error *gpumem_last_error(void) {
    last.error.call = last.call;
    last.error.message = last.message;
    return &last.error;
}

static const struct {
    const char *name;
    const char *text;
} names[] = {
#define STATUS(name, text) [GPUMEM_##name] = {"GPUMEM_" #name, text}
    STATUS(OK, "success"),
    STATUS(ERROR_INVALID_ARGUMENT, "invalid argument"),
    STATUS(ERROR_OUT_OF_MEMORY, "out of device memory"),
    STATUS(ERROR_OUT_OF_HOST_MEMORY, "out of host memory"),
    STATUS(ERROR_OUT_OF_CAPACITY, "out of reserved capacity"),
    STATUS(ERROR_BUSY, "in use"),
    STATUS(ERROR_NOT_SUPPORTED, "not supported here"),
    STATUS(ERROR_NOT_PERMITTED, "not permitted"),
    STATUS(ERROR_NO_DRIVER, "no CUDA driver"),
    STATUS(ERROR_NO_DEVICE, "no such device"),
    STATUS(ERROR_DRIVER, "driver error"),
    STATUS(ERROR_DEVICE_FAULT, "the device faulted earlier"),
    STATUS(ERROR_SYSTEM, "system call failed"),
    STATUS(ERROR_PEER, "the other process failed"),
    STATUS(ERROR_DATA, "data mismatch"),
    STATUS(ERROR_CANCELLED, "cancelled"),
    STATUS(ERROR_FORKED, "made before fork, by the parent"),
    STATUS(ERROR_TIMED_OUT, "timed out"),
#undef STATUS
};

static int known(gpumem_status status) {
    return (int)status >= 0 && (size_t)status < sizeof names / sizeof names[0];
}

const char *gpumem_status_name(gpumem_status status) {
    return known(status) ? names[status].name : "GPUMEM_ERROR_?";
}

int gpumem_version(void) {
    return 10000 * GPUMEM_VERSION_MAJOR + 100 * GPUMEM_VERSION_MINOR + GPUMEM_VERSION_PATCH;
}
