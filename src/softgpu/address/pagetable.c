#include "softgpu/address/pagetable.h"

#include "softgpu/address/window.h"

#define MAPPED        ((uint64_t)1)
#define RIGHTS_SHIFT  1
#define RIGHTS_MASK   ((uint64_t)0xffff << RIGHTS_SHIFT)
#define DISTANCE_MASK (~(uint64_t)(SG_PAGE - 1))

_Static_assert(SG_MAX_DEVICES <= 8, "an entry has room for the rights of eight devices");

static _Atomic uint64_t *entry_of(CUdeviceptr address) {
    struct sg_window *window = sg_window_find(address);
    return &window->entries[(address >> SG_PAGE_SHIFT) & (SG_WINDOW_PAGES - 1)];
}

static uint64_t load(CUdeviceptr address) {
    return atomic_load_explicit(entry_of(address), memory_order_relaxed);
}

/* Counted after the change: a thread that sees the count also sees the entries. */
static _Atomic uint64_t changes;

void sg_table_changed(void) {
    atomic_fetch_add_explicit(&changes, 1, memory_order_release);
}

uint64_t sg_table_state(void) {
    return atomic_load_explicit(&changes, memory_order_acquire);
}

/* Release: a thread that sees the entry also sees the bytes written before it. */
static void store(CUdeviceptr address, uint64_t entry) {
    atomic_store_explicit(entry_of(address), entry, memory_order_release);
}

sg_rights sg_rights_of_mask(unsigned devices) {
    sg_rights rights = 0;
    for (int device = 0; device < SG_MAX_DEVICES; device++)
        if (devices & 1u << device)
            rights |= sg_rights_of(device, SG_READ | SG_WRITE);
    return rights;
}

void sg_table_map(CUdeviceptr address, size_t size, const unsigned char *host, sg_rights rights) {
    uint64_t distance = (uint64_t)(uintptr_t)host - (uint64_t)address;
    uint64_t entry = distance | (uint64_t)rights << RIGHTS_SHIFT | MAPPED;
    for (CUdeviceptr at = address; at < address + size; at += SG_PAGE)
        store(at, entry);
    sg_table_changed();
}

#define OBJECT_MARK  ((uint64_t)1 << 20) /* above the rights, below the distance */
#define OBJECT_SHIFT 48

void sg_table_map_object(CUdeviceptr address, size_t size, unsigned object) {
    uint64_t entry = (uint64_t)object << OBJECT_SHIFT | OBJECT_MARK;
    for (size_t page = 0; page < size / SG_PAGE; page++)
        store(address + page * SG_PAGE, entry | page << SG_PAGE_SHIFT);
    sg_table_changed();
}

bool sg_table_object(CUdeviceptr address, unsigned *object, size_t *page, sg_rights *rights) {
    struct sg_window *window = sg_window_find(address);
    size_t index = (address >> SG_PAGE_SHIFT) & (SG_WINDOW_PAGES - 1);
    uint64_t entry =
        window ? atomic_load_explicit(&window->entries[index], memory_order_acquire) : 0;
    if (!(entry & OBJECT_MARK) || (entry & MAPPED))
        return false;
    *object = (unsigned)(entry >> OBJECT_SHIFT);
    *page = (size_t)(entry << (64 - OBJECT_SHIFT) >> (64 - OBJECT_SHIFT + SG_PAGE_SHIFT));
    *rights = (sg_rights)((entry & RIGHTS_MASK) >> RIGHTS_SHIFT);
    return true;
}

void sg_table_unmap(CUdeviceptr address, size_t size) {
    for (CUdeviceptr at = address; at < address + size; at += SG_PAGE)
        store(at, 0);
    sg_table_changed();
}

void sg_table_rights(CUdeviceptr address, size_t size, sg_rights mask, sg_rights rights) {
    uint64_t clear = (uint64_t)mask << RIGHTS_SHIFT, set = (uint64_t)rights << RIGHTS_SHIFT;
    for (CUdeviceptr at = address; at < address + size; at += SG_PAGE)
        store(at, (load(at) & ~clear) | set);
    sg_table_changed();
}

sg_rights sg_table_get(CUdeviceptr address, bool *mapped) {
    uint64_t entry = sg_window_find(address) ? load(address) : 0;
    if (mapped)
        *mapped = (entry & MAPPED) != 0;
    return (sg_rights)((entry & RIGHTS_MASK) >> RIGHTS_SHIFT);
}

void sg_table_move(CUdeviceptr address, size_t size, const unsigned char *host) {
    uint64_t distance = (uint64_t)(uintptr_t)host - (uint64_t)address;
    for (CUdeviceptr at = address; at < address + size; at += SG_PAGE)
        store(at, (load(at) & ~DISTANCE_MASK) | distance);
    sg_table_changed();
}

/* Bytes from `address` to the end of its window. */
static size_t to_window_end(CUdeviceptr address) {
    return (size_t)(SG_WINDOW - (address & (SG_WINDOW - 1)));
}

/* Host addresses translate to themselves, up to where a window may begin. */
static unsigned char *host_bytes(CUdeviceptr address, size_t want, size_t *span) {
    if (address == 0 || address >> SG_ADDRESS_BITS != 0)
        return NULL;
    size_t limit = to_window_end(address);
    *span = want < limit ? want : limit;
    return (unsigned char *)(uintptr_t)address;
}

unsigned char *sg_translate(int device, CUdeviceptr address, size_t want, unsigned rights,
                            size_t *span) {
    struct sg_window *window = sg_window_find(address);
    if (!window)
        return host_bytes(address, want, span);
    uint64_t need = MAPPED | (uint64_t)sg_rights_of(device, rights) << RIGHTS_SHIFT;
    size_t page = (address >> SG_PAGE_SHIFT) & (SG_WINDOW_PAGES - 1);
    uint64_t entry = atomic_load_explicit(&window->entries[page], memory_order_acquire);
    if ((entry & need) != need)
        return NULL;
    size_t length = SG_PAGE - (address & (SG_PAGE - 1));
    while (length < want && ++page < SG_WINDOW_PAGES) {
        uint64_t next = atomic_load_explicit(&window->entries[page], memory_order_acquire);
        if ((next & need) != need || (next & DISTANCE_MASK) != (entry & DISTANCE_MASK))
            break;
        length += SG_PAGE;
    }
    *span = length < want ? length : want;
    return (unsigned char *)(uintptr_t)(address + (entry & DISTANCE_MASK));
}
