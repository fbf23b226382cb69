/*
 * Copies between host memory and memory that the CPU has mapped, by the plan of the device and the
 * method: the CPU's stores and loads, or, from the plan's cut-overs on, the driver's copy.
 *
 * The driver's copy runs on a stream of the engine's own that is ordered with no other, and is
 * waited for there. cuMemcpyHtoD would wait for all blocking streams first, and so for ever for a
 * kernel that waits for the CPU.
 */
#ifndef GM_MAPPED_ENGINE_H
#define GM_MAPPED_ENGINE_H

#include "mapped/plans.h"

#define GM_ENGINE_STREAMS 4

struct gm_engine {
    gpumem_device *device;
    struct gm_plans *plans;
    bool coherent;
    /* Unused ones, made when first needed; threads that copy at once have one each. */
    _Atomic(CUstream) streams[GM_ENGINE_STREAMS];
};

/* With the context current. Cannot fail. */
void gm_engine_open(struct gm_engine *engine, gpumem_device *device, gpumem_mapped_method method,
                    bool coherent);
/* Gives back its streams; an engine that was never opened may be closed. */
void gm_engine_close(struct gm_engine *engine);

/* That of the memory behind a buffer; NULL: memory of the host, which the CPU's memcpy is for. */
struct gm_engine *gm_engine_of(gpumem_buffer *buffer);

/* Mapped memory, where the CPU and the device have it. */
struct gm_place {
    unsigned char *host;
    CUdeviceptr device;
};

/* Done, and visible to the device, when it returns OK. A copy that the driver refuses to begin is
 * made by the CPU; one that it does not say has ended is its error. `engine` may be NULL. */
gpumem_status gm_engine_write(struct gm_engine *engine, struct gm_place to, const void *from,
                              size_t bytes);
gpumem_status gm_engine_read(struct gm_engine *engine, void *to, struct gm_place from,
                             size_t bytes);
/* By the CPU in any case, and without a fence. */
void gm_engine_store(struct gm_engine *engine, unsigned char *to, const void *from, size_t bytes);

/* Drains the CPU's stores, and flushes where the memory needs it. */
gpumem_status gm_engine_flush(const void *begin, size_t bytes);

enum gm_engine_outcome {
    GM_ENGINE_DONE,
    GM_ENGINE_NOT_DONE, /* the driver refused; no copy is under way */
    GM_ENGINE_FAILED,   /* and it is not known whether one is */
};

/* The driver's copy, host memory to device memory with GM_COPY_STORE, else the other way. `status`
 * is the error, on record too, of what was refused. */
enum gm_engine_outcome gm_engine_by_driver(struct gm_engine *engine, unsigned direction, void *host,
                                           CUdeviceptr device, size_t bytes, gpumem_status *status);
/* The same if the plan says so for this host memory, pinned or not; else NOT_DONE. */
enum gm_engine_outcome gm_engine_cut_over(struct gm_engine *engine, unsigned direction, void *host,
                                          CUdeviceptr device, size_t bytes, gpumem_status *status);

#endif
