/*
 * The API of CUDA 2 to 3.1, with device addresses and sizes of 32 bits. On H200 it works only in
 * contexts made by cuCtxCreate's first version; those contexts in turn refuse calls that take
 * 64-bit addresses.
 *
 * Here the memory of such a context is placed like any other and has an additional 32-bit address,
 * which these functions translate. Everything here needs the lock.
 */
#ifndef SG_CONTEXT_ADDRESS_32_H
#define SG_CONTEXT_ADDRESS_32_H

#include "softgpu/address/memory.h"
#include "softgpu/context/context.h"

/* Addresses below SG_ADDRESS_32_FIRST are mistakes. */
#define SG_ADDRESS_32_FIRST (1u << 24)
/* Bytes that have such addresses. */
#define SG_ADDRESS_32_ROOM (UINT32_MAX - SG_ADDRESS_32_FIRST + 1u)

bool sg_context_has_32_bit_addresses(const struct sg_context *context);
/* SUCCESS when the current context is one of these, or its sticky error; INVALID_CONTEXT in any
 * other context and when there is none. */
CUresult sg_context_current_32(struct sg_context **context);

/* The address that a range gets for the functions of that time. OUT_OF_MEMORY when 4 GiB are full.
 * A range that has one keeps it until the range ends. */
CUresult sg_address_32_of(const struct sg_range *range, CUdeviceptr_v1 *address);
/* The reverse; INVALID_VALUE when it is not such an address. */
CUresult sg_address_32_find(CUdeviceptr_v1 address, CUdeviceptr *wide);
/* The range that contains `address`, with the 32-bit address of its first byte in *start; NULL if
 * there is none. */
struct sg_range *sg_address_32_range(CUdeviceptr_v1 address, CUdeviceptr_v1 *start);

#endif
