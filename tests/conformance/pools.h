/* What the tests of memory pools share. */
#ifndef CONFORMANCE_POOLS_H
#define CONFORMANCE_POOLS_H

#include "harness.h"

#define POOL_STEP ((size_t)32 << 20)

/* A pool at `location` (id 0) that keeps what it has until told otherwise. When the test ends, all
 * of its memory must be free. */
CUmemoryPool pool_make(CUmemLocationType location, CUmemAllocationHandleType handles, size_t most);
/* Before the test ends. */
void pool_end(CUmemoryPool pool);
/* The same, with memory in use. */
void pool_destroy(CUmemoryPool pool);
CUdeviceptr pool_take(CUmemoryPool pool, size_t size, CUstream stream);
/* A block of two steps (32 MiB each) that lay apart in the pool: where the first one of it ends. */
CUdeviceptr pool_take_steps(CUmemoryPool pool, CUdeviceptr block[3]);
void pool_free_steps(const CUdeviceptr block[3]);
uint64_t pool_number(CUmemoryPool pool, CUmemPool_attribute attribute);
int pool_flag(CUmemoryPool pool, CUmemPool_attribute attribute);
void pool_set_flag(CUmemoryPool pool, CUmemPool_attribute attribute, int value);
void pool_set_threshold(CUmemoryPool pool, uint64_t bytes);
uint64_t pool_reserved(CUmemoryPool pool);
uint64_t pool_used(CUmemoryPool pool);

#endif
