#include "exact_float.h"

#define TOP 120 /* the highest bit of a significand that is to be added */

const struct exact_format exact_f16 = {16, 11, 15, 0x7fff}, exact_bf16 = {16, 8, 127, 0x7fff},
                          exact_f32 = {32, 24, 127, 0x7fffffff},
                          exact_f64 = {64, 53, 1023, UINT64_C(0x7ff8000000000000)};

static uint64_t sign_bit(const struct exact_format *format) {
    return UINT64_C(1) << (format->bits - 1);
}

static uint64_t infinity(const struct exact_format *format) {
    unsigned fraction = format->precision - 1;
    return (sign_bit(format) - 1) >> fraction << fraction;
}

bool exact_is_nan(const struct exact_format *format, uint64_t bits) {
    return (bits & (sign_bit(format) - 1)) > infinity(format);
}

struct exact exact_read(const struct exact_format *format, uint64_t bits) {
    unsigned fraction = format->precision - 1;
    uint64_t magnitude = bits & (sign_bit(format) - 1);
    struct exact value = {.negative = (bits & sign_bit(format)) != 0};
    if (magnitude >= infinity(format)) {
        value.kind = magnitude > infinity(format) ? EXACT_NAN : EXACT_INFINITE;
        return value;
    }
    int exponent = (int)(magnitude >> fraction);
    value.significand = magnitude & ((UINT64_C(1) << fraction) - 1);
    if (exponent)
        value.significand |= UINT64_C(1) << fraction;
    value.exponent = (exponent ? exponent : 1) - format->bias - (int)fraction;
    value.kind = value.significand ? EXACT_FINITE : EXACT_ZERO;
    return value;
}

struct exact exact_integer(bool negative, uint64_t magnitude) {
    return (struct exact){.kind = magnitude ? EXACT_FINITE : EXACT_ZERO,
                          .negative = negative && magnitude,
                          .significand = magnitude};
}

static int length_of(exact_wide number) {
    int length = 0;
    for (; number; number >>= 1)
        length++;
    return length;
}

/* So that the highest bit is the one of that number. */
static struct exact with_top(struct exact value, int top) {
    int by = top + 1 - length_of(value.significand);
    if (by > 0) {
        value.significand <<= by;
        value.exponent -= by;
    }
    return value;
}

/* The integer part of significand / 2^by, rounded. */
static exact_wide shifted(struct exact value, int by, enum exact_rounding rounding) {
    exact_wide kept = by >= 128 ? 0 : value.significand >> by;
    exact_wide rest = by >= 128 ? value.significand : value.significand - (kept << by);
    exact_wide half = by >= 1 && by <= 128 ? (exact_wide)1 << (by - 1) : 0;
    bool inexact = rest || value.more, up = false;
    switch (rounding) {
    case EXACT_RN:
        up = half && (rest > half || (rest == half && (value.more || (kept & 1))));
        break;
    case EXACT_RZ:
        break;
    case EXACT_RM:
        up = value.negative && inexact;
        break;
    case EXACT_RP:
        up = !value.negative && inexact;
        break;
    }
    return kept + up;
}

uint64_t exact_round(const struct exact_format *format, struct exact value,
                     enum exact_rounding rounding) {
    uint64_t sign = value.negative ? sign_bit(format) : 0;
    int fraction = (int)format->precision - 1, least = 1 - format->bias;
    if (value.kind == EXACT_NAN)
        return format->nan;
    if (value.kind == EXACT_ZERO)
        return sign;
    if (value.kind == EXACT_INFINITE)
        return sign | infinity(format);
    value = with_top(value, TOP);
    int exponent = value.exponent + length_of(value.significand) - 1;
    int lowest = (exponent < least ? least : exponent) - fraction;
    exact_wide kept = shifted(value, lowest - value.exponent, rounding);
    uint64_t hidden = UINT64_C(1) << fraction;
    uint64_t bits = (uint64_t)kept;
    if (exponent >= least && exponent + format->bias < 1 << (format->bits - format->precision))
        bits = ((uint64_t)(exponent + format->bias) << fraction) + (bits - hidden);
    else if (exponent >= least)
        bits = infinity(format);
    if (bits >= infinity(format)) {
        bool away = rounding == EXACT_RN || (rounding == EXACT_RM && value.negative) ||
                    (rounding == EXACT_RP && !value.negative);
        bits = away ? infinity(format) : infinity(format) - 1;
    }
    return sign | bits;
}

bool exact_is_tiny(const struct exact_format *format, struct exact value,
                   enum exact_rounding rounding) {
    if (value.kind != EXACT_FINITE)
        return false;
    value = with_top(value, TOP);
    int exponent = value.exponent + length_of(value.significand) - 1;
    int lowest = exponent - (int)format->precision + 1;
    bool carries = shifted(value, lowest - value.exponent, rounding) >> format->precision != 0;
    return exponent + carries < 1 - format->bias;
}

uint64_t exact_magnitude(struct exact value, enum exact_rounding rounding, bool *beyond) {
    *beyond = value.kind == EXACT_INFINITE;
    if (value.kind == EXACT_ZERO)
        return 0;
    if (*beyond)
        return UINT64_MAX;
    if (value.exponent < 0)
        value.significand = shifted(value, -value.exponent, rounding);
    else if (length_of(value.significand) + value.exponent <= 64)
        value.significand <<= value.exponent;
    else
        *beyond = true;
    *beyond = *beyond || value.significand > UINT64_MAX;
    return *beyond ? UINT64_MAX : (uint64_t)value.significand;
}

