#include "matrix_values.h"

#include <fenv.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    unsigned bits;
    int digits, exponents; /* of floats: bits behind the point, bits of the exponent */
} types[M_TYPES] = {
    [M_F16] = {"f16", 16, 10, 5}, [M_BF16] = {"bf16", 16, 7, 8}, [M_TF32] = {"tf32", 32, 23, 8},
    [M_F32] = {"f32", 32, 23, 8}, [M_F64] = {"f64", 64, 52, 11}, [M_E4M3] = {"e4m3", 8, 3, 4},
    [M_E5M2] = {"e5m2", 8, 2, 5}, [M_S8] = {"s8", 8, 0, 0},      [M_U8] = {"u8", 8, 0, 0},
    [M_S4] = {"s4", 4, 0, 0},     [M_U4] = {"u4", 4, 0, 0},      [M_B1] = {"b1", 1, 0, 0},
    [M_S32] = {"s32", 32, 0, 0},
};

const char *matrix_type_name(enum matrix_type type) {
    return types[type].name;
}

unsigned matrix_type_bits(enum matrix_type type) {
    return types[type].bits;
}

bool matrix_type_is_float(enum matrix_type type) {
    return types[type].digits != 0 && type != M_F64;
}

uint32_t matrix_random(uint32_t *seed) {
    *seed = *seed * 1664525u + 1013904223u;
    return *seed ^ *seed >> 15;
}

/* ---- numbers --------------------------------------------------------------------------------- */

uint64_t matrix_encode(enum matrix_type type, double value) {
    int digits = types[type].digits, bias = (1 << (types[type].exponents - 1)) - 1, power;
    uint64_t sign = signbit(value) ? UINT64_C(1) << (types[type].bits - 1) : 0;
    double part = frexp(fabs(value), &power); /* at least 1/2 */
    if (part == 0)
        return sign;
    int exponent = power - 1 + bias;
    if (exponent < 1) /* subnormal */
        return sign | (uint64_t)ldexp(part, power + bias - 1 + digits);
    uint64_t fraction = (uint64_t)ldexp(part * 2 - 1, digits);
    return sign | (uint64_t)exponent << digits | fraction;
}

static int64_t whole(enum matrix_type type, uint64_t bits) {
    unsigned size = types[type].bits;
    bool has_sign = type == M_S8 || type == M_S4 || type == M_S32;
    int64_t value = (int64_t)(bits & ((UINT64_C(1) << size) - 1));
    return has_sign && value >> (size - 1) ? value - ((int64_t)1 << size) : value;
}

double matrix_decode(enum matrix_type type, uint64_t bits) {
    int digits = types[type].digits, bias = (1 << (types[type].exponents - 1)) - 1;
    if (!digits)
        return (double)whole(type, bits);
    bool negative = bits >> (types[type].bits - 1) & 1;
    if (type == M_TF32)
        bits &= ~UINT64_C(0x1fff);
    uint64_t fraction = bits & ((UINT64_C(1) << digits) - 1);
    int raw = (int)(bits >> digits) & ((1 << types[type].exponents) - 1);
    double value = raw ? ldexp(1 + ldexp((double)fraction, -digits), raw - bias)
                       : ldexp((double)fraction, 1 - bias - digits);
    if (type != M_E4M3 && raw == (1 << types[type].exponents) - 1)
        value = fraction ? NAN : INFINITY;
    return negative ? -value : value;
}

/* ---- elements -------------------------------------------------------------------------------- */

/* Between 1/4 and 4, both signs, all bits of the fraction. */
static uint64_t any_float(enum matrix_type type, uint32_t *seed) {
    int digits = types[type].digits, bias = (1 << (types[type].exponents - 1)) - 1;
    uint64_t random = (uint64_t)matrix_random(seed) << 32 | matrix_random(seed);
    uint64_t fraction = random & ((UINT64_C(1) << digits) - 1);
    uint64_t exponent = (uint64_t)bias - 2 + (random >> 54 & 3);
    return (random >> 63) << (types[type].bits - 1) | exponent << digits | fraction;
}

static uint64_t element(enum matrix_type type, bool exact, uint32_t *seed) {
    if (matrix_type_is_float(type) && exact)
        return matrix_encode(type, (double)((int)(matrix_random(seed) >> 8 & 7) - 4));
    if (types[type].digits)
        return any_float(type, seed);
    return matrix_random(seed) & (uint32_t)((UINT64_C(1) << types[type].bits) - 1);
}

