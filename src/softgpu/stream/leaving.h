/*
 * Memory whose free stands in a stream: to the application it is gone, but work that was queued
 * before the free still uses it. Kernels' bounds are those of allocations, so they ask here, too.
 * Everything here requires the lock.
 */
#ifndef SG_STREAM_LEAVING_H
#define SG_STREAM_LEAVING_H

#include "softgpu/stream/stream.h"

/* It is there until the stream has completed operation `number`. False: no memory. Without kernels
 * that run nothing is kept. */
bool sg_leaving_add(CUdeviceptr start, size_t size, struct sg_stream *stream, uint64_t number);
/* The extent around an address as an operation sees it that was submitted as number `serial` of
 * all: of what was freed after its submission. False: there is none; the address map holds. */
bool sg_leaving_find(CUdeviceptr address, uint64_t serial, uint64_t *low, uint64_t *length);
/* Is any byte of these in one? */
bool sg_leaving_overlaps(CUdeviceptr start, size_t size);

#endif
