/* Values to try, by class: edge cases of the type first, then values derived from a counter. */
#include "ptx.h"
#include "sizes.h"

#include <stdlib.h>
#include <string.h>

static const uint64_t i16[] = {0,      1,      2,      3,      7,      8,      15,     16,
                               31,     32,     0x7f,   0x80,   0xff,   0x100,  0x7ffe, 0x7fff,
                               0x8000, 0x8001, 0xaaaa, 0x5555, 0xff80, 0xff7f, 0xfffe, 0xffff};
static const uint64_t i32[] = {
    0,          1,          2,          3,          7,          31,         32,         0x7f,
    0x80,       0xff,       0x100,      0x7fff,     0x8000,     0xffff,     0x10000,    0x7ffffffe,
    0x7fffffff, 0x80000000, 0x80000001, 0xaaaaaaaa, 0x55555555, 0xffffff80, 0xfffffffe, 0xffffffff};
static const uint64_t i64[] = {0,
                               1,
                               2,
                               3,
                               7,
                               63,
                               0x7f,
                               0x80,
                               0xffff,
                               0x7fffffff,
                               0x80000000,
                               0xffffffff,
                               0x100000000,
                               0x20000000000001,
                               0x7fffffffffffff80,
                               0x7ffffffffffffffe,
                               0x7fffffffffffffff,
                               0x8000000000000000,
                               0x8000000000000001,
                               0xaaaaaaaaaaaaaaaa,
                               0x5555555555555555,
                               0xffffffff80000000,
                               0xfffffffffffffffe,
                               0xffffffffffffffff};
static const uint64_t sh[] = {0,       1,          2,          3,          7,         8,   15,
                              16,      31,         32,         33,         47,        63,  64,
                              65,      100,        127,        128,        255,       256, 0x101,
                              0x10020, 0x7fffffff, 0x80000000, 0x80000001, 0xffffffff};
/* Zeros, denormals, the smallest normal with its neighbours and a value that rounds up to it, ones
 * with their neighbours, bounds of integers, the largest, infinities, quiet and signalling NaNs. */
static const uint64_t f32[] = {
    0,          0x80000000, 1,          0x80000001, 0x007fffff, 0x807fffff, 0x00800000,
    0x80800000, 0x00800001, 0x3f800000, 0xbf800000, 0x3f7fffff, 0x3f800001, 0x3f000000,
    0xc0490fdb, 0x4b800001, 0x4f000000, 0xcf000000, 0x5f000000, 0x47ffe000, 0x7f7fffff,
    0xff7fffff, 0x7f800000, 0xff800000, 0x7fc00000, 0x7fc12345, 0xff812345, 0x34000000};
static const uint64_t f64[] = {0,
                               0x8000000000000000,
                               1,
                               0x8000000000000001,
                               0x000fffffffffffff,
                               0x0010000000000000,
                               0x8010000000000001,
                               0x3ff0000000000000,
                               0xbff0000000000000,
                               0x3fefffffffffffff,
                               0x3ff0000000000001,
                               0x3fe0000000000000,
                               0xc00921fb54442d18,
                               0x4340000000000001,
                               0x41e0000000000000,
                               0xc3e0000000000000,
                               0x36a0000000000000,
                               0x380fffffe0000000,
                               0x47efffffefffffff,
                               0x7fefffffffffffff,
                               0xffefffffffffffff,
                               0x7ff0000000000000,
                               0xfff0000000000000,
                               0x7ff8000000000000,
                               0x7ff8123456789abc,
                               0xfff0123456789abc,
                               0x3ca0000000000000};
static const uint64_t f16[] = {0,      0x8000, 1,      0x8001, 0x03ff, 0x83ff, 0x0400,
                               0x8400, 0x0401, 0x3c00, 0xbc00, 0x3bff, 0x3c01, 0x3800,
                               0xc248, 0x6401, 0x77ff, 0x7800, 0x7bff, 0xfbff, 0x7c00,
                               0xfc00, 0x7e00, 0x7e55, 0xfd23, 0x1400};
