/* The Game of Life, in bytes and in bits: the same cells after many steps. */
#include "base/program.h"

#define WORDS  5u
#define WIDTH  (32 * WORDS)
#define HEIGHT 93u

static void step(unsigned char (*in)[WIDTH], unsigned char (*out)[WIDTH]) {
    for (unsigned y = 0; y < HEIGHT; y++)
        for (unsigned x = 0; x < WIDTH; x++) {
            unsigned around = 0;
            for (unsigned i = 0; i < 9; i++)
                if (i != 4)
                    around +=
                        in[(y + HEIGHT + i / 3 - 1) % HEIGHT][(x + WIDTH + i % 3 - 1) % WIDTH];
            out[y][x] = around == 3 || (around == 2 && in[y][x]);
        }
}

PROGRAM("life") {
    static unsigned char host[2][HEIGHT][WIDTH], got[HEIGHT][WIDTH];
    static uint32_t packed[HEIGHT][WORDS], got_packed[HEIGHT][WORDS];
    unsigned width = WIDTH, height = HEIGHT, words = WORDS, alive = 0;
    unsigned steps = 50 * program_scale(50);
    for (unsigned i = 0; i < WIDTH * HEIGHT; i++) {
        host[0][i / WIDTH][i % WIDTH] = random_bits() % 3 == 0;
        packed[i / WIDTH][i % WIDTH / 32] |= (uint32_t)host[0][i / WIDTH][i % WIDTH] << (i % 32);
    }
    CUdeviceptr bytes[2] = {device_copy(host[0], sizeof got), device_new(sizeof got)};
    CUdeviceptr bits[2] = {device_copy(packed, sizeof packed), device_new(sizeof packed)};
    for (unsigned i = 0; i < steps; i++) {
        LAUNCH("by_bytes", SHAPE(WIDTH / 16, 16, (HEIGHT + 15) / 16, 16), &bytes[i % 2],
               &bytes[1 - i % 2], &width, &height);
        LAUNCH("by_bits", SHAPE((WORDS * HEIGHT + 63) / 64, 64), &bits[i % 2], &bits[1 - i % 2],
               &words, &height);
        step(host[i % 2], host[1 - i % 2]);
    }
    device_read(got, bytes[steps % 2], sizeof got);
    device_read(got_packed, bits[steps % 2], sizeof got_packed);
    for (unsigned i = 0; i < WIDTH * HEIGHT; i++) {
        unsigned cell = host[steps % 2][i / WIDTH][i % WIDTH];
        alive += cell;
        packed[i / WIDTH][i % WIDTH / 32] &= ~(1u << (i % 32));
        packed[i / WIDTH][i % WIDTH / 32] |= cell << (i % 32);
    }
    expect_equal("by bytes", got, host[steps % 2], sizeof got);
    expect_equal("by bits", got_packed, packed, sizeof packed);
    expect(alive > 0, "%u cells live after %u steps", alive, steps);
    checksum("cells", got, sizeof got);
}
