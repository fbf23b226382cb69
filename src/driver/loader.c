/*
 * Opens a CUDA driver and fills the table. Each function is requested from cuGetProcAddress at the
 * version of its row, the documented way to get exactly one ABI; dlsym of the exported name is the
 * fallback for drivers without cuGetProcAddress and for functions that it does not know. A version
 * above the driver's own is an invalid value to it, and so it is not asked for those.
 */
#include "driver/loader.h"

#include "base/cancel.h"
#include "base/error.h"
#include "base/log.h"
#include "base/options.h"
#include "driver/find_softgpu.h"
#include "driver/static_program.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SOFTGPU_MARKER "softgpu_version"

struct gpumem_driver {
    gpumem_driver_api api;
    void *library;
    gpumem_driver_kind kind;
    char *path;
    unsigned char present[GPUMEM_FN_COUNT];
};

/* The loader treats the table as an array of function pointers; it has no data members. */
typedef void (*any_fn)(void);
_Static_assert(sizeof(gpumem_driver_api) == GPUMEM_FN_COUNT * sizeof(any_fn),
               "a row of the table is one pointer");

#define CU_FN(symbol, name, version, kind, params, args)                                           \
    static CUresult CUDAAPI absent_##symbol params;
#include <gpumem/functions.def>

/* Stands in for a function that the driver lacks. The parameters are unused on purpose.
 */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
#define CU_FN(symbol, name, version, kind, params, args)                                           \
    static CUresult CUDAAPI absent_##symbol params {                                               \
        gm_log(GPUMEM_LOG_WARNING, "this driver has no %s", #symbol);                              \
        return CUDA_ERROR_NOT_FOUND;                                                               \
    }
#include <gpumem/functions.def>
#pragma GCC diagnostic pop

static const gpumem_driver_api absent = {
#define CU_FN(symbol, name, version, kind, params, args) .symbol = absent_##symbol,
#include <gpumem/functions.def>
};

static any_fn find_symbol(void *library, const char *symbol) {
    /* POSIX allows this conversion; ISO C has no other spelling for it than through the bytes. */
    void *data = dlsym(library, symbol);
    any_fn fn;
    memcpy(&fn, &data, sizeof fn);
    return fn;
}

/* Either ABI of cuGetProcAddress; both return NOT_FOUND for what the driver lacks. */
struct resolver {
    CUresult(CUDAAPI *v2)(const char *, void **, int, cuuint64_t, CUdriverProcAddressQueryResult *);
    CUresult(CUDAAPI *v1)(const char *, void **, int, cuuint64_t);
    int newest; /* version that it can be asked for */
};

static any_fn ask_driver(const struct resolver *resolver, const gpumem_driver_fn_info *row) {
    cuuint64_t flags = row->kind == GPUMEM_FN_PLAIN ? CU_GET_PROC_ADDRESS_LEGACY_STREAM
                                                    : CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
    void *data = NULL;
    CUresult result = CUDA_ERROR_NOT_FOUND;
    if (row->version > resolver->newest)
        return NULL;
    if (resolver->v2) {
        CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
        result = resolver->v2(row->name, &data, row->version, flags, &status);
    } else if (resolver->v1) {
        result = resolver->v1(row->name, &data, row->version, flags);
    }
    any_fn fn = NULL;
    if (result == CUDA_SUCCESS)
        memcpy(&fn, &data, sizeof fn);
    return fn;
}

/* One that does not say is asked for all. */
static int version_of(void *library) {
    CUresult(CUDAAPI * get)(int *);
    any_fn fn = find_symbol(library, "cuDriverGetVersion");
    memcpy(&get, &fn, sizeof get);
    int version = 0;
    return get && get(&version) == CUDA_SUCCESS ? version : INT_MAX;
}

static void fill_table(struct gpumem_driver *driver) {
    struct resolver resolver = {.newest = version_of(driver->library)};
    any_fn v2 = find_symbol(driver->library, "cuGetProcAddress_v2");
    any_fn v1 = find_symbol(driver->library, "cuGetProcAddress");
    memcpy(&resolver.v2, &v2, sizeof v2);
    memcpy(&resolver.v1, &v1, sizeof v1);

    any_fn *slots = (any_fn *)(void *)&driver->api;
    driver->api = absent;
    unsigned missing = 0;
    for (unsigned i = 0; i < GPUMEM_FN_COUNT; i++) {
        const gpumem_driver_fn_info *row = gpumem_driver_fn_info_get((gpumem_driver_fn)i);
        any_fn fn = ask_driver(&resolver, row);
        if (!fn)
            fn = find_symbol(driver->library, row->symbol);
        driver->present[i] = fn != NULL;
        if (fn)
            slots[i] = fn;
        else {
            missing++;
            gm_log(GPUMEM_LOG_DEBUG, "%s lacks %s", driver->path, row->symbol);
        }
    }
    gm_log(GPUMEM_LOG_INFO, "%s: %u of %u functions", driver->path, GPUMEM_FN_COUNT - missing,
           (unsigned)GPUMEM_FN_COUNT);
}

