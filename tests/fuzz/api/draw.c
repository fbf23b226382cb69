#include "world.h"

struct world world;

void remember(enum kind kind, uint64_t value) {
    if (value && world.counts[kind] < REMEMBER)
        world.values[kind][world.counts[kind]++] = value;
}

uint64_t draw_value(enum kind kind) {
    unsigned pick = byte();
    if (pick >= 0xf0) {
        static const uint64_t odd[] = {0, 1, 2, 3, UINT64_MAX, 0x100, 1ull << 48};
        if (pick - 0xf0 < sizeof odd / sizeof odd[0])
            return odd[pick - 0xf0];
        return draw64(&world.input);
    }
    if (pick >= 0xe0)
        kind = (enum kind)((target.kinds <= 16 ? pick - 0xe0 : byte()) % target.kinds);
    unsigned count = world.counts[kind];
    if (count == 0)
        return 0;
    /* Mostly of the newest ones; streams of the next to oldest mean the default stream too. */
    unsigned back = (pick & 15) % (count < 16 ? count : 16);
    if (kind == STREAMS && (pick & 0x70) == 0x70)
        return pick & 3;
    return world.values[kind][count - 1 - back];
}

CUdevice draw_device(void) {
    unsigned pick = byte();
    return pick < 0xf0 ? (CUdevice)(pick % DEVICES) : (CUdevice)pick - 0xf4;
}

size_t draw_size(void) {
    static const size_t sizes[] = {2 * MIB,
                                   2 * MIB,
                                   4 * MIB,
                                   6 * MIB,
                                   1,
                                   100,
                                   512,
                                   4096,
                                   65536,
                                   2 * MIB - 1,
                                   2 * MIB + 1,
                                   0,
                                   (size_t)1 << 47,
                                   (size_t)1 << 62,
                                   SIZE_MAX,
                                   32 * MIB};
    unsigned pick = byte();
    if (pick < 0xc0)
        return sizes[pick % (sizeof sizes / sizeof sizes[0])];
    return draw32(&world.input) & 0x3fffff;
}

unsigned draw_flags(void) {
    unsigned pick = byte();
    if (pick < 0x80)
        return pick & 7;
    return pick < 0xf0 ? 0 : draw32(&world.input);
}

CUmemLocation draw_location(void) {
    unsigned pick = byte();
    CUmemLocation location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = (int)(pick & 1)};
    if (pick >= 0x90)
        location.type = (CUmemLocationType)(pick & 7);
    if (pick >= 0xf0)
        location.id = (int)draw32(&world.input);
    return location;
}

CUmemAllocationProp draw_prop(void) {
    unsigned pick = byte();
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = draw_location()};
    if (pick & 1)
        prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    if (pick >= 0xf0) {
        prop.type = (CUmemAllocationType)byte();
        prop.requestedHandleTypes = (CUmemAllocationHandleType)byte();
        prop.allocFlags.compressionType = byte();
        prop.allocFlags.usage = byte();
    }
    return prop;
}

static bool in_arena(CUdeviceptr address) {
    return address - (uintptr_t)arena < ARENA;
}

CUdeviceptr draw_any_address(void) {
    static const size_t steps[] = {0, 0, 0, 0, 1, 256, 4096, 65536, 2 * MIB, 4 * MIB};
    unsigned pick = byte();
    CUdeviceptr address = draw_value(ADDRESSES);
    size_t step = steps[pick % (sizeof steps / sizeof steps[0])];
    return pick >= 0xf0 ? address - step - 1 : address + step;
}

/* Whatever is neither the driver's nor the arena's would be read or written as the program's own.
 */
CUdeviceptr draw_address(size_t *room) {
    *room = SIZE_MAX;
    unsigned pick = byte();
    unsigned count = world.counts[ADDRESSES];
    if (pick == 0xff)
        return 0;
    if (pick >= 0xc0 || count == 0)
        return (CUdeviceptr)(uintptr_t)draw_host(room);
    static const size_t steps[] = {0, 0, 0, 4, 256, 1, 65536, 2 * MIB};
    unsigned back = (pick & 15) % (count < 16 ? count : 16);
    CUdeviceptr address = world.values[ADDRESSES][count - 1 - back];
    size_t step = steps[pick >> 4 & 7];
    /* Allocations of the driver lie in its windows, of which it answers for every byte; a step may
     * leave the last one, and the arena's end. */
    if (in_arena(address)) {
        *room = ARENA - (size_t)(address - (uintptr_t)arena);
        step = step < *room ? step : 0;
        *room -= step;
    }
    return address + step;
}

void *draw_host(size_t *room) {
    size_t offset = (size_t)(byte() & 0x3f) * 4096 + (byte() & 3u);
    *room = ARENA - offset;
    return arena + offset;
}

size_t draw_length(size_t room, size_t other) {
    size_t size = draw_size();
    if (other < room)
        room = other;
    return size <= room ? size : room == SIZE_MAX ? size : size % (room + 1);
}

uint64_t draw_pattern(void) {
    return draw64(&world.input) & 0x7f7f7f7f7f7f7f7full;
}

/*
 * At a gate everything is released by the value that its keeper writes. Anywhere else no byte is
 * ever above 0x7f, so that these two conditions hold at once.
 */
struct wait draw_wait(unsigned width) {
    unsigned pick = byte();
    uint64_t open = GATE_BITS + (pick & (FLAGS - 1));
    if (pick >= 0xa0) {
        size_t room;
        CUdeviceptr address = draw_address(&room);
        if (pick < 0xf0)
            address &= ~(CUdeviceptr)(width - 1);
        bool nor = (pick & 1) != 0;
        return (struct wait){address, 0, nor ? CU_STREAM_WAIT_VALUE_NOR : CU_STREAM_WAIT_VALUE_GEQ};
    }
    struct wait wait = {(CUdeviceptr)(uintptr_t)&gates[pick & (FLAGS - 1)], open, 0};
    switch (pick >> 5) {
    case 0:
    case 1:
        wait.flags = CU_STREAM_WAIT_VALUE_EQ;
        break;
    case 2:
        wait.flags = CU_STREAM_WAIT_VALUE_GEQ;
        break;
    case 3:
        wait.flags = CU_STREAM_WAIT_VALUE_AND;
        wait.value = GATE_BITS;
        break;
    default:
        wait.flags = byte() | 4u; /* no such condition, or one that is not supported */
        break;
    }
    return wait;
}

void *maybe(void *out) {
    return byte() < 0xf8 ? out : NULL;
}

size_t draw_little(size_t most) {
    return byte() % most;
}
