#include "softgpu/address/window.h"

#include "softgpu/address/extent.h"
#include "softgpu/address/memfile.h"
#include "softgpu/core/config.h"

#include <sys/mman.h>

static struct sg_window *_Atomic directory[SG_WINDOW_LIMIT];
static struct sg_extents addresses; /* page number = address / SG_PAGE */
static uint64_t used;               /* bytes taken */

struct sg_window *sg_window_find(CUdeviceptr address) {
    uint64_t index = address >> SG_WINDOW_SHIFT;
    if (index >= SG_WINDOW_LIMIT)
        return NULL;
    return atomic_load_explicit(&directory[index], memory_order_acquire);
}

/* Page tables for consecutive windows; zero pages, so untouched parts cost nothing. */
static bool make_tables(CUdeviceptr start, size_t windows) {
    size_t size = windows * sizeof(struct sg_window);
    struct sg_window *tables = mmap(NULL, size, PROT_READ | PROT_WRITE,
                                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (tables == MAP_FAILED)
        return false;
    if (!sg_extents_add(&addresses, start / SG_PAGE, windows * SG_WINDOW_PAGES)) {
        munmap(tables, size);
        return false;
    }
    for (size_t i = 0; i < windows; i++)
        atomic_store_explicit(&directory[(start >> SG_WINDOW_SHIFT) + i], &tables[i],
                              memory_order_release);
    return true;
}

static size_t round_up(size_t size, size_t to) {
    return (size + to - 1) & ~(to - 1);
}

/* New windows that can hold `size` bytes at `align`. */
static bool add_windows(size_t size, size_t align) {
    size_t total = round_up(size, SG_WINDOW);
    size_t placed = align > SG_WINDOW ? align : SG_WINDOW;
    unsigned char *at = sg_addresses_reserve(total, placed);
    if (!at)
        return false;
    if ((uintptr_t)at + total <= (uint64_t)1 << SG_ADDRESS_BITS &&
        make_tables((CUdeviceptr)(uintptr_t)at, total / SG_WINDOW))
        return true;
    munmap(at, total);
    return false;
}

/* Makes the missing windows around [start, start + size); false if the process already uses any of
 * those addresses. Windows made before a failure are kept: they are only address space. */
static bool add_windows_at(CUdeviceptr start, size_t size) {
    uint64_t first = start >> SG_WINDOW_SHIFT, last = (start + size - 1) >> SG_WINDOW_SHIFT;
    if (first == 0 || last >= SG_WINDOW_LIMIT)
        return false;
    for (uint64_t i = first; i <= last; i++) {
        CUdeviceptr at = (CUdeviceptr)i << SG_WINDOW_SHIFT;
        if (sg_window_find(at))
            continue;
        if (!sg_addresses_reserve_at((uintptr_t)at, SG_WINDOW))
            return false;
        if (!make_tables(at, 1)) {
            munmap((void *)(uintptr_t)at, SG_WINDOW);
            return false;
        }
    }
    return true;
}

static bool take_hint(CUdeviceptr hint, size_t size, size_t align) {
    if (hint == 0 || (hint & (align - 1)) != 0 || hint + size < hint)
        return false;
    if (sg_extents_take_at(&addresses, hint / SG_PAGE, size / SG_PAGE))
        return true;
    return add_windows_at(hint, size) &&
           sg_extents_take_at(&addresses, hint / SG_PAGE, size / SG_PAGE);
}

/* As recorded: a single page reuses the freed run that fits most closely, a larger request only a
 * run of exactly its size. A stale pointer thus remains invalid for longer. */
static bool take_free(uint64_t pages, uint64_t align, uint64_t *page) {
    return pages == 1 ? sg_extents_take(&addresses, pages, align, page)
                      : sg_extents_take_apart(&addresses, pages, align, page);
}

/* Logs why there can be no such range; false if there can be. */
static bool too_many(size_t size) {
    uint64_t limit = sg_config()->address_space; /* 0: limited only by the size of an address */
    if (size > (uint64_t)1 << SG_ADDRESS_BITS)
        sg_log(SG_LOG_WARNING,
               "%zu bytes of device addresses are more than there are: an address has %d bits",
               size, SG_ADDRESS_BITS);
    else if (limit && size > limit - used)
        sg_log(SG_LOG_WARNING,
               "%zu bytes of device addresses do not fit: %llu of %llu are in use "
               "(SOFTGPU_ADDRESS_SPACE)",
               size, (unsigned long long)used, (unsigned long long)limit);
    else
        return false;
    return true;
}

CUresult sg_addresses_take(size_t size, size_t align, CUdeviceptr hint, CUdeviceptr *address) {
    /* In the first case no process can have the address: refused on H200 too. */
    if (hint >> SG_ADDRESS_BITS != 0 || too_many(size))
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (take_hint(hint, size, align)) {
        *address = hint;
        used += size;
        return CUDA_SUCCESS;
    }
    uint64_t page;
    if (!take_free(size / SG_PAGE, align / SG_PAGE, &page) &&
        !(add_windows(size, align) && take_free(size / SG_PAGE, align / SG_PAGE, &page))) {
        sg_log(SG_LOG_WARNING,
               "%zu bytes of device addresses: the system gives no range of that size "
               "(is ulimit -v set?)",
               size);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *address = (CUdeviceptr)page * SG_PAGE;
    used += size;
    return CUDA_SUCCESS;
}

void sg_addresses_give(CUdeviceptr address, size_t size) {
    sg_extents_give(&addresses, address / SG_PAGE, size / SG_PAGE);
    used -= size;
}
