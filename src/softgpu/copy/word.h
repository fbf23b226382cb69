/*
 * Words that a running kernel may poll or write: a copy or a set of one aligned word of 4 or 8
 * bytes is one access, and what was written before it is seen by whoever reads the word.
 */
#ifndef SG_COPY_WORD_H
#define SG_COPY_WORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uint32_t sg_word32 __attribute__((may_alias));
typedef uint64_t sg_word64 __attribute__((may_alias));

static inline bool sg_is_word(const void *bytes, size_t size) {
    return (size == 4 || size == 8) && (uintptr_t)bytes % size == 0;
}

static inline uint64_t sg_word_load(const void *from, size_t size) {
    return size == 4 ? __atomic_load_n((const sg_word32 *)from, __ATOMIC_ACQUIRE)
                     : __atomic_load_n((const sg_word64 *)from, __ATOMIC_ACQUIRE);
}

static inline void sg_word_store(void *to, size_t size, uint64_t value) {
    if (size == 4)
        __atomic_store_n((sg_word32 *)to, (uint32_t)value, __ATOMIC_RELEASE);
    else
        __atomic_store_n((sg_word64 *)to, value, __ATOMIC_RELEASE);
}

#endif
