/* A hash table that many threads fill at once, and look-ups in it. */
#include "base/program.h"

#define THREADS 128u
#define KEYS    4096u

PROGRAM("hash_table") {
    static uint32_t sums[2 * KEYS], asked[2 * KEYS], want[2 * KEYS], got[2 * KEYS];
    unsigned count = 50021 * program_scale(20), size = 8192, mask = size - 1, asks = 2 * KEYS;
    unsigned different = 0, used = 0;
    uint32_t *keys = host_new(count * sizeof *keys), *values = host_new(count * sizeof *values);
    uint32_t *empty = host_new(size * 8);
    for (unsigned i = 0; i < size; i++)
        empty[2 * i] = UINT32_MAX;
    memset(want, 0xff, sizeof want);
    for (unsigned i = 0; i < count; i++) {
        unsigned key = random_bits() % KEYS;
        keys[i] = key * 2654435761u;
        values[i] = random_bits() % 1000;
        sums[key] += values[i];
        want[key] = sums[key];
    }
    for (unsigned i = 0; i < asks; i++) {
        asked[i] = i * 2654435761u; /* half of these keys are absent */
        different += want[i] != UINT32_MAX;
    }
    CUdeviceptr slots = device_copy(empty, size * 8), in = device_copy(keys, count * 4);
    CUdeviceptr add = device_copy(values, count * 4), ask = device_copy(asked, sizeof asked);
    CUdeviceptr out = device_new(sizeof got), total = device_new(4);
    LAUNCH("insert", SHAPE((count + THREADS - 1) / THREADS, THREADS), &slots, &mask, &in, &add,
           &count);
    LAUNCH("find", SHAPE((asks + THREADS - 1) / THREADS, THREADS), &slots, &mask, &ask, &out,
           &asks);
    LAUNCH("count_used", SHAPE(4, THREADS), &slots, &size, &total);
    device_read(got, out, sizeof got);
    device_read(&used, total, sizeof used);
    expect_equal("answers", got, want, sizeof got);
    expect(used == different, "%u keys in %u slots", used, size);
    checksum("answers", got, sizeof got);
}
