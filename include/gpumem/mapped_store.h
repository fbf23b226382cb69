/*
 * Stores to device memory that the CPU has mapped, for paths where a tenth of a microsecond counts:
 * no handle, no check, no driver call, no lock.
 *
 *     gpumem_store(slot, &item, sizeof item);     64 bytes: four stores
 *     gpumem_store_fence();
 *     gpumem_store(flag, &sequence, sizeof sequence);
 *     gpumem_store_fence();
 *
 * Stores to mapped memory may be seen by the device in any order, and late: they wait in the CPU's
 * write-combining buffers. A fence between payload and flag orders the two; a fence after the flag
 * sends it off. Neither waits until the device has it.
 *
 * The address is the host pointer of a mapping, or any memory that may be written. The two sides
 * may not overlap: then the result is undefined, as memcpy's. Everything here is thread-safe, also
 * from signal handlers, and never blocks.
 */
#ifndef GPUMEM_MAPPED_STORE_H
#define GPUMEM_MAPPED_STORE_H

#include <gpumem/types.h>
#include <stddef.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Any size, by the instructions that store best on this CPU: streaming ones from 65 bytes on. Does
 * not fence. No driver call. */
GPUMEM_API void gpumem_store_bytes(void *to, const void *from, size_t bytes);

/* A size of at most 64 that the compiler knows becomes the stores themselves, in place; every other
 * size is a call of gpumem_store_bytes. */
static inline __attribute__((always_inline, unused)) void gpumem_store(void *to, const void *from,
                                                                       size_t bytes) {
    if (__builtin_constant_p(bytes) && bytes <= 64)
        memcpy(to, from, bytes);
    else
        gpumem_store_bytes(to, from, bytes);
    /* What was stored is not kept back for a later store to the same place. */
    __asm__ volatile("" ::: "memory");
}

/* Stores before it are seen by the device before stores after it, and leave the CPU's
 * write-combining buffers now. Also a fence for the compiler. */
static inline __attribute__((always_inline, unused)) void gpumem_store_fence(void) {
#if defined(__x86_64__)
    __asm__ volatile("sfence" ::: "memory");
#elif defined(__aarch64__)
    __asm__ volatile("dmb oshst" ::: "memory");
#else
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}

#ifdef __cplusplus
}
#endif

#endif
