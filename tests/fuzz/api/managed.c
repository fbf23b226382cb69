/* Managed memory and what is told about it: advice, prefetches, discards, attachment. */
#include "world.h"

static void allocate(void) {
    CUdeviceptr made = 0;
    cuMemAllocManaged(maybe(&made), draw_size(),
                      byte() < 0xf0 ? 1u + (byte() & 1) : draw32(&world.input));
    remember(ADDRESSES, made);
}

static void advise(void) {
    CUmem_advise advice = (CUmem_advise)(byte() & 7);
    if (byte() & 1)
        cuMemAdvise_v2(draw_any_address(), draw_size(), advice, draw_location());
    else
        cuMemAdvise(draw_any_address(), draw_size(), advice, draw_device());
}

static void prefetch(void) {
    if (byte() & 1)
        cuMemPrefetchAsync_v2(draw_any_address(), draw_size(), draw_location(),
                              byte() < 0xf8 ? 0 : 1, STREAM());
    else
        cuMemPrefetchAsync(draw_any_address(), draw_size(), draw_device(), STREAM());
}

static void batches(void) {
    CUdeviceptr addresses[3];
    size_t sizes[3], places[2] = {0, byte() & 3};
    CUmemLocation locations[2] = {draw_location(), draw_location()};
    for (unsigned i = 0; i < 3; i++) {
        addresses[i] = draw_any_address();
        sizes[i] = draw_size();
    }
    size_t count = byte() & 3, location_count = byte() % 3;
    unsigned long long flags = byte() < 0xf8 ? 0 : 1;
    switch (byte() % 3) {
    case 0:
        cuMemPrefetchBatchAsync(maybe(addresses), maybe(sizes), count, maybe(locations),
                                maybe(places), location_count, flags, STREAM());
        break;
    case 1:
        cuMemDiscardBatchAsync(maybe(addresses), maybe(sizes), count, flags, STREAM());
        break;
    default:
        cuMemDiscardAndPrefetchBatchAsync(maybe(addresses), maybe(sizes), count, maybe(locations),
                                          maybe(places), location_count, flags, STREAM());
        break;
    }
}

static void attach(void) {
    static const unsigned flags[] = {1, 2, 4, 4, 4, 0, 3, 8};
    cuStreamAttachMemAsync(STREAM(), draw_any_address(), byte() & 1 ? 0 : draw_size(),
                           flags[byte() & 7]);
}

static void attributes(void) {
    int values[4], more[4];
    void *data[2] = {values, more};
    size_t sizes[2] = {sizeof values - (byte() < 0xf0 ? 0u : byte() & 7u), 4};
    CUmem_range_attribute wanted[2] = {(CUmem_range_attribute)(byte() % 10),
                                       (CUmem_range_attribute)(1 + byte() % 8)};
    if (wanted[0] != CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY && byte() < 0xf0)
        sizes[0] = 4;
    if (byte() & 1)
        cuMemRangeGetAttribute(maybe(values), sizes[0], wanted[0], draw_any_address(), draw_size());
    else
        cuMemRangeGetAttributes(maybe(data), maybe(sizes), maybe(wanted), byte() % 3,
                                draw_any_address(), draw_size());
}

static const call_fn list[] = {
    allocate, allocate, advise, advise, prefetch, batches, attach, attributes,
};
const struct calls managed_calls = {list, sizeof list / sizeof list[0]};
