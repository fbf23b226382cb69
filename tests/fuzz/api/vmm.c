/* Virtual memory: reservations, handles, mappings, access. */
#include "world.h"

static void keep(struct range *ranges, unsigned *count, CUdeviceptr address, size_t size) {
    if (*count < RANGES)
        ranges[(*count)++] = (struct range){address, size};
}

static void reserve(void) {
    CUdeviceptr made = 0;
    size_t size = draw_size(), alignment = byte() & 1 ? 0 : draw_size();
    CUdeviceptr wish = byte() & 7 ? 0 : draw_any_address();
    cuMemAddressReserve(maybe(&made), size, alignment, wish, byte() < 0xf0 ? 0 : byte());
    if (!made)
        return;
    keep(world.reservations, &world.reservation_count, made, size);
    remember(ADDRESSES, made);
}

static void address_free(void) {
    unsigned pick = byte();
    if (world.reservation_count && pick < 0xc0) {
        const struct range *range = &world.reservations[pick % world.reservation_count];
        cuMemAddressFree(range->address, range->size);
    } else {
        cuMemAddressFree(draw_any_address(), draw_size());
    }
}

static void create(void) {
    CUmemGenericAllocationHandle made = 0;
    CUmemAllocationProp prop = draw_prop();
    cuMemCreate(maybe(&made), draw_size(), maybe(&prop), byte() < 0xf0 ? 0 : byte());
    remember(HANDLES, made);
}

static void release(void) {
    cuMemRelease(HANDLE());
}

static void map_at(CUdeviceptr address, size_t size, size_t offset) {
    /* Whatever the answer: a fault that is injected after the effect leaves a mapping. */
    keep(world.maps, &world.map_count, address, size);
    cuMemMap(address, size, offset, HANDLE(), byte() < 0xf0 ? 0 : byte());
}

static void map(void) {
    size_t offset = byte() < 0xd0 ? 0 : draw_size();
    CUdeviceptr address = draw_any_address();
    map_at(address, draw_size(), offset);
}

/* Most ranges of bytes are none; this way mappings come about. */
static void reserve_and_map(void) {
    CUdeviceptr made = 0;
    CUmemGenericAllocationHandle handle = 0;
    CUmemAllocationProp prop = draw_prop();
    size_t size = (1 + (byte() & 3u)) * 2 * MIB;
    cuMemAddressReserve(&made, 2 * size, 0, 0, 0);
    cuMemCreate(&handle, size, &prop, 0);
    remember(HANDLES, handle);
    if (!made)
        return;
    remember(ADDRESSES, made);
    keep(world.reservations, &world.reservation_count, made, 2 * size);
    keep(world.maps, &world.map_count, made, size);
    cuMemMap(made, size, 0, handle, 0);
    CUmemAccessDesc access = {.location = draw_location(),
                              .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    cuMemSetAccess(made, size, &access, 1);
}

static void unmap(void) {
    unsigned pick = byte();
    if (world.map_count && pick < 0xb0) {
        const struct range *range = &world.maps[pick % world.map_count];
        cuMemUnmap(range->address, range->size);
    } else {
        cuMemUnmap(draw_any_address(), draw_size());
    }
}

static void set_access(void) {
    CUmemAccessDesc access[3];
    for (unsigned i = 0; i < 3; i++)
        access[i] = (CUmemAccessDesc){.location = draw_location(),
                                      .flags = (CUmemAccess_flags)(byte() & 3)};
    unsigned pick = byte();
    size_t count = 1 + pick % 3;
    if (world.map_count && pick < 0xb0) {
        const struct range *range = &world.maps[pick % world.map_count];
        cuMemSetAccess(range->address, range->size, access, count);
    } else {
        cuMemSetAccess(draw_any_address(), draw_size(), maybe(access), byte() % 4);
    }
}

static void get_access(void) {
    unsigned long long flags;
    CUmemLocation location = draw_location();
    cuMemGetAccess(maybe(&flags), maybe(&location), draw_any_address());
}

static void granularity(void) {
    size_t bytes;
    CUmemAllocationProp prop = draw_prop();
    cuMemGetAllocationGranularity(maybe(&bytes), maybe(&prop),
                                  (CUmemAllocationGranularity_flags)(byte() % 3));
}

static void properties(void) {
    CUmemAllocationProp prop;
    cuMemGetAllocationPropertiesFromHandle(maybe(&prop), HANDLE());
}

static void retain(void) {
    CUmemGenericAllocationHandle handle = 0;
    cuMemRetainAllocationHandle(maybe(&handle), (void *)(uintptr_t)draw_any_address());
    remember(HANDLES, handle);
}

static const call_fn list[] = {
    reserve, address_free, create,     release,     map,        reserve_and_map,
    unmap,   set_access,   get_access, granularity, properties, retain,
};
const struct calls vmm_calls = {list, sizeof list / sizeof list[0]};