void matrix_fill(const struct matrix_product *product, struct matrix_data *data, bool exact,
                 uint32_t *seed) {
    memset(data, 0, sizeof *data);
    for (unsigned k = 0; k < product->k; k++) {
        for (unsigned i = 0; i < product->m; i++)
            data->a[i][k] = element(product->a, exact, seed);
        for (unsigned j = 0; j < product->n; j++)
            data->b[k][j] = element(product->b, exact, seed);
    }
    for (unsigned i = 0; i < product->m; i++)
        for (unsigned j = 0; j < product->n; j++)
            data->c[i][j] = element(product->c, exact, seed);
}

/* ---- products -------------------------------------------------------------------------------- */

static uint64_t of_integers(const struct matrix_product *product, const struct matrix_data *data,
                            unsigned i, unsigned j) {
    int64_t sum = whole(M_S32, data->c[i][j]);
    for (unsigned k = 0; k < product->k; k++) {
        int64_t a = whole(product->a, data->a[i][k]), b = whole(product->b, data->b[k][j]);
        if (product->a != M_B1)
            sum += a * b;
        else
            sum += strcmp(product->popc, "xor") == 0 ? a != b : a && b;
    }
    if (product->saturates)
        sum = sum > INT32_MAX ? INT32_MAX : sum < INT32_MIN ? INT32_MIN : sum;
    return (uint32_t)(uint64_t)sum;
}

static int direction(const char *rounding) {
    return strcmp(rounding, "rz") == 0   ? FE_TOWARDZERO
           : strcmp(rounding, "rm") == 0 ? FE_DOWNWARD
           : strcmp(rounding, "rp") == 0 ? FE_UPWARD
                                         : FE_TONEAREST;
}

static uint64_t of_doubles(const struct matrix_product *product, const struct matrix_data *data,
                           unsigned i, unsigned j) {
    volatile double sum = matrix_decode(M_F64, data->c[i][j]);
    int before = fegetround();
    fesetround(direction(product->rounding));
    for (unsigned k = 0; k < product->k; k++)
        sum = fma(matrix_decode(M_F64, data->a[i][k]), matrix_decode(M_F64, data->b[k][j]), sum);
    fesetround(before);
    double all = sum;
    uint64_t bits;
    memcpy(&bits, &all, sizeof bits);
    return bits;
}

/*
 * The bound: each term loses less than 2^-24 of the largest one when they are aligned, and each of
 * at most three roundings on the way to D loses less than 2^-22 (f32) or 2^-10 (f16) of the sum of
 * the terms' magnitudes.
 */
static bool within(const struct matrix_product *product, const struct matrix_data *data, unsigned i,
                   unsigned j, double *wanted, double *bound) {
    double sum = matrix_decode(product->c, data->c[i][j]), all = fabs(sum), most = all;
    for (unsigned k = 0; k < product->k; k++) {
        double term =
            matrix_decode(product->a, data->a[i][k]) * matrix_decode(product->b, data->b[k][j]);
        sum += term;
        all += fabs(term);
        most = fabs(term) > most ? fabs(term) : most;
    }
    bool half = product->d == M_F16 || product->c == M_F16;
    *wanted = sum;
    *bound = ldexp(most * (product->k + 1), -24) + 3 * ldexp(all, half ? -10 : -22);
    return fabs(matrix_decode(product->d, data->d[i][j]) - sum) <= *bound;
}

static bool one_holds(const struct matrix_product *product, const struct matrix_data *data,
                      bool exact, unsigned i, unsigned j, char *why, size_t size) {
    uint64_t got = data->d[i][j], wanted;
    if (matrix_type_is_float(product->d)) {
        double sum, bound;
        bool near = within(product, data, i, j, &sum, &bound);
        if (!exact) {
            if (!near)
                snprintf(why, size, "element %u, %u is %.9g, not %.9g within %.3g", i, j,
                         matrix_decode(product->d, got), sum, bound);
            return near;
        }
        wanted = matrix_encode(product->d, sum == 0 ? 0 : sum);
    } else {
        wanted = product->d == M_F64 ? of_doubles(product, data, i, j)
                                     : of_integers(product, data, i, j);
    }
    if (got != wanted)
        snprintf(why, size, "element %u, %u is %#" PRIx64 ", not %#" PRIx64, i, j, got, wanted);
    return got == wanted;
}

bool matrix_holds(const struct matrix_product *product, const struct matrix_data *data, bool exact,
                  char *why, size_t size) {
    for (unsigned i = 0; i < product->m; i++)
        for (unsigned j = 0; j < product->n; j++)
            if (!one_holds(product, data, exact, i, j, why, size))
                return false;
    return true;
}
