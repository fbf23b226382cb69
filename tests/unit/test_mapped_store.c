/* The public stores, in place and by the call: the bytes arrive, and nothing beside them. */
#include <gpumem/mapped_store.h>

#include "test.h"

#define ROOM    9000
#define OUTSIDE 0xa5

static _Alignas(64) unsigned char from[ROOM], to[ROOM];

static void fill(void) {
    for (size_t i = 0; i < ROOM; i++)
        from[i] = (unsigned char)(i * 31 + (i >> 8) + 1);
    memset(to, OUTSIDE, sizeof to);
}

static void holds(size_t start, size_t source, size_t bytes) {
    for (size_t i = 0; i < ROOM; i++) {
        bool inside = i >= start && i < start + bytes;
        unsigned char wanted = inside ? from[source + i - start] : OUTSIDE;
        if (to[i] != wanted)
            fail_msg("%zu bytes from %zu to %zu: byte %zu", bytes, source, start, i);
    }
}

#define IN_PLACE(bytes)                                                                            \
    for (size_t shift = 0; shift < 64; shift++) {                                                  \
        fill();                                                                                    \
        gpumem_store(to + 64 + shift, from + 5 * shift % 64, bytes);                               \
        gpumem_store_fence();                                                                      \
        holds(64 + shift, 5 * shift % 64, bytes);                                                  \
    }

TEST(stores_of_constant_sizes_write_only_their_bytes){
    IN_PLACE(1) IN_PLACE(3) IN_PLACE(8) IN_PLACE(12) IN_PLACE(16) IN_PLACE(24) IN_PLACE(31)
        IN_PLACE(32) IN_PLACE(48) IN_PLACE(63) IN_PLACE(64) IN_PLACE(65) IN_PLACE(4096)}

TEST(stores_of_any_size_write_only_their_bytes) {
    for (size_t bytes = 0; bytes < 200; bytes++) {
        fill();
        gpumem_store(to + 64 + bytes % 61, from + bytes % 59, bytes);
        holds(64 + bytes % 61, bytes % 59, bytes);
        fill();
        gpumem_store_bytes(to + 64 + bytes % 59, from + bytes % 61, bytes);
        gpumem_store_fence();
        holds(64 + bytes % 59, bytes % 61, bytes);
    }
    fill();
    gpumem_store_bytes(to + 77, from + 3, 8192);
    gpumem_store_fence();
    holds(77, 3, 8192);
    gpumem_store_bytes(NULL, NULL, 0);
}
