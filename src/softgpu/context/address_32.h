/*
 * The API of CUDA 2 to 3.1, with device addresses and sizes of 32 bits. On H200 it works in
 * contexts that cuCtxCreate's first version made, and in no others; those contexts in turn refuse
 * what has 64-bit addresses in it.
 *
 * Here such a context's memory lies where all memory lies, and has an address of 32 bits besides,
 * which these functions translate. Everything here wants the lock.
 */
#ifndef SG_CONTEXT_ADDRESS_32_H
#define SG_CONTEXT_ADDRESS_32_H

#include "softgpu/address/memory.h"
#include "softgpu/context/context.h"

/* SUCCESS in a context with addresses of 32 bits; its sticky error; INVALID_CONTEXT in any other
 * context and without one. */
CUresult sg_old_context(struct sg_context **context);
bool sg_old_is(const struct sg_context *context);

/* The address that a range gets for the functions of that time. OUT_OF_MEMORY when 4 GiB are full.
 * A range that has one keeps it, and takes it along when it ends. */
CUresult sg_old_address(const struct sg_range *range, CUdeviceptr_v1 *address);
/* Back again; INVALID_VALUE for what is no such address. */
CUresult sg_old_translate(CUdeviceptr_v1 address, CUdeviceptr *wide);

#endif
