/*
 * Floats of 8 bits against a table of all their values, searched for the nearest; .satfinite;
 * comparisons of two halves at once; cvt.pack.
 */
#include "kernel.h"

#include <math.h>

#define VALUES 128

static uint64_t seed = 0x9e3779b97f4a7c15u;

static uint64_t some(void) {
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed;
}

static uint32_t bits_of(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static float float_of(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* e4m3: bias 7, no infinities; e5m2: bias 15. By their definition, for codes without a sign. */
static double value_of(unsigned code, bool five) {
    unsigned exponent = five ? code >> 2 : code >> 3, fraction = five ? code & 3 : code & 7;
    double part = (double)fraction / (five ? 4 : 8);
    int bias = five ? 15 : 7;
    if (five ? exponent == 31 : code == 0x7f)
        return five && fraction == 0 ? INFINITY : NAN;
    return exponent == 0 ? part * exp2(1 - bias) : (1 + part) * exp2((double)exponent - bias);
}

/* The nearest finite one; of two as near the one with an even code. */
static unsigned nearest(double value, bool five, bool relu) {
    unsigned best = 0, sign = signbit(value) ? 0x80 : 0;
    if (isnan(value))
        return 0x7f;
    if (relu && sign)
        return 0;
    double most = five ? 57344 : 448;
    value = fabs(value) > most ? copysign(most, value) : value;
    for (unsigned code = 1; code < 0x7f; code++) {
        double that = value_of(code, five);
        if (!isfinite(that))
            break;
        double far = fabs(fabs(value) - that), before = fabs(fabs(value) - value_of(best, five));
        if (far < before || (far == before && code % 2 == 0))
            best = code;
    }
    return sign | best;
}

/* f16, by its definition */
static double half_value(unsigned bits) {
    unsigned exponent = bits >> 10 & 31, fraction = bits & 1023;
    double size = exponent == 31  ? (fraction ? NAN : INFINITY)
                  : exponent == 0 ? fraction * 0x1p-24
                                  : (1 + fraction / 1024.0) * exp2((double)exponent - 15);
    return bits & 0x8000 ? -size : size;
}

static float some_float(void) {
    static const float edges[] = {0.0f,     -0.0f,      448.0f,   464.0f,   465.0f,      480.0f,
                                  1e30f,    -1e30f,     61440,    57344.0f, 57345.0f,    0x1p-9f,
                                  0x1p-10f, 0x1.8p-10f, 0x1p-16f, 0x1p-17f, -0x1.8p-17f, 1.0625f,
                                  1.1875f,  -1.125f,    1.375f};
    uint64_t random = some();
    if (random % 4 == 0)
        return edges[(random >> 8) % (sizeof edges / sizeof edges[0])];
    if (random % 16 == 1)
        return float_of((uint32_t)(random >> 20));
    double size = exp2((double)(random >> 16 & 31) - 18) * (1 + (double)(random >> 40) * 0x1p-24);
    return (float)(random & 256 ? -size : size);
}

TEST(fp8_conversions_round_to_the_nearest_value) {
    for (unsigned k = 0; k < 8; k++) {
        bool five = k & 1, relu = k & 2;
        struct row rows[VALUES];
        char body[300];
        snprintf(body, sizeof body,
                 "{ .reg .f32 f, g; mov.b32 f, %%x; mov.b32 g, %%y; cvt.rn.satfinite%s.%s.f32 %%v, "
                 "f, g; cvt.u64.u16 %%d, %%v; }",
                 relu ? ".relu" : "", five ? "e5m2x2" : "e4m3x2");
        for (size_t i = 0; i < VALUES; i++) {
            float a = i == 0 ? INFINITY : i == 1 ? NAN : some_float(), b = some_float();
            rows[i] = (struct row){bits_of(a), bits_of(b), 0,
                                   nearest(a, five, relu) << 8 | nearest(b, five, relu)};
        }
        ROWS_HOLD(body, rows);
        snprintf(body, sizeof body, "cvt.rn.satfinite%s.%s.f16x2 %%v, %%x; cvt.u64.u16 %%d, %%v;",
                 relu ? ".relu" : "", five ? "e5m2x2" : "e4m3x2");
        for (size_t i = 0; i < VALUES; i++) {
            uint32_t both = (uint32_t)some();
            rows[i] = (struct row){both, 0, 0,
                                   nearest(half_value(both >> 16), five, relu) << 8 |
                                       nearest(half_value(both & 0xffff), five, relu)};
        }
        ROWS_HOLD(body, rows);
    }
}

TEST(fp8_values_convert_to_halves_exactly) {
    for (unsigned five = 0; five < 2; five++) {
        static struct row rows[256];
        char body[200];
        snprintf(body, sizeof body, "cvt.rn.f16x2.%s %%w, %%s; cvt.u64.u32 %%d, %%w;",
                 five ? "e5m2x2" : "e4m3x2");
        for (unsigned code = 0; code < 256; code++) {
            unsigned half = 0;
            double value = value_of(code & 0x7f, five);
            for (unsigned h = 0; h < 0x7c01; h++) /* found, not computed */
                if (half_value(h) == value)
                    half = h;
            half = isnan(value) ? 0x7fff : half | (code & 0x80) << 8;
            rows[code] = (struct row){code << 8 | 0x38, 0, 0,
                                      (uint64_t)half << 16 | (five ? 0x3800 : 0x3c00)};
        }
        ROWS_HOLD(body, rows);
    }
    HOLDS("cvt.rn.relu.f16x2.e4m3x2 %w, %s; cvt.u64.u32 %d, %w;", {0xc038, 0, 0, 0x00003c00},
          {0xff80, 0, 0, 0x7fff0000});
}

TEST(satfinite_conversions_stay_finite) {
    static const struct row half[] = {{0x7f800000, 0, 0, 0x7bff}, {0xff800000, 0, 0, 0xfbff},
                                      {0x477fefff, 0, 0, 0x7bff}, {0x477ff000, 0, 0, 0x7bff},
                                      {0x7fc00000, 0, 0, 0x7fff}, {0x3f801000, 0, 0, 0x3c00}};
    ROWS_HOLD("{ .reg .f32 f; mov.b32 f, %x; cvt.rn.satfinite.f16.f32 %v, f; cvt.u64.u16 %d, %v; }",
              half);
    HOLDS("{ .reg .f32 f, g; mov.b32 f, %x; mov.b32 g, %y; cvt.rz.satfinite.bf16x2.f32 %w, f, "
          "g; cvt.u64.u32 %d, %w; }",
          {0x7f7fffff, 0xff800000, 0, 0x7f7fff7f}, {0x3f80ffff, 0x3f808000, 0, 0x3f803f80});
    HOLDS("{ .reg .f32 f; mov.b32 f, %x; cvt.rna.satfinite.tf32.f32 %w, f; cvt.u64.u32 %d, %w; "
          "}",
          {0x7f7fffff, 0, 0, 0x7f7fe000}, {0xff800000, 0, 0, 0xff7fe000},
          {0x3f801000, 0, 0, 0x3f802000});
}

TEST(cvt_pack_saturates_and_packs_integers) {
    HOLDS("cvt.pack.sat.u8.s32.b32 %w, %x, %y, %z; cvt.u64.u32 %d, %w;",
          {300, 0xffffffff, 0x12345678, 0x5678ff00}, {7, 200, 0xabcd, 0xabcd07c8});
    HOLDS("cvt.pack.sat.s8.s32.b32 %w, %x, %y, %z; cvt.u64.u32 %d, %w;",
          {300, 0xffffff00, 1, 0x17f80});
    HOLDS("cvt.pack.sat.s16.s32 %w, %x, %y; cvt.u64.u32 %d, %w;",
          {70000, 0xffff0000, 0, 0x7fff8000});
    HOLDS("cvt.pack.sat.u4.s32.b32 %w, %x, %y, %z; cvt.u64.u32 %d, %w;",
          {99, 3, 0x00abcdef, 0xabcdeff3});
    HOLDS("cvt.pack.sat.s2.s32.b32 %w, %x, %y, %z; cvt.u64.u32 %d, %w;",
          {0xfffffff0, 5, 0x1, 0x19});
}

/* ---- comparisons ----------------------------------------------------------------------------- */

static bool holds(double a, double b, const char *how) {
    bool nan = isnan(a) || isnan(b);
    if (strcmp(how, "num") == 0 || strcmp(how, "nan") == 0)
        return nan == (how[1] == 'a');
    if (nan)
        return strlen(how) == 3;
    switch (how[0]) {
    case 'e':
        return a == b;
    case 'n':
        return a != b;
    case 'l':
        return how[1] == 't' ? a < b : a <= b;
    default:
        return how[1] == 't' ? a > b : a >= b;
    }
}

TEST(packed_half_comparisons_set_both_predicates) {
    static const char *const all[] = {"eq",  "ne",  "lt",  "le",  "gt",  "ge",  "equ",
                                      "neu", "ltu", "leu", "gtu", "geu", "num", "nan"};
    static const uint32_t edges[] = {0, 0x8000, 1, 0x8001, 0x3c00, 0xbc00, 0x7c00, 0xfc00, 0x7e00};
    for (unsigned c = 0; c < 14; c++)
        for (unsigned ftz = 0; ftz < 2; ftz++) {
            struct row rows[VALUES];
            char body[300];
            snprintf(body, sizeof body,
                     "setp.%s%s.f16x2 %%p|%%q, %%x, %%y; selp.u64 %%d, 1, 0, %%p;\n"
                     "@%%q add.u64 %%d, %%d, 2;",
                     all[c], ftz ? ".ftz" : "");
            for (size_t i = 0; i < VALUES; i++) {
                uint32_t h[4];
                double v[4];
                for (unsigned k = 0; k < 4; k++) {
                    h[k] = edges[some() % 9];
                    v[k] = ftz && (h[k] & 0x7c00) == 0 ? 0.0 : half_value(h[k]);
                }
                rows[i] = (struct row){h[0] | h[1] << 16, h[2] | h[3] << 16, 0,
                                       (uint64_t)holds(v[0], v[2], all[c]) |
                                           (uint64_t)holds(v[1], v[3], all[c]) << 1};
            }
            ROWS_HOLD(body, rows);
        }
    HOLDS("setp.eq.ftz.f16 %p, %s, %t; selp.u64 %d, 1, 0, %p;", {1, 0x8001, 0, 1},
          {0x3c00, 1, 0, 0});
    HOLDS("setp.gt.bf16x2 %p|%q, %x, %y; selp.u64 %d, 2, 0, %q;\n@%p add.u64 %d, %d, 1;\n"
          "xor.b64 %d, %d, 0;",
          {0x3f804000, 0x40003f80, 0, 1}, {0x40003f80, 0x3f804000, 0, 2});
}

TEST(set_returns_true_in_the_destination_type) {
    HOLDS("set.lt.f16.u32 %v, %x, %y; cvt.u64.u16 %d, %v;", {5, 7, 0, 0x3c00}, {7, 5, 0, 0});
    HOLDS("set.lt.bf16.s16 %v, %s, %t; cvt.u64.u16 %d, %v;", {0xffff, 1, 0, 0x3f80});
    HOLDS("set.eq.u16.f16 %v, %s, %t; cvt.u64.u16 %d, %v;", {0x3c00, 0x3c00, 0, 0xffff},
          {0x7e00, 0x3c00, 0, 0});
    HOLDS("set.eq.f16x2.f16x2 %w, %x, %y; cvt.u64.u32 %d, %w;",
          {0x3c004000, 0x3c003c00, 0, 0x3c000000});
    HOLDS("set.gt.u32.f16x2 %w, %x, %y; cvt.u64.u32 %d, %w;",
          {0x3c004000, 0x40003c00, 0, 0x0000ffff});
    HOLDS("setp.ne.u64 %p, %c, 0; set.lt.and.f32.u32 %w, %x, %y, !%p; cvt.u64.u32 %d, %w;",
          {1, 2, 1, 0}, {1, 2, 0, 0x3f800000});
    HOLDS("set.eq.ftz.s32.f32 %w, %x, %y; cvt.u64.u32 %d, %w;", {1, 0, 0, UINT32_MAX});
}
