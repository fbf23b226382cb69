/*
 * A loaded CUDA driver: all of its functions in one table, for programs that want the API itself.
 *
 * A driver is an instance, not a process global: two may be open at once. Nothing is linked; the
 * library is opened by name or path on request. This header declares CUDA's types and cannot be
 * included together with <cuda.h>; gpumem.h can.
 */
#ifndef GPUMEM_DRIVER_H
#define GPUMEM_DRIVER_H

#include <gpumem/cuda_api.h>
#include <gpumem/status.h>
#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * One member per row of functions.def, named by exported symbol. No member is NULL: a function that
 * the driver lacks returns CUDA_ERROR_NOT_FOUND (see gpumem_driver_has).
 */
typedef struct gpumem_driver_api {
#define CU_FN(symbol, name, version, kind, params, args) CUresult(CUDAAPI *symbol) params;
#include <gpumem/functions.def>
} gpumem_driver_api;

/* Index of a function in the table. */
typedef enum gpumem_driver_fn {
#define CU_FN(symbol, name, version, kind, params, args) GPUMEM_FN_##symbol,
#include <gpumem/functions.def>
    GPUMEM_FN_COUNT
} gpumem_driver_fn;

typedef enum gpumem_driver_fn_kind {
    GPUMEM_FN_PLAIN = 0,
    GPUMEM_FN_PTDS = 1, /* per-thread default stream twin of a synchronous function */
    GPUMEM_FN_PTSZ = 2, /* per-thread default stream twin of a function that takes a stream */
} gpumem_driver_fn_kind;

typedef struct gpumem_driver_fn_info {
    const char *symbol; /* exported name: "cuMemAlloc_v2" */
    const char *name;   /* name for cuGetProcAddress: "cuMemAlloc" */
    int version;        /* API version of this ABI: 3020 */
    gpumem_driver_fn_kind kind;
} gpumem_driver_fn_info;

/* Static description of a row; NULL when fn is out of range. Thread-safe. */
GPUMEM_API const gpumem_driver_fn_info *gpumem_driver_fn_info_get(gpumem_driver_fn fn);

typedef enum gpumem_driver_kind {
    GPUMEM_DRIVER_NVIDIA = 1,
    GPUMEM_DRIVER_SOFTGPU = 2, /* carries softgpu's marker symbol */
} gpumem_driver_kind;

typedef struct gpumem_driver gpumem_driver;

/*
 * Opens a driver. `choice` is "nvidia", "softgpu", or a path (anything with a slash); NULL reads
 * GPUMEM_DRIVER (ignored in set-uid programs) and else opens libcuda.so.1 by name. "softgpu" is
 * searched for next to libgpumem (gpumem/softgpu/libsoftgpu.so.0), then in the library folder of
 * the installation: by the run path that the CMake and pkg-config packages give to programs that
 * link the static library, then where the library was configured to be installed. The library is
 * loaded RTLD_LOCAL and never unloaded: drivers start threads. cuInit is not called. The caller
 * closes the driver. NO_DRIVER: nothing can be opened; the message says what was tried and how to
 * choose softgpu. Always so in a program that is linked with -static: a driver needs the loader and
 * the libc of a dynamic program, in which libgpumem.a may be. Thread-safe; blocks while the library
 * is loaded.
 */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status gpumem_driver_open(const char *choice,
                                                              gpumem_driver **driver);

/* Frees the instance (NULL is allowed). The table must not be used afterwards. */
GPUMEM_API void gpumem_driver_close(gpumem_driver *driver);

/* The table; valid until the driver is closed. */
GPUMEM_API const gpumem_driver_api *gpumem_driver_table(const gpumem_driver *driver);

/* Whether the driver has this function in this ABI version. */
GPUMEM_API bool gpumem_driver_has(const gpumem_driver *driver, gpumem_driver_fn fn);

typedef struct gpumem_driver_info {
    size_t size;
    gpumem_driver_kind kind;
    const char *path; /* the file that was loaded, as the dynamic loader names it; valid until the
                         driver is closed */
} gpumem_driver_info;

/* Set `info->size` before the call. Thread-safe. */
GPUMEM_API gpumem_status gpumem_driver_get_info(const gpumem_driver *driver,
                                                gpumem_driver_info *info);

/* A symbol of the loaded library outside the table (softgpu's controls), or NULL. */
GPUMEM_API void *gpumem_driver_symbol(const gpumem_driver *driver, const char *symbol);

#ifdef __cplusplus
}
#endif

#endif
