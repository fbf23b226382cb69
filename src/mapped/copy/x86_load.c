/*
 * Streaming loads read a line of write-combined memory once, whereas each plain load is a transfer
 * of its own. All loads of a line come before its stores, so that the line's buffer is not given up
 * in between.
 */
#if defined(__x86_64__)
#include "mapped/copy/edge.h"
#include "mapped/copy/kernel.h"

#include <immintrin.h>

#define LINE 64

/* The intrinsics of older compilers take pointers to non-const data. */
#define AT(type, address) ((type *)(uintptr_t)(address))

__attribute__((target("sse4.1"))) void gm_load_sse41(unsigned char *dst, const unsigned char *src,
                                                     size_t bytes) {
    size_t done = gm_load_head(dst, src, bytes, sizeof(__m128i));
    for (; bytes - done >= LINE; done += LINE) {
        __m128i *from = AT(__m128i, src + done), *to = AT(__m128i, dst + done);
        __m128i a = _mm_stream_load_si128(from), b = _mm_stream_load_si128(from + 1),
                c = _mm_stream_load_si128(from + 2), d = _mm_stream_load_si128(from + 3);
        _mm_storeu_si128(to, a);
        _mm_storeu_si128(to + 1, b);
        _mm_storeu_si128(to + 2, c);
        _mm_storeu_si128(to + 3, d);
    }
    for (; bytes - done >= sizeof(__m128i); done += sizeof(__m128i))
        _mm_storeu_si128(AT(__m128i, dst + done), _mm_stream_load_si128(AT(__m128i, src + done)));
    gm_load_tail(dst + done, src + done, bytes - done, sizeof(__m128i));
}

__attribute__((target("avx2"))) void gm_load_avx2(unsigned char *dst, const unsigned char *src,
                                                  size_t bytes) {
    size_t done = gm_load_head(dst, src, bytes, sizeof(__m256i));
    for (; bytes - done >= LINE; done += LINE) {
        __m256i *from = AT(__m256i, src + done), *to = AT(__m256i, dst + done);
        __m256i a = _mm256_stream_load_si256(from), b = _mm256_stream_load_si256(from + 1);
        _mm256_storeu_si256(to, a);
        _mm256_storeu_si256(to + 1, b);
    }
    if (bytes - done >= sizeof(__m256i)) {
        _mm256_storeu_si256(AT(__m256i, dst + done),
                            _mm256_stream_load_si256(AT(__m256i, src + done)));
        done += sizeof(__m256i);
    }
    gm_load_tail(dst + done, src + done, bytes - done, sizeof(__m256i));
}

__attribute__((target("avx512f"))) void gm_load_avx512(unsigned char *dst, const unsigned char *src,
                                                       size_t bytes) {
    size_t done = gm_load_head(dst, src, bytes, LINE);
    for (; bytes - done >= LINE; done += LINE)
        _mm512_storeu_si512(dst + done, _mm512_stream_load_si512(AT(__m512i, src + done)));
    gm_load_tail(dst + done, src + done, bytes - done, LINE);
}
#else
typedef int gm_no_x86_load;
#endif
