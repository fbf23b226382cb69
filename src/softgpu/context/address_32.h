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

/* Below the first, addresses are mistakes. */
#define SG_ADDRESS_32_FIRST (1u << 24)
/* Bytes that have such addresses. */
#define SG_ADDRESS_32_ROOM (UINT32_MAX - SG_ADDRESS_32_FIRST + 1u)

bool sg_context_has_32_bit_addresses(const struct sg_context *context);
/* SUCCESS when the current context is one of these; its sticky error; INVALID_CONTEXT in any other
 * context and without one. */
CUresult sg_context_current_32(struct sg_context **context);

/* The address that a range gets for the functions of that time. OUT_OF_MEMORY when 4 GiB are full.
 * A range that has one keeps it, and takes it along when it ends. */
CUresult sg_address_32_of(const struct sg_range *range, CUdeviceptr_v1 *address);
/* Back again; INVALID_VALUE for what is no such address. */
CUresult sg_address_32_find(CUdeviceptr_v1 address, CUdeviceptr *wide);
/* The range that `address` lies in, and in *start the 32-bit address of its first byte; NULL for
 * none. */
struct sg_range *sg_address_32_range(CUdeviceptr_v1 address, CUdeviceptr_v1 *start);

#endif
