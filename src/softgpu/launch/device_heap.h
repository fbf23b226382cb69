/*
 * malloc, aligned or not, and free of kernels: a heap in the memory of the context's device, of its
 * limit's size, made when the first kernel that uses it is launched. Blocks live until they are
 * freed or the context ends, whichever kernel or module allocated them. As on hardware, the
 * application's copies cannot access the heap, as it is not one of its allocations. Everything here
 * requires the lock.
 */
#ifndef SG_LAUNCH_DEVICE_HEAP_H
#define SG_LAUNCH_DEVICE_HEAP_H

#include "softgpu/address/memory.h"

struct sg_device_heap {
    struct sg_segment segment; /* size 0: not made yet */
    size_t size;               /* as the limit says */
    uint64_t step;             /* 16; more if 32 bits could not count the steps */
    struct sg_tree blocks;     /* all, by their first step: contiguous */
    struct sg_tree free;       /* the free ones, by size and first step */
};

/* Makes the heap, unless it exists. OUT_OF_MEMORY: the device does not have that much. */
CUresult sg_heap_begin(struct sg_device_heap *heap, int device, size_t size);
/* A block at a multiple of 16; 0 if there is no room for it. */
CUdeviceptr sg_heap_take(struct sg_device_heap *heap, uint64_t size);
/* The same at a multiple of a power of two; 0 too if `alignment` is none. */
CUdeviceptr sg_heap_take_aligned(struct sg_device_heap *heap, uint64_t size, uint64_t alignment);
/* Frees a block; false: the address is not that of an allocated block. */
bool sg_heap_give(struct sg_device_heap *heap, CUdeviceptr address);
/* The extent of the heap, if an address is in it. */
bool sg_heap_extent(const struct sg_device_heap *heap, CUdeviceptr address, uint64_t *low,
                    uint64_t *length);
/* The block that contains an address in the heap; a size of 0: a free one. False: not in the
 * heap. */
bool sg_heap_block(const struct sg_device_heap *heap, CUdeviceptr address, uint64_t *start,
                   uint64_t *size);
void sg_heap_end(struct sg_device_heap *heap);

#endif
