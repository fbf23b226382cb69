/* Common parts of copies and fills. */
#ifndef GM_MEMORY_COPY_H
#define GM_MEMORY_COPY_H

#include "memory/core/current_context.h"
#include "memory/core/driver_error.h"
#include "memory/object/buffer.h"

#include <gpumem/copy.h>

/* Runs one driver call in the device's context. `code` may use cu. */
#define GM_IN_CONTEXT(device_, code_, call_, ...)                                                  \
    do {                                                                                           \
        struct gm_current current_;                                                                \
        gpumem_status status_ = gm_current_enter_strict(&current_, device_);                       \
        if (status_ != GPUMEM_OK)                                                                  \
            return status_;                                                                        \
        const gpumem_driver_api *cu = (device_)->cu;                                               \
        CUresult result_ = (code_);                                                                \
        if (result_ != CUDA_SUCCESS)                                                               \
            status_ = gm_cu_fail(cu, result_, call_, __VA_ARGS__);                                 \
        gm_current_leave(&current_);                                                               \
        return status_;                                                                            \
    } while (0)

/*
 * Whether the two are memory of different devices. Each side is then named with its context:
 * otherwise pool memory is refused if the device whose context is current has no access to the pool
 * (recorded on two H200s), whichever device's stream it is.
 */
int gm_copy_is_between_devices(const gpumem_buffer *to, const gpumem_buffer *from);

/* How many of the bytes one driver fill may cover: a memset of host memory must not extend into
 * another mapping (seen on an H200; copies may). */
size_t gm_fill_step(const gpumem_buffer *buffer, size_t offset, size_t bytes);

/* Checks a range of a buffer that is to be read or written. */
gpumem_status gm_copy_check(gpumem_buffer *buffer, size_t offset, size_t bytes, int writes,
                            const char *call);

/* Checks a range that a stream is about to read or write, and names the stream for the buffer. */
gpumem_status gm_copy_reads(gpumem_buffer *buffer, size_t offset, size_t bytes, CUstream stream,
                            const char *call);
gpumem_status gm_copy_writes(gpumem_buffer *buffer, size_t offset, size_t bytes, CUstream stream,
                             const char *call);

/* As gm_copy_writes, for a fill. */
gpumem_status gm_copy_fills(gpumem_buffer *buffer, size_t offset, size_t bytes, CUstream stream,
                            const char *call);

/* Between two addresses, device or host, `bytes` more than 0: neither checked nor waited for. */
gpumem_status gm_copy_addresses(gpumem_device *device, CUdeviceptr to, CUdeviceptr from,
                                size_t bytes, CUstream stream);

#endif
