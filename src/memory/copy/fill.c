/* Fills with patterns. */
#include "base/cancel.h"
#include "memory/copy/copy.h"

#include <string.h>

static gpumem_status check(CUdeviceptr to, size_t bytes, const void *pattern,
                           size_t pattern_bytes) {
    GM_REQUIRE(pattern, "fill: pattern is NULL");
    GM_REQUIRE(pattern_bytes == 1 || pattern_bytes == 2 || pattern_bytes == 4,
               "fill: patterns have 1, 2 or 4 bytes, not %zu", pattern_bytes);
    GM_REQUIRE(to % pattern_bytes == 0 && bytes % pattern_bytes == 0,
               "fill: %zu bytes at 0x%llx cannot be filled with %zu at a time", bytes, to,
               pattern_bytes);
    return GPUMEM_OK;
}

static gpumem_status fill(gpumem_device *device, CUdeviceptr to, size_t bytes, const void *pattern,
                          size_t pattern_bytes, CUstream stream) {
    uint8_t one;
    uint16_t two;
    uint32_t four;
    switch (pattern_bytes) {
    case 1:
        memcpy(&one, pattern, sizeof one);
        GM_IN_CONTEXT(device, cu->cuMemsetD8Async(to, one, bytes, stream), "cuMemsetD8Async",
                      "cannot fill %zu bytes", bytes);
    case 2:
        memcpy(&two, pattern, sizeof two);
        GM_IN_CONTEXT(device, cu->cuMemsetD16Async(to, two, bytes / 2, stream), "cuMemsetD16Async",
                      "cannot fill %zu bytes", bytes);
    default:
        memcpy(&four, pattern, sizeof four);
        GM_IN_CONTEXT(device, cu->cuMemsetD32Async(to, four, bytes / 4, stream), "cuMemsetD32Async",
                      "cannot fill %zu bytes", bytes);
    }
}

gpumem_status gpumem_buffer_fill_pattern(gpumem_buffer *buffer, size_t offset, size_t bytes,
                                         const void *pattern, size_t pattern_bytes,
                                         CUstream stream) {
    GM_UNCANCELLED;
    GM_CHECK(buffer, "gpumem_buffer_fill_pattern");
    CUdeviceptr to = buffer->allocation.pointer + offset;
    gpumem_status status = check(to, bytes, pattern, pattern_bytes);
    if (status == GPUMEM_OK)
        status = gm_copy_fills(buffer, offset, bytes, stream, "gpumem_buffer_fill_pattern");
    for (size_t done = 0, step; status == GPUMEM_OK && done < bytes; done += step) {
        step = gm_fill_step(buffer, offset + done, bytes - done);
        status = fill(buffer->resource->device, to + done, step, pattern, pattern_bytes, stream);
    }
    return status;
}