static const uint64_t bf16[] = {0,      0x8000, 1,      0x8001, 0x007f, 0x807f, 0x0080,
                                0x8080, 0x0081, 0x3f80, 0xbf80, 0x3f7f, 0x3f81, 0x3f00,
                                0xc049, 0x4300, 0x4f00, 0xcf00, 0x7f7f, 0xff7f, 0x7f80,
                                0xff80, 0x7fc0, 0x7fd5, 0xff93, 0x3c00};
static const uint64_t lane[] = {0, 1, 2, 3, 5, 8, 15, 16, 17, 30, 31, 32, 33, 63, 0xffffffff};
static const uint64_t sel[] = {0x3210, 0x0123, 0x7654, 0x4567, 0xfedc, 0x89ab,     0x8888,
                               0x5410, 0,      1,      2,      3,      0xffffffff, 0x13579bdf};
static const uint64_t truth[] = {0, 1};

static const struct class {
    const char *name;
    unsigned bits;
    const uint64_t *edges; /* NULL: values derived from the counter only */
    unsigned count;
    char kind; /* how a counter's value becomes one of this class */
} classes[] = {
    {"i16", 16, i16, COUNT(i16), 'i'},
    {"i32", 32, i32, COUNT(i32), 'i'},
    {"i64", 64, i64, COUNT(i64), 'i'},
    {"i16x2", 32, i16, COUNT(i16), '2'},
    {"sh", 32, sh, COUNT(sh), 's'},
    {"p", 1, truth, COUNT(truth), 'p'},
    {"f32", 32, f32, COUNT(f32), 'f'},
    {"f64", 64, f64, COUNT(f64), 'd'},
    {"f16", 16, f16, COUNT(f16), 'i'},
    {"bf16", 16, bf16, COUNT(bf16), 'i'},
    {"f16x2", 32, f16, COUNT(f16), '2'},
    {"bf16x2", 32, bf16, COUNT(bf16), '2'},
    {"lane", 32, lane, COUNT(lane), 'l'},
    {"sel", 32, sel, COUNT(sel), 'i'},
    {"few16", 16, i16, 3, 'w'},
    {"few32", 32, i32, 3, 'w'},
    {"few64", 64, i64, 3, 'w'},
    {"e4m3x2", 16, NULL, 0, 'i'},
    {"e5m2x2", 16, NULL, 0, 'i'},
    {"r32", 32, NULL, 0, 'i'},
    {"me8", 32, NULL, 0, 'e'},
    {"mf16x2", 32, NULL, 0, 'h'},
    {"mbf16x2", 32, NULL, 0, 'b'},
    {"mf32", 32, NULL, 0, 'm'},
    {"mf64", 64, NULL, 0, 'M'},
};

/* splitmix64's last step. */
uint64_t ptx_mix(uint64_t x) {
    x += 0x9e3779b97f4a7c15;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
    x = (x ^ x >> 27) * 0x94d049bb133111eb;
    return x ^ x >> 31;
}

static const struct class *class_of(const char *ins, unsigned n) {
    for (; n > 0; n--)
        ins = strchr(ins, ' ') + 1;
    size_t length = strcspn(ins, " ");
    for (size_t i = 0; i < COUNT(classes); i++)
        if (strlen(classes[i].name) == length && memcmp(classes[i].name, ins, length) == 0)
            return &classes[i];
    fprintf(stderr, "ptx: there is no class of values '%.*s'\n", (int)length, ins);
    exit(2);
}

unsigned ptx_operands(const char *ins) {
    unsigned count = *ins != '\0';
    for (; *ins != '\0'; ins++)
        count += *ins == ' ';
    return count;
}

unsigned ptx_operand_bits(const char *ins, unsigned n) {
    return class_of(ins, n)->bits;
}

static uint64_t moderate(uint64_t r, unsigned exponent_bits, unsigned mantissa_bits) {
    uint64_t sign = r & 1, exponent = ((uint64_t)1 << (exponent_bits - 1)) - 5 + (r >> 1) % 8;
    uint64_t mantissa = (r >> 8) & (((uint64_t)1 << mantissa_bits) - 1);
    return sign << (exponent_bits + mantissa_bits) | exponent << mantissa_bits | mantissa;
}

