#include "softgpu/address/object.h"

#include "softgpu/address/pagetable.h"

/* Read without the lock; an object ends when no running work can use it. */
static _Atomic(const struct sg_phys *) objects[SG_OBJECT_LIMIT];
static atomic_uint live;

bool sg_object_begin(struct sg_phys *phys) {
    unsigned number = 0;
    while (number < SG_OBJECT_LIMIT && atomic_load(&objects[number]))
        number++;
    if (number == SG_OBJECT_LIMIT)
        return false;
    phys->object = number;
    atomic_store_explicit(&objects[number], phys, memory_order_release);
    atomic_fetch_add(&live, 1);
    return true;
}

void sg_object_end(const struct sg_phys *phys) {
    atomic_store_explicit(&objects[phys->object], NULL, memory_order_release);
    atomic_fetch_sub(&live, 1);
}

void sg_object_map(const struct sg_phys *phys, CUdeviceptr address, size_t size) {
    sg_table_map_object(address, size, phys->object);
}

static const struct sg_phys *object_at(CUdeviceptr address, size_t *page, sg_rights *rights) {
    unsigned number;
    if (atomic_load_explicit(&live, memory_order_relaxed) == 0 ||
        !sg_table_object(address, &number, page, rights))
        return NULL;
    return atomic_load_explicit(&objects[number], memory_order_acquire);
}

unsigned char *sg_object_bytes(int device, CUdeviceptr address, size_t want, size_t *span) {
    size_t page, inner = address & (SG_PAGE - 1);
    sg_rights rights, need = sg_rights_of(device, SG_WRITE);
    const struct sg_phys *phys = object_at(address, &page, &rights);
    if (!phys || (rights & need) != need)
        return NULL;
    unsigned char *bytes = phys->ops->bytes(phys, page);
    if (!bytes)
        return NULL;
    *span = want < SG_PAGE - inner ? want : SG_PAGE - inner;
    return bytes + inner;
}

void sg_object_spread(CUdeviceptr address, const unsigned char *bytes, size_t size) {
    size_t page;
    sg_rights rights;
    const struct sg_phys *phys = object_at(address, &page, &rights);
    if (phys)
        phys->ops->spread(phys, page, address & (SG_PAGE - 1), bytes, size);
}
