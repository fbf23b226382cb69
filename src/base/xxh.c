/*
 * XXH3 and XXH64, from xxHash's specification (doc/xxhash_spec.md, version 0.2.0). Only add_stripe
 * takes time.
 */
#include "base/xxh.h"

#include <endian.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#define PRIME32_1 0x9e3779b1u
#define PRIME32_2 0x85ebca77u
#define PRIME32_3 0xc2b2ae3du
#define PRIME64_1 0x9e3779b185ebca87u
#define PRIME64_2 0xc2b2ae3d27d4eb4fu
#define PRIME64_3 0x165667b19e3779f9u
#define PRIME64_4 0x85ebca77c2b2ae63u
#define PRIME64_5 0x27d4eb2f165667c5u
#define PRIME_MX1 0x165667919e3779f9u
#define PRIME_MX2 0x9fb21c651e98df25u

#define SECRET 192
#define STRIPE 64
#define STEP   8                          /* bytes of the secret from one stripe to the next */
#define BLOCK  ((SECRET - STRIPE) / STEP) /* stripes before the state is scrambled */
#define LEAST  136                        /* the shortest secret that the specification allows */

/* The secret of the specification. */
static const uint8_t standard[SECRET] = {
    0xb8, 0xfe, 0x6c, 0x39, 0x23, 0xa4, 0x4b, 0xbe, 0x7c, 0x01, 0x81, 0x2c, 0xf7, 0x21, 0xad, 0x1c,
    0xde, 0xd4, 0x6d, 0xe9, 0x83, 0x90, 0x97, 0xdb, 0x72, 0x40, 0xa4, 0xa4, 0xb7, 0xb3, 0x67, 0x1f,
    0xcb, 0x79, 0xe6, 0x4e, 0xcc, 0xc0, 0xe5, 0x78, 0x82, 0x5a, 0xd0, 0x7d, 0xcc, 0xff, 0x72, 0x21,
    0xb8, 0x08, 0x46, 0x74, 0xf7, 0x43, 0x24, 0x8e, 0xe0, 0x35, 0x90, 0xe6, 0x81, 0x3a, 0x26, 0x4c,
    0x3c, 0x28, 0x52, 0xbb, 0x91, 0xc3, 0x00, 0xcb, 0x88, 0xd0, 0x65, 0x8b, 0x1b, 0x53, 0x2e, 0xa3,
    0x71, 0x64, 0x48, 0x97, 0xa2, 0x0d, 0xf9, 0x4e, 0x38, 0x19, 0xef, 0x46, 0xa9, 0xde, 0xac, 0xd8,
    0xa8, 0xfa, 0x76, 0x3f, 0xe3, 0x9c, 0x34, 0x3f, 0xf9, 0xdc, 0xbb, 0xc7, 0xc7, 0x0b, 0x4f, 0x1d,
    0x8a, 0x51, 0xe0, 0x4b, 0xcd, 0xb4, 0x59, 0x31, 0xc8, 0x9f, 0x7e, 0xc9, 0xd9, 0x78, 0x73, 0x64,
    0xea, 0xc5, 0xac, 0x83, 0x34, 0xd3, 0xeb, 0xc3, 0xc5, 0x81, 0xa0, 0xff, 0xfa, 0x13, 0x63, 0xeb,
    0x17, 0x0d, 0xdd, 0x51, 0xb7, 0xf0, 0xda, 0x49, 0xd3, 0x16, 0x55, 0x26, 0x29, 0xd4, 0x68, 0x9e,
    0x2b, 0x16, 0xbe, 0x58, 0x7d, 0x47, 0xa1, 0xfc, 0x8f, 0xf8, 0xb8, 0xd1, 0x7a, 0xd0, 0x31, 0xce,
    0x45, 0xcb, 0x3a, 0x8f, 0x95, 0x16, 0x04, 0x28, 0xaf, 0xd7, 0xfb, 0xca, 0xbb, 0x4b, 0x40, 0x7e,
};

static uint64_t read64(const uint8_t *at) {
    uint64_t value;
    memcpy(&value, at, sizeof value);
    return le64toh(value);
}

static uint32_t read32(const uint8_t *at) {
    uint32_t value;
    memcpy(&value, at, sizeof value);
    return le32toh(value);
}

