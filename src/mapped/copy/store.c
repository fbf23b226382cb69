/* gpumem_store_bytes: what the inlined form in gpumem/mapped_store.h does not handle. */
#include "mapped/copy/copy.h"

#include <gpumem/mapped_store.h>
#include <stdatomic.h>

#define LINE 64

/* The result is the same for every caller; a signal handler may call this. */
static enum gm_copy_kernel kernel_for_large(void) {
    static atomic_int known = GM_COPY_KERNEL_COUNT;
    int kernel = atomic_load_explicit(&known, memory_order_relaxed);
    if (kernel == GM_COPY_KERNEL_COUNT) {
        struct gm_copy_plan plan = gm_copy_plan_default();
        kernel = (int)gm_copy_plan_class(&plan, LINE + 1)->store;
        atomic_store_explicit(&known, kernel, memory_order_relaxed);
    }
    return (enum gm_copy_kernel)kernel;
}

/* It has no cancellation point, so cancelling need not be disabled. */
void gpumem_store_bytes(void *to, const void *from, size_t bytes) {
    gm_copy_store(bytes > LINE ? kernel_for_large() : GM_COPY_PLAIN, to, from, bytes);
}
