/* Keys with values, sorted by 4 bits in each pass; the sort is stable. */
#include "base/program.h"

#define THREADS 128u
#define DIGITS  16u

struct pair {
    uint32_t key, value;
};

static int compare(const void *left, const void *right) {
    const struct pair *a = left, *b = right;
    if (a->key != b->key)
        return a->key < b->key ? -1 : 1;
    return a->value < b->value ? -1 : a->value > b->value;
}

static void sort(CUdeviceptr keys[2], CUdeviceptr values[2], unsigned count) {
    unsigned blocks = (count + THREADS - 1) / THREADS, all = blocks * DIGITS;
    CUdeviceptr counts = device_new(all * sizeof(uint32_t));
    for (unsigned shift = 0, from = 0; shift < 32; shift += 4, from ^= 1) {
        unsigned to = from ^ 1;
        LAUNCH("count_digits", SHAPE(blocks, THREADS), &keys[from], &count, &shift, &counts);
        LAUNCH("scan_counts", SHAPE(1, 32), &counts, &all);
        LAUNCH("place", SHAPE(blocks, THREADS), &keys[from], &values[from], &count, &shift, &counts,
               &keys[to], &values[to]);
    }
}

PROGRAM("radix_sort") {
    unsigned count = program_scale(10) * 50021u;
    size_t bytes = count * sizeof(uint32_t);
    struct pair *pairs = host_new(count * sizeof *pairs);
    uint32_t *keys = host_new(bytes), *values = host_new(bytes);
    uint32_t *got_keys = host_new(bytes), *got_values = host_new(bytes);
    for (unsigned i = 0; i < count; i++) {
        keys[i] = i % 3 ? random_bits() : random_bits() % 1000; /* some are equal */
        values[i] = i;
        pairs[i] = (struct pair){keys[i], i};
    }
    CUdeviceptr key_buffers[2] = {device_copy(keys, bytes), device_new(bytes)};
    CUdeviceptr value_buffers[2] = {device_copy(values, bytes), device_new(bytes)};
    sort(key_buffers, value_buffers, count);
    qsort(pairs, count, sizeof *pairs, compare);
    for (unsigned i = 0; i < count; i++) {
        keys[i] = pairs[i].key;
        values[i] = pairs[i].value;
    }
    device_read(got_keys, key_buffers[0], bytes);
    device_read(got_values, value_buffers[0], bytes);
    expect_equal("keys", got_keys, keys, bytes);
    expect_equal("values", got_values, values, bytes);
    checksum("keys", got_keys, bytes);
    checksum("values", got_values, bytes);
}