static void write64(uint8_t *at, uint64_t value) {
    value = htole64(value);
    memcpy(at, &value, sizeof value);
}

static uint64_t rotate(uint64_t value, unsigned bits) {
    return value << bits | value >> (64 - bits);
}

/* The halves of the product of 128 bits, xored. */
static uint64_t fold(uint64_t a, uint64_t b) {
    __extension__ typedef unsigned __int128 wide;
    wide product = (wide)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static uint64_t finish64(uint64_t hash) {
    hash = (hash ^ hash >> 33) * PRIME64_2;
    hash = (hash ^ hash >> 29) * PRIME64_3;
    return hash ^ hash >> 32;
}

static uint64_t finish3(uint64_t hash) {
    hash = (hash ^ hash >> 37) * PRIME_MX1;
    return hash ^ hash >> 32;
}

/* ---- XXH3 of up to 240 bytes ---------------------------------------------------------------- */

static uint64_t short3(const uint8_t *data, size_t size, uint64_t seed) {
    const uint8_t *secret = standard;
    if (size > 8) {
        uint64_t low = read64(data) ^ ((read64(secret + 24) ^ read64(secret + 32)) + seed);
        uint64_t high =
            read64(data + size - 8) ^ ((read64(secret + 40) ^ read64(secret + 48)) - seed);
        return finish3(size + __builtin_bswap64(low) + high + fold(low, high));
    }
    if (size >= 4) {
        seed ^= (uint64_t)__builtin_bswap32((uint32_t)seed) << 32;
        uint64_t both = read32(data + size - 4) + ((uint64_t)read32(data) << 32);
        uint64_t hash = both ^ ((read64(secret + 8) ^ read64(secret + 16)) - seed);
        hash ^= rotate(hash, 49) ^ rotate(hash, 24);
        hash *= PRIME_MX2;
        hash ^= (hash >> 35) + size;
        hash *= PRIME_MX2;
        return hash ^ hash >> 28;
    }
    if (size == 0)
        return finish64(seed ^ read64(secret + 56) ^ read64(secret + 64));
    uint32_t all = (uint32_t)data[0] << 16 | (uint32_t)data[size >> 1] << 24 | data[size - 1] |
                   (uint32_t)size << 8;
    return finish64(all ^ ((read32(secret) ^ read32(secret + 4)) + seed));
}

static uint64_t mix(const uint8_t *data, const uint8_t *secret, uint64_t seed) {
    return fold(read64(data) ^ (read64(secret) + seed),
                read64(data + 8) ^ (read64(secret + 8) - seed));
}

static uint64_t middle3(const uint8_t *data, size_t size, uint64_t seed) {
    uint64_t sum = size * PRIME64_1;
    if (size <= 128) {
        /* From both ends towards the middle. */
        for (size_t i = (size - 1) / 32 + 1; i-- > 0;)
            sum += mix(data + 16 * i, standard + 32 * i, seed) +
                   mix(data + size - 16 * (i + 1), standard + 32 * i + 16, seed);
        return finish3(sum);
    }
    for (size_t i = 0; i < 8; i++)
        sum += mix(data + 16 * i, standard + 16 * i, seed);
    sum = finish3(sum);
    for (size_t i = 8; i < size / 16; i++)
        sum += mix(data + 16 * i, standard + 16 * (i - 8) + 3, seed);
    return finish3(sum + mix(data + size - 16, standard + LEAST - 17, seed));
}

/* ---- XXH3 of more --------------------------------------------------------------------------- */

#ifdef __SSE2__
/* As below, two sums at a time: compilers do not find this product by themselves. */
static void add_stripe(uint64_t sums[8], const uint8_t *data, const uint8_t *secret) {
    for (size_t i = 0; i < 8; i += 2) {
        __m128i plain, key, sum;
        memcpy(&plain, data + 8 * i, sizeof plain);
        memcpy(&key, secret + 8 * i, sizeof key);
        memcpy(&sum, sums + i, sizeof sum);
        key = _mm_xor_si128(key, plain);
        __m128i product = _mm_mul_epu32(key, _mm_shuffle_epi32(key, _MM_SHUFFLE(0, 3, 0, 1)));
        __m128i other = _mm_shuffle_epi32(plain, _MM_SHUFFLE(1, 0, 3, 2));
        sum = _mm_add_epi64(sum, _mm_add_epi64(product, other));
        memcpy(sums + i, &sum, sizeof sum);
    }
}
#else
static void add_stripe(uint64_t sums[8], const uint8_t *data, const uint8_t *secret) {
    for (size_t i = 0; i < 8; i++) {
        uint64_t plain = read64(data + 8 * i), key = plain ^ read64(secret + 8 * i);
        sums[i ^ 1] += plain;
        sums[i] += (key & 0xffffffff) * (key >> 32);
    }
}
#endif

static void scramble(uint64_t sums[8], const uint8_t *secret) {
    for (size_t i = 0; i < 8; i++)
        sums[i] = (sums[i] ^ sums[i] >> 47 ^ read64(secret + 8 * i)) * PRIME32_1;
}

static uint64_t merge(const uint64_t sums[8], const uint8_t *secret, uint64_t start) {
    for (size_t i = 0; i < 8; i += 2)
        start += fold(sums[i] ^ read64(secret + 8 * i), sums[i + 1] ^ read64(secret + 8 * i + 8));
    return finish3(start);
}

static uint64_t long3(const uint8_t *data, size_t size, uint64_t seed) {
    uint64_t sums[8] = {PRIME32_3, PRIME64_1, PRIME64_2, PRIME64_3,
                        PRIME64_4, PRIME32_2, PRIME64_5, PRIME32_1};
    uint8_t secret[SECRET];
    for (size_t i = 0; i < SECRET; i += 16) {
        write64(secret + i, read64(standard + i) + seed);
        write64(secret + i + 8, read64(standard + i + 8) - seed);
    }
    /* The last stripe is added by itself, where the data ends, and may overlap the one before. */
    const uint8_t *last = data + size - STRIPE;
    size_t stripes = (size - 1) / STRIPE;
    for (size_t i = 0; i < stripes; i++) {
        __builtin_prefetch(data + STRIPE * i + 512);
        add_stripe(sums, data + STRIPE * i, secret + STEP * (i % BLOCK));
        if (i % BLOCK == BLOCK - 1)
            scramble(sums, secret + SECRET - STRIPE);
    }
    add_stripe(sums, last, secret + SECRET - STRIPE - 7);
    return merge(sums, secret + 11, size * PRIME64_1);
}

uint64_t gm_xxh3(const void *data, size_t size, uint64_t seed) {
    if (size <= 16)
        return short3(data, size, seed);
    return size <= 240 ? middle3(data, size, seed) : long3(data, size, seed);
}

/* ---- XXH64 ---------------------------------------------------------------------------------- */

static uint64_t round64(uint64_t sum, uint64_t value) {
    return rotate(sum + value * PRIME64_2, 31) * PRIME64_1;
}

static uint64_t large64(const uint8_t **at, size_t size) {
    uint64_t sums[4] = {PRIME64_1 + PRIME64_2, PRIME64_2, 0, 0 - PRIME64_1};
    for (size_t stripes = size / 32; stripes > 0; stripes--, *at += 32)
        for (size_t i = 0; i < 4; i++)
            sums[i] = round64(sums[i], read64(*at + 8 * i));
    uint64_t hash =
        rotate(sums[0], 1) + rotate(sums[1], 7) + rotate(sums[2], 12) + rotate(sums[3], 18);
    for (size_t i = 0; i < 4; i++)
        hash = (hash ^ round64(0, sums[i])) * PRIME64_1 + PRIME64_4;
    return hash;
}

uint64_t gm_xxh64(const void *data, size_t size) {
    const uint8_t *at = data, *end = at + size;
    uint64_t hash = (size >= 32 ? large64(&at, size) : PRIME64_5) + size;
    for (; end - at >= 8; at += 8)
        hash = rotate(hash ^ round64(0, read64(at)), 27) * PRIME64_1 + PRIME64_4;
    if (end - at >= 4) {
        hash = rotate(hash ^ read32(at) * PRIME64_1, 23) * PRIME64_2 + PRIME64_3;
        at += 4;
    }
    for (; at < end; at++)
        hash = rotate(hash ^ *at * PRIME64_5, 11) * PRIME64_1;
    return finish64(hash);
}
