/*
 * Stores to device memory that is mapped for the CPU, for code where a tenth of a microsecond
 * matters: no handle, no check, no driver call, no lock.
 *
 *     gpumem_store(slot, &item, sizeof item);     64 bytes: four stores
 *     gpumem_store_fence();
 *     gpumem_store(flag, &sequence, sizeof sequence);
 *     gpumem_store_fence();
 *
 * The device may see stores to mapped memory in any order, and late: they wait in the CPU's
 * write-combining buffers. A fence between payload and flag orders the two; a fence after the flag
 * sends it out. Neither waits until it has reached the device.
 *
 * The address is the host pointer of a mapping, or any writable memory. The two sides must not
 * overlap: the result would be undefined, as for memcpy. Everything here is thread-safe, can be
 * used in signal handlers, and never blocks.
 */
#ifndef GPUMEM_MAPPED_STORE_H
#define GPUMEM_MAPPED_STORE_H

#include <gpumem/types.h>
#include <stddef.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Stores any number of bytes with the best instructions for this CPU: streaming ones from 65 bytes
 * on. Does not fence. No driver call. */
GPUMEM_API void gpumem_store_bytes(void *to, const void *from, size_t bytes);

/* A compile-time constant size of at most 64 becomes inline stores; any other size calls
 * gpumem_store_bytes. */
static inline __attribute__((always_inline, unused)) void gpumem_store(void *to, const void *from,
                                                                       size_t bytes) {
    if (__builtin_constant_p(bytes) && bytes <= 64)
        memcpy(to, from, bytes);
    else
        gpumem_store_bytes(to, from, bytes);
    /* Keeps the compiler from merging this with a later store to the same place. */
    __asm__ volatile("" ::: "memory");
}

/* The device sees stores before the fence before stores after it, and they leave the CPU's
 * write-combining buffers now. Also a compiler fence. */
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