/* The value of the class that is derived from the random number r. */
static uint64_t made(const struct class *class, uint64_t r) {
    uint64_t mask = class->bits == 64 ? UINT64_MAX : ((uint64_t)1 << class->bits) - 1;
    switch (class->kind) {
    case 'p':
        return r & 1;
    case 's':
        return r % 80;
    case 'l':
        return r % 32;
    case 'w':
        return class->edges[r % class->count];
    case 'f':
        return r & 1 ? moderate(r >> 1, 8, 23) : r >> 1 & mask;
    case 'd':
        return r & 1 ? moderate(r >> 1, 11, 52) : ptx_mix(r);
    case 'h':
        return moderate(r, 5, 10) << 16 | moderate(r >> 32, 5, 10);
    case 'b':
        return moderate(r, 8, 7) << 16 | moderate(r >> 32, 8, 7);
    case 'm':
        return moderate(r, 8, 23);
    case 'M':
        return moderate(ptx_mix(r), 11, 52);
    case 'e': /* neither NaN nor infinity in either 8-bit format */
        return r & 0xbbbbbbbb;
    default:
        return r & mask;
    }
}

/* The nth edge; a pair of halves has two, the upper one chosen by r. */
static uint64_t edge(const struct class *class, uint64_t n, uint64_t r) {
    uint64_t value = class->edges[n % class->count];
    return class->kind == '2' ? class->edges[r % class->count] << 16 | value : value;
}

/* All edges, or all pairs of them, and a few more values; a sample for three and more operands. */
static unsigned how_many(const struct class *const *of, unsigned operands, uint64_t *pairs) {
    bool halves = false;
    *pairs = 1;
    for (unsigned k = 0; k < operands; k++) {
        halves |= of[k]->kind == '2';
        *pairs = *pairs > PTX_MOST ? *pairs : *pairs * of[k]->count;
    }
    if (operands <= 2 && *pairs > 0 && *pairs < PTX_MOST - 256)
        return (unsigned)*pairs + (operands == 1 ? 256 : 64);
    *pairs = 0;
    if (operands > 6)
        return 128;
    return halves || of[0]->kind == 'f' || of[0]->kind == 'd' || of[0]->bits == 16 ? 640 : 256;
}

unsigned ptx_values(const char *ins, uint64_t *values, unsigned *asked) {
    unsigned operands = ptx_operands(ins);
    const struct class *of[PTX_MOST_INS];
    uint64_t pairs;
    for (unsigned k = 0; k < operands; k++)
        of[k] = class_of(ins, k);
    unsigned count = how_many(of, operands, &pairs);
    *asked = count;
    unsigned threads = (count + PTX_BLOCK - 1) / PTX_BLOCK * PTX_BLOCK;
    for (unsigned i = 0; i < threads; i++) {
        uint64_t place = i;
        for (unsigned k = 0; k < operands; k++) {
            uint64_t r = ptx_mix(ptx_mix(i) + k);
            uint64_t *value = &values[(size_t)k * PTX_MOST + i];
            if (i < pairs) {
                *value = edge(of[k], place, r);
                place /= of[k]->count;
            } else if (of[k]->count && r >> 60 < (pairs ? 2u : 13u)) {
                *value = edge(of[k], r, r >> 20);
            } else {
                *value = made(of[k], ptx_mix(r));
            }
        }
    }
    return threads;
}

uint64_t ptx_values_hash(void) {
    static uint64_t values[3 * PTX_MOST];
    uint64_t hash = 0;
    for (size_t i = 0; i < COUNT(classes); i++)
        for (unsigned operands = 1; operands <= 3; operands++) {
            const char *name = classes[i].name;
            char ins[64];
            unsigned asked;
            snprintf(ins, sizeof ins, "%s%s%s%s%s", name, operands > 1 ? " " : "",
                     operands > 1 ? name : "", operands > 2 ? " " : "", operands > 2 ? name : "");
            ptx_values(ins, values, &asked);
            for (unsigned k = 0; k < operands; k++)
                for (unsigned n = 0; n < asked; n++)
                    hash = ptx_mix(hash ^ values[(size_t)k * PTX_MOST + n]);
        }
    return hash;
}
