/* Lists the kernels, and finds which of them this CPU has. */
#include "mapped/copy/copy.h"
#include "mapped/copy/kernel.h"

#include <stdatomic.h>
#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#define ON_X86(function) function
#else
#define ON_X86(function) NULL
#endif

#if defined(__x86_64__)
static void by_memcpy(unsigned char *dst, const unsigned char *src, size_t bytes) {
    memcpy(dst, src, bytes);
}
#endif

static const struct kernel {
    const char *name;
    gm_copy_fn store, load;
} kernels[GM_COPY_KERNEL_COUNT] = {
    [GM_COPY_PLAIN] = {"plain", gm_store_plain, gm_load_plain},
    [GM_COPY_MEMCPY] = {"memcpy", ON_X86(by_memcpy), ON_X86(by_memcpy)},
    [GM_COPY_SSE2] = {"sse2", ON_X86(gm_store_sse2), NULL},
    [GM_COPY_SSE41] = {"sse41", NULL, ON_X86(gm_load_sse41)},
    [GM_COPY_AVX2] = {"avx2", ON_X86(gm_store_avx2), ON_X86(gm_load_avx2)},
    [GM_COPY_AVX512] = {"avx512", ON_X86(gm_store_avx512), ON_X86(gm_load_avx512)},
    [GM_COPY_MOVDIR64B] = {"movdir64b", ON_X86(gm_store_movdir64b), NULL},
};

#define BIT(kernel) (1u << (unsigned)(kernel))

#if defined(__x86_64__)
/* Leaf 7: the compilers' builtin does not know this feature. It has no registers to save. */
static bool has_movdir64b(void) {
    unsigned a, b, c, d;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (c & (1u << 28)) != 0;
}

static unsigned look(void) {
    /* These are part of the architecture. */
    unsigned found = BIT(GM_COPY_PLAIN) | BIT(GM_COPY_MEMCPY) | BIT(GM_COPY_SSE2);
    __builtin_cpu_init();
    if (__builtin_cpu_supports("sse4.1"))
        found |= BIT(GM_COPY_SSE41);
    if (__builtin_cpu_supports("avx2"))
        found |= BIT(GM_COPY_AVX2);
    if (__builtin_cpu_supports("avx512f"))
        found |= BIT(GM_COPY_AVX512);
    if (has_movdir64b())
        found |= BIT(GM_COPY_MOVDIR64B);
    return found;
}
#else
static unsigned look(void) {
    return BIT(GM_COPY_PLAIN);
}
#endif

/* The result is the same for every caller, so two threads may compute it at once, and a signal
 * handler too. */
static unsigned present(void) {
    static atomic_uint known;
    unsigned found = atomic_load_explicit(&known, memory_order_relaxed);
    if (found == 0) {
        found = look();
        atomic_store_explicit(&known, found, memory_order_relaxed);
    }
    return found;
}

bool gm_copy_kernel_can(enum gm_copy_kernel kernel, unsigned directions) {
    if ((unsigned)kernel >= GM_COPY_KERNEL_COUNT || !(present() & BIT(kernel)))
        return false;
    return (!(directions & GM_COPY_STORE) || kernels[kernel].store) &&
           (!(directions & GM_COPY_LOAD) || kernels[kernel].load);
}

unsigned gm_copy_kernels(unsigned directions, enum gm_copy_kernel found[GM_COPY_KERNEL_COUNT]) {
    unsigned count = 0;
    for (unsigned i = 0; i < GM_COPY_KERNEL_COUNT; i++) {
        enum gm_copy_kernel kernel = (enum gm_copy_kernel)i;
        bool stores = (directions & GM_COPY_STORE) && gm_copy_kernel_can(kernel, GM_COPY_STORE);
        bool loads = (directions & GM_COPY_LOAD) && gm_copy_kernel_can(kernel, GM_COPY_LOAD);
        if (stores || loads)
            found[count++] = kernel;
    }
    return count;
}

const char *gm_copy_kernel_name(enum gm_copy_kernel kernel) {
    return (unsigned)kernel < GM_COPY_KERNEL_COUNT ? kernels[kernel].name : "unknown";
}

bool gm_copy_kernel_find(const char *name, enum gm_copy_kernel *kernel) {
    for (unsigned i = 0; i < GM_COPY_KERNEL_COUNT; i++)
        if (strcmp(kernels[i].name, name) == 0) {
            *kernel = (enum gm_copy_kernel)i;
            return true;
        }
    return false;
}

void gm_copy_store(enum gm_copy_kernel kernel, void *dst, const void *src, size_t bytes) {
    gm_copy_fn store =
        gm_copy_kernel_can(kernel, GM_COPY_STORE) ? kernels[kernel].store : gm_store_plain;
    if (bytes > 0)
        store(dst, src, bytes);
}

void gm_copy_load(enum gm_copy_kernel kernel, void *dst, const void *src, size_t bytes) {
    gm_copy_fn load =
        gm_copy_kernel_can(kernel, GM_COPY_LOAD) ? kernels[kernel].load : gm_load_plain;
    if (bytes > 0)
        load(dst, src, bytes);
}

void gm_copy_fence(void) {
#if defined(__x86_64__)
    __asm__ volatile("sfence" ::: "memory");
#elif defined(__aarch64__)
    __asm__ volatile("dmb oshst" ::: "memory");
#else
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}

/* Streaming loads of write-combined memory are ordered by mfence, not by lfence alone: a line's
 * buffer may hold data that was read before. */
void gm_copy_fence_load(void) {
#if defined(__x86_64__)
    __asm__ volatile("mfence" ::: "memory");
#elif defined(__aarch64__)
    __asm__ volatile("dmb oshld" ::: "memory");
#else
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}
