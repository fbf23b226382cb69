/* An estimate of pi from random points, compared with the host's. */
#include "base/program.h"

#include <math.h>

#define KEY0    0x12345678u
#define KEY1    0x9abcdef0u
#define BLOCKS  8u
#define THREADS 128u

static void philox(uint32_t c[4]) {
    uint32_t key[2] = {KEY0, KEY1};
    for (int round = 0; round < 10; round++) {
        uint64_t a = (uint64_t)0xd2511f53u * c[0], b = (uint64_t)0xcd9e8d57u * c[2];
        uint32_t next[4] = {(uint32_t)(b >> 32) ^ c[1] ^ key[0], (uint32_t)b,
                            (uint32_t)(a >> 32) ^ c[3] ^ key[1], (uint32_t)a};
        for (int i = 0; i < 4; i++)
            c[i] = next[i];
        key[0] += 0x9e3779b9u;
        key[1] += 0xbb67ae85u;
    }
}

PROGRAM("monte_carlo") {
    static uint32_t want[BLOCKS * THREADS][4], got[BLOCKS * THREADS][4];
    unsigned draws = 40 * program_scale(50), key0 = KEY0, key1 = KEY1;
    uint64_t inside = 0, counted = 0, points = (uint64_t)BLOCKS * THREADS * draws * 2;
    CUdeviceptr out = device_new(sizeof got), sum = device_new(sizeof inside);
    LAUNCH("numbers", SHAPE(BLOCKS, THREADS), &out, &key0, &key1);
    LAUNCH("circle", SHAPE(BLOCKS, THREADS), &draws, &key0, &key1, &sum);
    device_read(got, out, sizeof got);
    device_read(&counted, sum, sizeof counted);
    for (uint32_t i = 0; i < BLOCKS * THREADS; i++) {
        uint32_t first[4] = {i, 1, 2, 3};
        philox(first);
        for (int j = 0; j < 4; j++)
            want[i][j] = first[j];
        for (uint32_t draw = 0; draw < draws; draw++) {
            uint32_t c[4] = {i, draw, 0, 0};
            philox(c);
            for (int j = 0; j < 4; j += 2) {
                float x = (float)(c[j] >> 8) * 0x1p-24f, y = (float)(c[j + 1] >> 8) * 0x1p-24f;
                inside += fmaf(x, x, y * y) < 1;
            }
        }
    }
    expect_equal("numbers", got, want, sizeof got);
    checksum("numbers", got, sizeof got);
    expect(counted == inside, "%llu of %llu points are inside", (unsigned long long)counted,
           (unsigned long long)points);
    double pi = 4.0 * (double)counted / (double)points;
    expect(fabs(pi - 3.14159) < 0.02, "pi is about %.4f", pi);
}
