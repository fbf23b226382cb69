/*
 * Arithmetic on floating-point formats by integers alone: what IEEE 754 says of each rounding, to
 * compare the engine with. Knows nothing of the host's floating point.
 */
#ifndef TESTS_UNIT_SOFTGPU_EXACT_FLOAT_H
#define TESTS_UNIT_SOFTGPU_EXACT_FLOAT_H

#include <stdbool.h>
#include <stdint.h>

struct exact_format {
    unsigned bits;      /* of all */
    unsigned precision; /* of the significand, with the bit that is not stored */
    int bias;
    uint64_t nan; /* the one that results are */
};

extern const struct exact_format exact_f16, exact_bf16, exact_f32, exact_f64;

enum exact_rounding { EXACT_RN, EXACT_RZ, EXACT_RM, EXACT_RP };

enum exact_kind { EXACT_ZERO, EXACT_FINITE, EXACT_INFINITE, EXACT_NAN };

__extension__ typedef unsigned __int128 exact_wide;

/* (significand + part) * 2^exponent, 0 <= part < 1: 0 unless `more`. */
struct exact {
    enum exact_kind kind;
    bool negative, more;
    exact_wide significand;
    int exponent;
};

struct exact exact_read(const struct exact_format *format, uint64_t bits);
struct exact exact_integer(bool negative, uint64_t magnitude);
uint64_t exact_round(const struct exact_format *format, struct exact value,
                     enum exact_rounding rounding);
/* It would be below the smallest normal number, had the exponent no end: rounded to all bits. */
bool exact_is_tiny(const struct exact_format *format, struct exact value,
                   enum exact_rounding rounding);
/* To an integer, which is rounded to nearest even where that is asked for; at most 2^64 in
 * magnitude, beyond that UINT64_MAX. Not of NaN. */
uint64_t exact_magnitude(struct exact value, enum exact_rounding rounding, bool *beyond);

/* The sign of a zero depends on the rounding. */
struct exact exact_fma(struct exact a, struct exact b, struct exact c,
                       enum exact_rounding rounding);
struct exact exact_add(struct exact a, struct exact b, enum exact_rounding rounding);
struct exact exact_multiply(struct exact a, struct exact b);
struct exact exact_divide(struct exact a, struct exact b);
struct exact exact_root(struct exact a);

bool exact_is_nan(const struct exact_format *format, uint64_t bits);
/* A zero of the same sign for a subnormal number. */
uint64_t exact_flush(const struct exact_format *format, uint64_t bits);
/* Between 0 and 1; NaN is 0. */
uint64_t exact_saturate(const struct exact_format *format, uint64_t bits);

#endif
