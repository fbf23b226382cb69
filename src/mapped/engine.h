/*
 * Copies between host memory and memory that the CPU has mapped, by the plan of the device and the
 * method: the CPU's stores and loads, or, above the plan's cut-over sizes, the driver's copy.
 *
 * The driver's copy runs on a stream of the engine's own, which is ordered with no other, and waits
 * only for that stream. cuMemcpyHtoD would first wait for all blocking streams, and so forever for
 * a kernel that waits for the CPU.
 */
#ifndef GM_MAPPED_ENGINE_H
#define GM_MAPPED_ENGINE_H

#include "mapped/plans.h"

#define GM_ENGINE_STREAMS 4

struct gm_engine {
    gpumem_device *device;
    struct gm_plans *plans;
    bool coherent;
    /* Unused ones, made when first needed; each thread that is copying has one to itself. */
    _Atomic(CUstream) streams[GM_ENGINE_STREAMS];
};

/* The context must be current. Cannot fail. */
void gm_engine_open(struct gm_engine *engine, gpumem_device *device, gpumem_mapped_method method,
                    bool coherent);
/* Gives back its streams; an engine that was never opened may be closed too. */
void gm_engine_close(struct gm_engine *engine);

/* The engine of the memory under a buffer; NULL: host memory, which memcpy copies. */
struct gm_engine *gm_engine_of(gpumem_buffer *buffer);

/* Mapped memory: its address for the CPU and for the device. */
struct gm_place {
    unsigned char *host;
    CUdeviceptr device;
};

/* When it returns OK the copy is complete and visible to the device. If the driver refuses to start
 * a copy, the CPU makes it; if the driver does not report that a copy has ended, that is an error.
 * `engine` may be NULL. */
gpumem_status gm_engine_write(struct gm_engine *engine, struct gm_place to, const void *from,
                              size_t bytes);
gpumem_status gm_engine_read(struct gm_engine *engine, void *to, struct gm_place from,
                             size_t bytes);
/* The same, with no cancellation point and no error, for what the CPU writes without a flush. The
 * rest: false, and nothing is done. */
bool gm_engine_write_at_once(struct gm_engine *engine, unsigned char *to, const void *from,
                             size_t bytes);
/* Always by the CPU, and without a fence. */
void gm_engine_store(struct gm_engine *engine, unsigned char *to, const void *from, size_t bytes);

/* Drains the CPU's stores, and flushes if the memory needs it. */
gpumem_status gm_engine_flush(const void *begin, size_t bytes);

enum gm_engine_outcome {
    GM_ENGINE_DONE,
    GM_ENGINE_NOT_DONE, /* the driver refused; no copy is under way */
    GM_ENGINE_FAILED,   /* the copy may still be under way */
};

/* The driver's copy, from host to device memory with GM_COPY_STORE, otherwise the other way. On
 * refusal `status` is the error, which is also on record. */
enum gm_engine_outcome gm_engine_by_driver(struct gm_engine *engine, unsigned direction, void *host,
                                           CUdeviceptr device, size_t bytes, gpumem_status *status);
/* The same if the plan prefers it for this host memory, pinned or not; otherwise NOT_DONE. */
enum gm_engine_outcome gm_engine_cut_over(struct gm_engine *engine, unsigned direction, void *host,
                                          CUdeviceptr device, size_t bytes, gpumem_status *status);

#endif
