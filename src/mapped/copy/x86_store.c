/*
 * Stores that bypass the caches. Each function is compiled for the instructions that it uses,
 * whatever the rest of the library is compiled for. A line is stored completely before the next one
 * is begun, so that its write-combining buffer is sent at once as one transfer.
 */
#if defined(__x86_64__)
#include "mapped/copy/edge.h"
#include "mapped/copy/kernel.h"

#include <immintrin.h>

#define LINE 64

void gm_store_sse2(unsigned char *dst, const unsigned char *src, size_t bytes) {
    size_t done = gm_store_head(dst, src, bytes, sizeof(__m128i));
    for (; bytes - done >= LINE; done += LINE) {
        const __m128i *from = (const __m128i *)(const void *)(src + done);
        __m128i *to = (__m128i *)(void *)(dst + done);
        __m128i a = _mm_loadu_si128(from), b = _mm_loadu_si128(from + 1),
                c = _mm_loadu_si128(from + 2), d = _mm_loadu_si128(from + 3);
        _mm_stream_si128(to, a);
        _mm_stream_si128(to + 1, b);
        _mm_stream_si128(to + 2, c);
        _mm_stream_si128(to + 3, d);
    }
    for (; bytes - done >= sizeof(__m128i); done += sizeof(__m128i))
        _mm_stream_si128((__m128i *)(void *)(dst + done),
                         _mm_loadu_si128((const __m128i *)(const void *)(src + done)));
    gm_store_tail(dst + done, src + done, bytes - done, sizeof(__m128i));
}

__attribute__((target("avx2"))) void gm_store_avx2(unsigned char *dst, const unsigned char *src,
                                                   size_t bytes) {
    size_t done = gm_store_head(dst, src, bytes, sizeof(__m256i));
    for (; bytes - done >= LINE; done += LINE) {
        const __m256i *from = (const __m256i *)(const void *)(src + done);
        __m256i *to = (__m256i *)(void *)(dst + done);
        __m256i a = _mm256_loadu_si256(from), b = _mm256_loadu_si256(from + 1);
        _mm256_stream_si256(to, a);
        _mm256_stream_si256(to + 1, b);
    }
    if (bytes - done >= sizeof(__m256i)) {
        _mm256_stream_si256((__m256i *)(void *)(dst + done),
                            _mm256_loadu_si256((const __m256i *)(const void *)(src + done)));
        done += sizeof(__m256i);
    }
    gm_store_tail(dst + done, src + done, bytes - done, sizeof(__m256i));
}

__attribute__((target("avx512f"))) void gm_store_avx512(unsigned char *dst,
                                                        const unsigned char *src, size_t bytes) {
    size_t done = gm_store_head(dst, src, bytes, LINE);
    for (; bytes - done >= LINE; done += LINE)
        _mm512_stream_si512((__m512i *)(void *)(dst + done),
                            _mm512_loadu_si512((const void *)(src + done)));
    gm_store_tail(dst + done, src + done, bytes - done, LINE);
}

__attribute__((target("movdir64b"))) void
gm_store_movdir64b(unsigned char *dst, const unsigned char *src, size_t bytes) {
    size_t done = gm_store_head(dst, src, bytes, LINE);
    for (; bytes - done >= LINE; done += LINE)
        _movdir64b(dst + done, src + done);
    gm_store_tail(dst + done, src + done, bytes - done, LINE);
}
#else
typedef int gm_no_x86_store;
#endif
