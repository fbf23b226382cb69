/* Pipelines of asynchronous copies to shared memory. */
#include "base/program.h"

#define THREADS 128u
#define TILE    (4 * THREADS)

static void weigh(const uint32_t *in, unsigned count, unsigned blocks, unsigned tiles) {
    size_t bytes = blocks * THREADS * sizeof(uint32_t);
    uint32_t *want = host_new(bytes), *got = host_new(bytes);
    for (unsigned i = 0; i < blocks * THREADS; i++)
        for (unsigned tile = 0; tile < tiles; tile++)
            for (unsigned j = 0; j < 4; j++) {
                unsigned at = (i % THREADS * 4 + j * 37 + 5) % TILE;
                unsigned place = (i / THREADS * tiles + tile) * TILE + at;
                want[i] = want[i] * 33 + ((place < count ? in[place] : 0) ^ (at + tile));
            }
    CUdeviceptr from = device_copy(in, count * sizeof *in), sums = device_new(bytes);
    LAUNCH("weigh", SHAPE(blocks, THREADS), &from, &count, &tiles, &sums);
    device_read(got, sums, bytes);
    expect_equal("weighed", got, want, bytes);
    checksum("weighed", got, bytes);
}

static void gather(const uint32_t *in, unsigned count, unsigned blocks) {
    unsigned width = 203;
    size_t bytes = blocks * width * sizeof(uint32_t);
    uint32_t *rows = host_new(blocks * sizeof *rows), *want = host_new(bytes),
             *got = host_new(bytes);
    for (unsigned i = 0; i < blocks; i++) {
        rows[i] = random_bits() % (count - width);
        for (unsigned j = 0; j < width; j++)
            want[i * width + j] = in[rows[i] + width - 1 - j];
    }
    CUdeviceptr from = device_copy(in, count * sizeof *in), out = device_new(bytes);
    CUdeviceptr where = device_copy(rows, blocks * sizeof *rows);
    LAUNCH("gather", SHAPE(blocks, 64), &from, &where, &width, &out);
    device_read(got, out, bytes);
    expect_equal("gathered", got, want, bytes);
    checksum("gathered", got, bytes);
}

PROGRAM("async_copy") {
    unsigned more = program_scale(20), blocks = 6, tiles = 9 * more;
    unsigned count = blocks * tiles * TILE - 1230; /* the last tile and its last copy are partial */
    uint32_t *in = host_new(count * sizeof *in);
    for (unsigned i = 0; i < count; i++)
        in[i] = random_bits();
    weigh(in, count, blocks, tiles);
    gather(in, count, 40 * more);
}
