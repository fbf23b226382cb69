/* The kernels themselves, for kernels.c. */
#ifndef GM_MAPPED_COPY_KERNEL_H
#define GM_MAPPED_COPY_KERNEL_H

#include <stddef.h>

typedef void (*gm_copy_fn)(unsigned char *dst, const unsigned char *src, size_t bytes);

void gm_store_plain(unsigned char *dst, const unsigned char *src, size_t bytes);
void gm_load_plain(unsigned char *dst, const unsigned char *src, size_t bytes);

#if defined(__x86_64__)
/* Call these only if the CPU has what the name says, and the system saves its registers. */
void gm_store_sse2(unsigned char *dst, const unsigned char *src, size_t bytes);
void gm_store_avx2(unsigned char *dst, const unsigned char *src, size_t bytes);
void gm_store_avx512(unsigned char *dst, const unsigned char *src, size_t bytes);
void gm_store_movdir64b(unsigned char *dst, const unsigned char *src, size_t bytes);
void gm_load_sse41(unsigned char *dst, const unsigned char *src, size_t bytes);
void gm_load_avx2(unsigned char *dst, const unsigned char *src, size_t bytes);
void gm_load_avx512(unsigned char *dst, const unsigned char *src, size_t bytes);
#endif

#endif
