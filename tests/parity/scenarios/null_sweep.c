/*
 * Every function with every argument zero: before cuInit, without a context, with one.
 *
 * Not called, on any driver: cuCheckpoint*, which freeze a process by its id and would need root to
 * undo; cuMulticast* but for the granularity, which hold memory of all GPUs of a machine.
 */
#include "../parity.h"

#include <pthread.h>

/*
 * One call serves every signature: on x86_64 and aarch64 Linux integers and pointers travel in one
 * set of registers, floating point in another, the rest on the stack, and all of it is zero here.
 */
typedef CUresult(CUDAAPI *zero_call)(long, long, long, long, long, long, double, double, double,
                                     double, double, double, double, double, long, long, long, long,
                                     long, long, long, long, long, long, long, long, long, long);

typedef struct row {
    const char *symbol;
    size_t offset; /* in the driver's table */
} row;

static const row rows[] = {
#define CU_FN(symbol, name, version, kind, params, args)                                           \
    {#symbol, offsetof(gpumem_driver_api, symbol)},
#include <gpumem/functions.def>
};

static bool starts(const char *symbol, const char *prefix) {
    return strncmp(symbol, prefix, strlen(prefix)) == 0;
}

static bool never_called(const char *symbol) {
    return starts(symbol, "cuCheckpoint") ||
           (starts(symbol, "cuMulticast") && strcmp(symbol, "cuMulticastGetGranularity") != 0);
}

/* Calls after which the next one would not meet the state that its line names. */
static bool needs_own_process(const char *symbol) {
    static const char *const prefixes[] = {"cuInit",        "cuDevicePrimaryCtxRe", "cuCtxCreate",
                                           "cuProfiler",    "cuGLCtxCreate",        "cuVDPAU",
                                           "cuCoredumpSet", "cuStreamBeginCapture"};
    for (size_t i = 0; i < COUNT(prefixes); i++) {
        if (starts(symbol, prefixes[i]))
            return true;
    }
    return false;
}

static CUresult call_zero(const row *r) {
    zero_call fn;
    memcpy(&fn, (const char *)par.api + r->offset, sizeof(fn));
    return fn(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
}

/* `restore` brings back the state of the line's name, whatever the last call left. */
static void sweep(void (*restore)(void)) {
    int count = (int)(COUNT(rows));
    int position = 0;
    par.in_sweep = true;
    for (int k = 0; k < count; k++) {
        int i = par.seed % 2 == 0 ? k : count - 1 - k;
        if (i % par.shards != par.shard || never_called(rows[i].symbol))
            continue;
        par.position = position++;
        if (par.position < par.from)
            continue;
        restore();
        par_seq_set(i);
        if (par_before((gpumem_driver_fn)i, "all-zero", "()", NULL, 0))
            par_after(call_zero(&rows[i]), NULL, 0);
        if (needs_own_process(rows[i].symbol))
            _exit(77); /* the runner goes on in a new process */
    }
}

static void nothing(void) {
}

SCENARIO(before_init, "null/before-init", NULL, PAR_SWEEP, 4) {
    sweep(nothing);
}

static void no_current(void) {
    par.api->cuCtxSetCurrent(NULL);
}

SCENARIO(without_context, "null/no-context", par_init, PAR_SWEEP, 8) {
    sweep(no_current);
}

static void primary_current(void) {
    SETUP(cuCtxSetCurrent, (par.primary));
}

SCENARIO(with_context, "null/context", par_context, PAR_SWEEP, 12) {
    sweep(primary_current);
}

static CUcontext gone;

static void *destroy_gone(void *unused) {
    SETUP(cuCtxDestroy_v2, (gone));
    return unused;
}

/* A context that another thread has destroyed is current. */
static void gone_current(void) {
    pthread_t thread;
    CUcontext current;
    if (par.api->cuCtxGetCurrent(&current) == CUDA_SUCCESS && current == gone && gone != NULL)
        return;
    SETUP(cuCtxSetCurrent, (NULL));
    SETUP(cuCtxCreate_v2, (&gone, 0, 0));
    pthread_create(&thread, NULL, destroy_gone, NULL);
    pthread_join(thread, NULL);
}

SCENARIO(with_destroyed, "null/destroyed", par_init, PAR_SWEEP, 8) {
    sweep(gone_current);
}

static void primary_again(void) {
    par.api->cuCtxSetCurrent(par.primary);
}

/* A device fault has poisoned the context. */
SCENARIO(with_poisoned, "null/poisoned", par_context, PAR_SWEEP, 8) {
    CUstream s = par_stream();
    CUdeviceptr m = par_mapped(PAR_2M);
    par_hold(s);
    SETUP(cuMemsetD8Async, (m, 1, PAR_2M, s));
    SETUP(cuMemUnmap, (m, PAR_2M));
    par_release();
    if (par.api->cuStreamSynchronize(s) == CUDA_SUCCESS) {
        par_see("setup", "SETUP_FAILED no fault");
        return;
    }
    sweep(primary_again);
}
