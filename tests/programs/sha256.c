/* SHA-256 of many messages: the standard's example, and digests compared with the host's. */
#include "base/program.h"

#define BLOCKS  4u
#define THREADS 64u

static uint32_t table[64];

/* Whether (root * 2^-32)^3 <= prime, in integers: root is below 2^35, its cube below 2^105. */
static bool cube_is_below(uint64_t root, uint64_t prime) {
    uint64_t high = root >> 18, low = root & 0x3ffff; /* of 17 and 18 bits */
    uint64_t square_high = high * high, square_middle = 2 * high * low, square_low = low * low;
    /* Digits of 18 bits, from the lowest, which carry. */
    uint64_t digits[4] = {square_low * low, square_middle * low + square_low * high,
                          square_high * low + square_middle * high, square_high * high};
    uint64_t limit[4] = {0, 0, 0, 0}, carry = 0;
    for (unsigned i = 0; i < 3; i++) {
        digits[i] += carry;
        carry = digits[i] >> 18;
        digits[i] &= 0x3ffff;
    }
    digits[3] += carry;
    limit[3] = prime << (96 - 54); /* prime * 2^96 has no bits below 2^54 */
    return digits[3] < limit[3] ||
           (digits[3] == limit[3] && !digits[2] && !digits[1] && !digits[0]);
}

/* The first 32 bits of the fractions of the cube roots of the first 64 primes. */
static void make_table(void) {
    for (unsigned prime = 2, count = 0; count < 64; prime++) {
        bool divides = false;
        for (unsigned i = 2; i * i <= prime; i++)
            divides |= prime % i == 0;
        if (divides)
            continue;
        uint64_t root = 0;
        for (int bit = 34; bit >= 0; bit--)
            if (cube_is_below(root | (uint64_t)1 << bit, prime))
                root |= (uint64_t)1 << bit;
        table[count++] = (uint32_t)root;
    }
}

static uint32_t turn(uint32_t value, unsigned by) {
    return value >> by | value << (32 - by);
}

static void hash(const unsigned char *message, unsigned blocks, uint32_t state[8]) {
    static const uint32_t first[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    memcpy(state, first, sizeof first);
    for (unsigned block = 0; block < blocks; block++, message += 64) {
        uint32_t w[64], s[8];
        for (unsigned i = 0; i < 16; i++)
            w[i] = (uint32_t)message[4 * i] << 24 | (uint32_t)message[4 * i + 1] << 16 |
                   (uint32_t)message[4 * i + 2] << 8 | message[4 * i + 3];
        for (unsigned i = 16; i < 64; i++)
            w[i] = w[i - 16] + (turn(w[i - 15], 7) ^ turn(w[i - 15], 18) ^ w[i - 15] >> 3) +
                   w[i - 7] + (turn(w[i - 2], 17) ^ turn(w[i - 2], 19) ^ w[i - 2] >> 10);
        memcpy(s, state, sizeof s);
        for (unsigned i = 0; i < 64; i++) {
            uint32_t a = s[7] + (turn(s[4], 6) ^ turn(s[4], 11) ^ turn(s[4], 25)) +
                         ((s[4] & s[5]) ^ (~s[4] & s[6])) + table[i] + w[i];
            uint32_t b = (turn(s[0], 2) ^ turn(s[0], 13) ^ turn(s[0], 22)) +
                         ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));
            memmove(s + 1, s, 7 * sizeof *s);
            s[4] += a;
            s[0] = a + b;
        }
        for (unsigned i = 0; i < 8; i++)
            state[i] += s[i];
    }
}

PROGRAM("sha256") {
    static const uint32_t known[8] = {0xba7816bf, 0x8f01cfea, 0x414140de, 0x5dae2223,
                                      0xb00361a3, 0x96177a9c, 0xb410ff61, 0xf20015ad};
    static uint32_t want[BLOCKS * THREADS][8], got[BLOCKS * THREADS][8];
    CUdeviceptr constants;
    size_t size;
    unsigned blocks = 1, count = BLOCKS * THREADS, longer = 3 * program_scale(30);
    unsigned char *text = host_new((size_t)count * longer * 64);
    make_table();
    OK(cu.cuModuleGetGlobal_v2(&constants, &size, program_module, "table"));
    device_write(constants, table, sizeof table);
    memcpy(text, "abc\x80", 4);
    text[63] = 24;
    CUdeviceptr messages = device_copy(text, (size_t)count * longer * 64);
    CUdeviceptr digests = device_new(sizeof got);
    LAUNCH("hash", SHAPE(1, 1), &messages, &blocks, &digests);
    device_read(got, digests, sizeof known);
    expect_equal("digest of abc", got, known, sizeof known);
    for (size_t i = 0; i < (size_t)count * longer * 64; i++)
        text[i] = (unsigned char)random_bits();
    for (unsigned i = 0; i < count; i++)
        hash(text + (size_t)i * longer * 64, longer, want[i]);
    device_write(messages, text, (size_t)count * longer * 64);
    LAUNCH("hash", SHAPE(BLOCKS, THREADS), &messages, &longer, &digests);
    device_read(got, digests, sizeof got);
    expect_equal("digests", got, want, sizeof got);
    checksum("digests", got, sizeof got);
}
