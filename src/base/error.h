/* How failures are reported: the first function that detects an error calls gm_fail; its callers
 * pass the status on. */
#ifndef GM_BASE_ERROR_H
#define GM_BASE_ERROR_H

#include <gpumem/status.h>

#define GM_PRINTF(fmt, first) __attribute__((format(printf, fmt, first)))

/* Records status and message for this thread and returns the status. */
gpumem_status gm_fail(gpumem_status status, const char *format, ...) GM_PRINTF(2, 3);

/* As gm_fail, with the errno that `call` set; ": <strerror>" is appended to the message. */
gpumem_status gm_fail_system(gpumem_status status, int error, const char *call, const char *format,
                             ...) GM_PRINTF(4, 5);

/* As gm_fail, for a driver call that returned `code`; `reason` is the driver's name for the code
 * and is appended. */
gpumem_status gm_fail_driver(gpumem_status status, int code, const char *reason, const char *call,
                             const char *format, ...) GM_PRINTF(5, 6);

/* As gm_fail, for a Vulkan call that returned `code`, a VkResult with the name `reason`. */
gpumem_status gm_fail_vulkan(gpumem_status status, int code, const char *reason, const char *call,
                             const char *format, ...) GM_PRINTF(5, 6);

/* The analyzer reads one file at a time; it must know that these return the given status, or it
 * follows paths on which a failure counts as success. */
#if defined(__clang_analyzer__) && !defined(GM_ERROR_DEFINITIONS)
#define gm_fail(status, ...)        (gm_fail(status, __VA_ARGS__), (status))
#define gm_fail_system(status, ...) (gm_fail_system(status, __VA_ARGS__), (status))
#define gm_fail_driver(status, ...) (gm_fail_driver(status, __VA_ARGS__), (status))
#define gm_fail_vulkan(status, ...) (gm_fail_vulkan(status, __VA_ARGS__), (status))
#endif

/* The record itself, to be saved and restored around cleanup that may also fail. */
struct gm_error_record {
    gpumem_error error;
    char call[64];
    char message[512];
};
void gm_error_save(struct gm_error_record *record);
void gm_error_restore(const struct gm_error_record *record);

#endif
