/*
 * malloc and free of kernels: a heap in the memory of the context's device, as large as its limit
 * says, made when the first kernel that uses it is launched. What is allocated stays until it is
 * freed or the context ends, whichever kernel or module asked. The application's copies do not
 * reach it, as on hardware: it is no allocation of theirs. Everything here requires the lock.
 */
#ifndef SG_LAUNCH_DEVICE_HEAP_H
#define SG_LAUNCH_DEVICE_HEAP_H

#include "softgpu/address/memory.h"

struct sg_device_heap {
    struct sg_segment segment; /* size 0: there is none yet */
    size_t size;               /* as the limit says */
    uint64_t step;             /* 16; more where 32 bits could not count them */
    struct sg_tree blocks;     /* all, by their first step: one behind the other */
    struct sg_tree free;       /* those that are free, by size and first step */
};

/* OUT_OF_MEMORY: there is not that much. Nothing happens where there is one already. */
CUresult sg_heap_begin(struct sg_device_heap *heap, int device, size_t size);
/* At a multiple of 16; 0 where nothing of that size is left. */
CUdeviceptr sg_heap_take(struct sg_device_heap *heap, uint64_t size);
/* False: it is not the address of a block in use. */
bool sg_heap_give(struct sg_device_heap *heap, CUdeviceptr address);
/* The heap, where an address is in it. */
bool sg_heap_extent(const struct sg_device_heap *heap, CUdeviceptr address, uint64_t *low,
                    uint64_t *length);
/* The block around an address in the heap; a size of 0: it is free. False: not in the heap. */
bool sg_heap_block(const struct sg_device_heap *heap, CUdeviceptr address, uint64_t *start,
                   uint64_t *size);
void sg_heap_end(struct sg_device_heap *heap);

#endif