static gpumem_status open_library(const char *choice, void **library) {
    char path[PATH_MAX];
    const char *name = choice;
    if (gm_program_is_static())
        return gm_fail(GPUMEM_ERROR_NO_DRIVER,
                       "this program is linked statically, with libc in it, and no CUDA driver can "
                       "be loaded into such a program: link it without -static (libgpumem.a itself "
                       "may stay in it)");
    if (!choice || strcmp(choice, "nvidia") == 0) {
        name = "libcuda.so.1";
    } else if (strcmp(choice, "softgpu") == 0) {
        /* The engine and not the libcuda.so.1 next to it: that name would then be taken for users
         * of NVIDIA's driver too. */
        if (!gm_find_softgpu(path, sizeof path))
            return gm_fail(GPUMEM_ERROR_NO_DRIVER,
                           "softgpu is not installed: no gpumem/softgpu/libsoftgpu.so.0 next to "
                           "the gpumem library or in a library folder (%s); give its path in "
                           "GPUMEM_DRIVER",
                           GPUMEM_INSTALL_LIBDIR);
        name = path;
    } else if (!strchr(choice, '/')) {
        return gm_fail(GPUMEM_ERROR_INVALID_ARGUMENT,
                       "there is no driver '%s': choose nvidia, softgpu, or a path with a slash",
                       choice);
    }
    /* Never unloaded: a driver's threads outlive any count of references. */
    *library = dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (*library)
        return GPUMEM_OK;
    const char *why = dlerror();
    return gm_fail(GPUMEM_ERROR_NO_DRIVER, "cannot open the CUDA driver %s (%s)%s", name,
                   why ? why : "no reason given",
                   choice ? ""
                          : "; on a machine without a GPU, set GPUMEM_DRIVER=softgpu to use the "
                            "software one");
}

static char *loaded_path(void *library) {
    struct link_map *map = NULL;
    if (dlinfo(library, RTLD_DI_LINKMAP, &map) == 0 && map && map->l_name[0])
        return strdup(map->l_name);
    return strdup("libcuda.so.1");
}

gpumem_status gpumem_driver_open(const char *choice, gpumem_driver **driver) {
    GM_UNCANCELLED;
    if (!driver)
        return gm_fail(GPUMEM_ERROR_INVALID_ARGUMENT, "gpumem_driver_open: driver is NULL");
    if (!choice) {
        choice = secure_getenv("GPUMEM_DRIVER");
        if (choice && !choice[0])
            choice = NULL;
    }
    void *library = NULL;
    gpumem_status status = open_library(choice, &library);
    if (status != GPUMEM_OK)
        return status;

    struct gpumem_driver *made = calloc(1, sizeof *made);
    char *path = loaded_path(library);
    if (!made || !path) {
        free(made);
        free(path);
        return gm_fail(GPUMEM_ERROR_OUT_OF_HOST_MEMORY, "no memory for the driver table");
    }
    made->library = library;
    made->path = path;
    made->kind = dlsym(library, SOFTGPU_MARKER) ? GPUMEM_DRIVER_SOFTGPU : GPUMEM_DRIVER_NVIDIA;
    fill_table(made);
    if (!made->present[GPUMEM_FN_cuInit]) {
        status = gm_fail(GPUMEM_ERROR_NO_DRIVER, "%s has no cuInit: it is not a CUDA driver", path);
        gpumem_driver_close(made);
        return status;
    }
    *driver = made;
    return GPUMEM_OK;
}

void gpumem_driver_close(gpumem_driver *driver) {
    GM_UNCANCELLED;
    if (!driver)
        return;
    free(driver->path);
    free(driver);
}

const gpumem_driver_api *gpumem_driver_table(const gpumem_driver *driver) {
    return &driver->api;
}

bool gpumem_driver_has(const gpumem_driver *driver, gpumem_driver_fn fn) {
    return (unsigned)fn < GPUMEM_FN_COUNT && driver->present[fn];
}

gpumem_status gpumem_driver_get_info(const gpumem_driver *driver, gpumem_driver_info *info) {
    GM_UNCANCELLED;
    const gpumem_driver_info filled = {
        .size = sizeof filled, .kind = driver->kind, .path = driver->path};
    return GM_RESULT_WRITE(gpumem_driver_info, info, &filled);
}

bool gm_driver_is_softgpu(const gpumem_driver *driver) {
    return driver->kind == GPUMEM_DRIVER_SOFTGPU;
}

const char *gm_driver_path(const gpumem_driver *driver) {
    return driver->path;
}

void *gpumem_driver_symbol(const gpumem_driver *driver, const char *symbol) {
    return dlsym(driver->library, symbol);
}
