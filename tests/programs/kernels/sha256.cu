// SHA-256 of many messages at once, a thread each: rotations, logic of three operands, constants.
#include "device.cuh"

CONSTANT u32 table[64];

INLINE u32 turn(u32 value, u32 by) {
    return __builtin_rotateright32(value, by);
}

KERNEL hash(const u32 *messages, u32 blocks_each, u32 *digests) {
    u32 state[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                    0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    const u32 *message = messages + index() * blocks_each * 16;
    for (u32 b = 0; b < blocks_each; b++) {
        u32 w[64], s[8];
        for (u32 i = 0; i < 16; i++)
            w[i] = __builtin_bswap32(message[b * 16 + i]);
        for (u32 i = 16; i < 64; i++) {
            u32 x = w[i - 15], y = w[i - 2];
            w[i] = w[i - 16] + (turn(x, 7) ^ turn(x, 18) ^ x >> 3) + w[i - 7] +
                   (turn(y, 17) ^ turn(y, 19) ^ y >> 10);
        }
        for (u32 i = 0; i < 8; i++)
            s[i] = state[i];
        for (u32 i = 0; i < 64; i++) {
            u32 first = s[7] + (turn(s[4], 6) ^ turn(s[4], 11) ^ turn(s[4], 25)) +
                        ((s[4] & s[5]) ^ (~s[4] & s[6])) + table[i] + w[i];
            u32 second = (turn(s[0], 2) ^ turn(s[0], 13) ^ turn(s[0], 22)) +
                         ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));
            for (u32 j = 7; j > 0; j--)
                s[j] = s[j - 1];
            s[4] += first;
            s[0] = first + second;
        }
        for (u32 i = 0; i < 8; i++)
            state[i] += s[i];
    }
    for (u32 i = 0; i < 8; i++)
        digests[index() * 8 + i] = state[i];
}
