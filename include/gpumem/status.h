/*
 * What every gpumem call returns: a status, with the message and the raw codes that explain it.
 */
#ifndef GPUMEM_STATUS_H
#define GPUMEM_STATUS_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(GPUMEM_BUILD) && defined(__GNUC__)
#define GPUMEM_API __attribute__((visibility("default")))
#else
#define GPUMEM_API
#endif

#if defined(__GNUC__)
#define GPUMEM_MUST_CHECK __attribute__((warn_unused_result))
#else
#define GPUMEM_MUST_CHECK
#endif

/* Values are fixed once released; new ones are added at the end. */
typedef enum gpumem_status {
    GPUMEM_OK = 0,
    GPUMEM_ERROR_INVALID_ARGUMENT = 1,   /* the call itself is wrong; nothing was attempted */
    GPUMEM_ERROR_OUT_OF_MEMORY = 2,      /* device memory, after caches were drained */
    GPUMEM_ERROR_OUT_OF_HOST_MEMORY = 3, /* malloc, mmap or pinned memory */
    GPUMEM_ERROR_OUT_OF_CAPACITY = 4, /* growth past the reserved address space, or past a limit */
    GPUMEM_ERROR_BUSY = 5,            /* a view, an export or another owner still holds it */
    GPUMEM_ERROR_NOT_SUPPORTED = 6,   /* this platform cannot do it; the message says why */
    GPUMEM_ERROR_NOT_PERMITTED = 7,   /* possible, but not allowed: permissions, container, IMEX */
    GPUMEM_ERROR_NO_DRIVER = 8,       /* no driver library, or it lacks what is needed */
    GPUMEM_ERROR_NO_DEVICE = 9,       /* the driver has no such device */
    GPUMEM_ERROR_DRIVER = 10,         /* any other driver error; see driver_code */
    GPUMEM_ERROR_DEVICE_FAULT = 11,   /* the context is poisoned by an earlier fault (sticky) */
    GPUMEM_ERROR_SYSTEM = 12,         /* a system call failed; see system_code (errno) */
    GPUMEM_ERROR_PEER = 13,           /* the other process is gone or speaks another protocol */
    GPUMEM_ERROR_DATA = 14,           /* received or stored bytes are wrong */
    GPUMEM_ERROR_CANCELLED = 15,      /* the caller asked to stop */
    GPUMEM_ERROR_FORKED = 16,         /* the object was made by the parent before fork */
    GPUMEM_ERROR_TIMED_OUT = 17,      /* the caller's timeout has expired; nothing was done */
} gpumem_status;

/* The last failure of this thread. Pointers are valid until the thread's next failing call. */
typedef struct gpumem_error {
    gpumem_status status;
    int driver_code;     /* CUresult, or 0 */
    int vulkan_code;     /* VkResult, or 0; Vulkan maps device memory for the CPU */
    int system_code;     /* errno, or 0 */
    const char *call;    /* the driver, Vulkan or system call that failed, or "" */
    const char *message; /* what was requested, what refused it, what to do if known */
} gpumem_error;

/*
 * The last failure of the calling thread; status GPUMEM_OK and an empty message if there was none.
 * Successful calls leave it alone. Never NULL. Thread-safe (thread-local); does not block.
 */
GPUMEM_API const gpumem_error *gpumem_last_error(void);

/* The enumerator's name, "GPUMEM_ERROR_BUSY"; "GPUMEM_ERROR_?" for unknown values. A constant
 * string. */
GPUMEM_API const char *gpumem_status_name(gpumem_status status);

/* How much a message matters; each level includes those before it. */
typedef enum gpumem_log_level {
    GPUMEM_LOG_DEFAULT = 0, /* what each use says; no line has this level */
    GPUMEM_LOG_ERROR = 1,
    GPUMEM_LOG_WARNING = 2,
    GPUMEM_LOG_INFO = 3,
    GPUMEM_LOG_DEBUG = 4,
} gpumem_log_level;

/*
 * Receives log lines without a newline. It may be called from any thread, with internal locks held,
 * so it must not call gpumem. `text` is valid only during the call.
 */
typedef void (*gpumem_log_fn)(void *user, gpumem_log_level level, const char *text);

/*
 * Sets the process-wide log callback and the most detailed level that it receives; DEFAULT is
 * warnings and errors, or what GPUMEM_LOG (error, warning, info, debug, off) says; anything else
 * there is ignored with a warning. NULL restores the default, which writes to standard error.
 * Thread-safe; a line that another thread is just writing may still go to the former callback after
 * the return.
 */
GPUMEM_API void gpumem_set_log(gpumem_log_fn fn, void *user, gpumem_log_level max_level);

#define GPUMEM_VERSION_MAJOR  0
#define GPUMEM_VERSION_MINOR  1
#define GPUMEM_VERSION_PATCH  0
#define GPUMEM_VERSION_STRING "0.1.0"

/* The library's version at run time, 10000 * major + 100 * minor + patch. */
GPUMEM_API int gpumem_version(void);

#ifdef __cplusplus
}
#endif

#endif