/* ---- operations ------------------------------------------------------------------------------ */

static const struct exact nan_ = {.kind = EXACT_NAN};

struct exact exact_multiply(struct exact a, struct exact b) {
    struct exact result = {.kind = EXACT_FINITE, .negative = a.negative != b.negative};
    if (a.kind == EXACT_NAN || b.kind == EXACT_NAN ||
        (a.kind == EXACT_INFINITE && b.kind == EXACT_ZERO) ||
        (a.kind == EXACT_ZERO && b.kind == EXACT_INFINITE))
        return nan_;
    if (a.kind == EXACT_INFINITE || b.kind == EXACT_INFINITE)
        result.kind = EXACT_INFINITE;
    else if (a.kind == EXACT_ZERO || b.kind == EXACT_ZERO)
        result.kind = EXACT_ZERO;
    result.significand = a.significand * b.significand;
    result.exponent = a.exponent + b.exponent;
    return result;
}

static struct exact add_finite(struct exact a, struct exact b, enum exact_rounding rounding) {
    a = with_top(a, TOP);
    b = with_top(b, TOP);
    if (a.exponent < b.exponent) {
        struct exact other = a;
        a = b;
        b = other;
    }
    int by = a.exponent - b.exponent;
    exact_wide lower = by >= 128 ? 0 : b.significand >> by;
    a.more = by >= 128 || lower << by != b.significand;
    if (a.negative == b.negative) {
        a.significand += lower;
    } else if (a.significand >= lower + a.more) {
        a.significand -= lower + a.more;
    } else { /* of one exponent: nothing is lost */
        a.significand = lower - a.significand;
        a.negative = b.negative;
    }
    if (!a.significand && !a.more)
        return (struct exact){.kind = EXACT_ZERO, .negative = rounding == EXACT_RM};
    return a;
}

struct exact exact_add(struct exact a, struct exact b, enum exact_rounding rounding) {
    if (a.kind == EXACT_NAN || b.kind == EXACT_NAN)
        return nan_;
    if (a.kind == EXACT_INFINITE && b.kind == EXACT_INFINITE)
        return a.negative == b.negative ? a : nan_;
    if (a.kind == EXACT_INFINITE || b.kind == EXACT_INFINITE)
        return a.kind == EXACT_INFINITE ? a : b;
    if (a.kind == EXACT_ZERO && b.kind == EXACT_ZERO) {
        a.negative = a.negative == b.negative ? a.negative : rounding == EXACT_RM;
        return a;
    }
    if (a.kind == EXACT_ZERO || b.kind == EXACT_ZERO)
        return a.kind == EXACT_ZERO ? b : a;
    return add_finite(a, b, rounding);
}

struct exact exact_fma(struct exact a, struct exact b, struct exact c,
                       enum exact_rounding rounding) {
    return exact_add(exact_multiply(a, b), c, rounding);
}

struct exact exact_divide(struct exact a, struct exact b) {
    struct exact result = {.kind = EXACT_FINITE, .negative = a.negative != b.negative};
    if (a.kind == EXACT_NAN || b.kind == EXACT_NAN || (a.kind == b.kind && a.kind != EXACT_FINITE))
        return nan_;
    if (a.kind == EXACT_ZERO || b.kind == EXACT_INFINITE)
        result.kind = EXACT_ZERO;
    else if (a.kind == EXACT_INFINITE || b.kind == EXACT_ZERO)
        result.kind = EXACT_INFINITE;
    if (result.kind != EXACT_FINITE)
        return result;
    a = with_top(a, TOP + 5);
    result.significand = a.significand / b.significand;
    result.more = a.significand % b.significand != 0;
    result.exponent = a.exponent - b.exponent;
    return result;
}

struct exact exact_root(struct exact a) {
    if (a.kind == EXACT_NAN || (a.negative && a.kind != EXACT_ZERO))
        return nan_;
    if (a.kind != EXACT_FINITE)
        return a;
    a = with_top(a, TOP);
    if (a.exponent % 2) {
        a.significand <<= 1;
        a.exponent--;
    }
    exact_wide root = 0;
    for (int bit = TOP / 2 + 1; bit >= 0; bit--) {
        exact_wide more = root | (exact_wide)1 << bit;
        if (more * more <= a.significand)
            root = more;
    }
    a.more = root * root != a.significand;
    a.significand = root;
    a.exponent /= 2;
    return a;
}

/* ---- modifiers ------------------------------------------------------------------------------- */

uint64_t exact_flush(const struct exact_format *format, uint64_t bits) {
    uint64_t sign = bits & sign_bit(format);
    return (bits - sign) >> (format->precision - 1) ? bits : sign;
}

uint64_t exact_saturate(const struct exact_format *format, uint64_t bits) {
    uint64_t one = (uint64_t)format->bias << (format->precision - 1);
    if (exact_is_nan(format, bits) || bits & sign_bit(format))
        return 0;
    return bits > one ? one : bits;
}
