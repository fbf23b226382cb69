/*
 * The ends of a copy, which do not fit the wide instructions of its middle. The mapped side gets
 * one naturally aligned access for each power of two, upwards until it is aligned for the middle,
 * and downwards after it; the other side may have any alignment.
 *
 * The accesses are volatile so that they remain single ones: device memory mapped on some machines
 * does not accept unaligned words, and compilers turn such code into calls of memcpy.
 */
#ifndef GM_MAPPED_COPY_EDGE_H
#define GM_MAPPED_COPY_EDGE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef uint16_t __attribute__((may_alias)) gm_edge_16;
typedef uint32_t __attribute__((may_alias)) gm_edge_32;
typedef uint64_t __attribute__((may_alias)) gm_edge_64;

static inline void gm_store_64(unsigned char *dst, const unsigned char *src) {
    gm_edge_64 word;
    memcpy(&word, src, sizeof word);
    *(volatile gm_edge_64 *)(void *)dst = word;
}

static inline void gm_load_64(unsigned char *dst, const unsigned char *src) {
    gm_edge_64 word = *(const volatile gm_edge_64 *)(const void *)src;
    memcpy(dst, &word, sizeof word);
}

/* `size` is a power of two, and `dst` aligned to it. */
static inline void gm_store_piece(unsigned char *dst, const unsigned char *src, size_t size) {
    if (size == 1) {
        *(volatile unsigned char *)dst = *src;
    } else if (size == 2) {
        gm_edge_16 word;
        memcpy(&word, src, sizeof word);
        *(volatile gm_edge_16 *)(void *)dst = word;
    } else if (size == 4) {
        gm_edge_32 word;
        memcpy(&word, src, sizeof word);
        *(volatile gm_edge_32 *)(void *)dst = word;
    } else {
        for (size_t i = 0; i < size; i += 8)
            gm_store_64(dst + i, src + i);
    }
}

/* `size` is a power of two, and `src` aligned to it. */
static inline void gm_load_piece(unsigned char *dst, const unsigned char *src, size_t size) {
    if (size == 1) {
        *dst = *(const volatile unsigned char *)src;
    } else if (size == 2) {
        gm_edge_16 word = *(const volatile gm_edge_16 *)(const void *)src;
        memcpy(dst, &word, sizeof word);
    } else if (size == 4) {
        gm_edge_32 word = *(const volatile gm_edge_32 *)(const void *)src;
        memcpy(dst, &word, sizeof word);
    } else {
        for (size_t i = 0; i < size; i += 8)
            gm_load_64(dst + i, src + i);
    }
}

/* Stores until `dst` is aligned to `align`, a power of two, or fewer bytes are left than the next
 * piece has: those are left to the tail. Returns how many bytes it has stored. */
static inline size_t gm_store_head(unsigned char *dst, const unsigned char *src, size_t bytes,
                                   size_t align) {
    size_t done = 0;
    for (size_t piece = 1; piece < align && bytes - done >= piece; piece *= 2) {
        if (((uintptr_t)(dst + done) & piece) == 0)
            continue;
        gm_store_piece(dst + done, src + done, piece);
        done += piece;
    }
    return done;
}

static inline size_t gm_load_head(unsigned char *dst, const unsigned char *src, size_t bytes,
                                  size_t align) {
    size_t done = 0;
    for (size_t piece = 1; piece < align && bytes - done >= piece; piece *= 2) {
        if (((uintptr_t)(src + done) & piece) == 0)
            continue;
        gm_load_piece(dst + done, src + done, piece);
        done += piece;
    }
    return done;
}

/* Fewer than `align` bytes, continuing where the head and the middle ended. */
static inline void gm_store_tail(unsigned char *dst, const unsigned char *src, size_t bytes,
                                 size_t align) {
    for (size_t piece = align / 2; piece > 0; piece /= 2) {
        if ((bytes & piece) == 0)
            continue;
        gm_store_piece(dst, src, piece);
        dst += piece;
        src += piece;
    }
}

static inline void gm_load_tail(unsigned char *dst, const unsigned char *src, size_t bytes,
                                size_t align) {
    for (size_t piece = align / 2; piece > 0; piece /= 2) {
        if ((bytes & piece) == 0)
            continue;
        gm_load_piece(dst, src, piece);
        dst += piece;
        src += piece;
    }
}

#endif
