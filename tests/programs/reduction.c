/* Sums, minima and maxima: by a tree in shared memory, by shuffles, in the last block. */
#include "base/program.h"

#define BLOCKS  64u
#define THREADS 256u

static void words(const uint32_t *values, unsigned count, CUdeviceptr device) {
    uint32_t sum = 0, least = UINT32_MAX, most = 0, total = 0, partial[BLOCKS], got[2] = {~0u, 0};
    for (unsigned i = 0; i < count; i++) {
        sum += values[i];
        least = values[i] < least ? values[i] : least;
        most = values[i] > most ? values[i] : most;
    }
    CUdeviceptr sums = device_new(sizeof partial), low = device_copy(got, sizeof got),
                high = low + 4;
    LAUNCH("tree", SHAPE(BLOCKS, THREADS), &device, &count, &sums);
    device_read(partial, sums, sizeof partial);
    for (unsigned i = 0; i < BLOCKS; i++)
        total += partial[i];
    expect_equal("sum by a tree", &total, &sum, sizeof sum);
    LAUNCH("extremes", SHAPE(BLOCKS, THREADS), &device, &count, &low, &high);
    device_read(got, low, sizeof got);
    uint32_t want[2] = {least, most};
    expect_equal("least and greatest", got, want, sizeof want);
    checksum("partial sums", partial, sizeof partial);
}

static void floats(const float *values, unsigned count) {
    double want = 0, host = 0;
    float partial[BLOCKS], total;
    for (unsigned i = 0; i < count; i++)
        want += (double)values[i];
    CUdeviceptr device = device_copy(values, count * sizeof *values);
    CUdeviceptr sums = device_new(sizeof partial), arrived = device_new(4), sum = device_new(4);
    LAUNCH("shuffles", SHAPE(BLOCKS, THREADS), &device, &count, &sums);
    device_read(partial, sums, sizeof partial);
    for (unsigned i = 0; i < BLOCKS; i++)
        host += (double)partial[i];
    expect_near_double("sum by shuffles", &host, &want, 1, 1e-6);
    checksum("sums by shuffles", partial, sizeof partial);
    LAUNCH("last_block", SHAPE(BLOCKS, THREADS), &device, &count, &sums, &arrived, &sum);
    device_read(&total, sum, sizeof total);
    expect_near("sum by the last block", &total, &want, 1, 1e-6);
    checksum("sum by the last block", &total, sizeof total);
}

PROGRAM("reduction") {
    unsigned count = program_scale(8) * 1000003u;
    uint32_t *values = host_new(count * sizeof *values);
    float *numbers = host_new(count * sizeof *numbers);
    for (unsigned i = 0; i < count; i++) {
        values[i] = random_bits();
        numbers[i] = random_float();
    }
    words(values, count, device_copy(values, count * sizeof *values));
    floats(numbers, count);
}
