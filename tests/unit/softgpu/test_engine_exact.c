/*
 * Arithmetic and conversions of each format, rounding, .ftz, .sat and .relu, on each level, against
 * arithmetic by integers (exact_float.h): operands whose exact results lie near the middle of two
 * values, near the ends of the range, and cancel. More of them when GPUMEM_TEST_LONG is 1.
 */
#include "kernel.h"

#include "exact_float.h"

enum { ROWS = 1024 };

static uint64_t state_of_random;
static const char *const rounding_names[] = {"rn", "rz", "rm", "rp"};
static const char *const integer_roundings[] = {"rni", "rzi", "rmi", "rpi"};

static uint64_t draw(void) {
    uint64_t x = state_of_random += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

static unsigned below(unsigned limit) {
    return (unsigned)(draw() >> 33) % limit;
}

static uint64_t low(uint64_t bits, unsigned width) {
    return width == 64 ? bits : bits & ((UINT64_C(1) << width) - 1);
}

static unsigned times(void) {
    const char *text = getenv("GPUMEM_TEST_LONG");
    return text && strcmp(text, "1") == 0 ? 300 : 1;
}

/* ---- operands -------------------------------------------------------------------------------- */

/* Long runs of equal bits, few bits, all bits. */
static uint64_t pattern(unsigned bits) {
    uint64_t all = bits == 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1, first;
    switch (below(5)) {
    case 0:
        first = UINT64_C(1) << below(bits);
        return (first | UINT64_C(1) << below(bits)) & all;
    case 1:
        return ~(UINT64_C(1) << below(bits)) & all;
    case 2:
        return all >> below(bits);
    case 3:
        return (all << below(bits)) & all;
    default:
        return draw() & all;
    }
}

/* Near another one's exponent, or anywhere: so that sums cancel and products round. */
static uint64_t operand(const struct exact_format *format, uint64_t beside) {
    unsigned fraction = format->precision - 1, exponents = format->bits - format->precision;
    uint64_t most = (UINT64_C(1) << exponents) - 1, exponent;
    switch (below(8)) {
    case 0:
        exponent = below(3); /* subnormal */
        break;
    case 1:
        exponent = most - below(4);
        break;
    case 2:
        exponent = draw() & most;
        break;
    case 3:
        return UINT64_C(1) << (format->bits - 1) & draw();
    default:
        exponent =
            (beside >> (fraction & 63)) + below(format->precision * 2 + 6) - format->precision - 3;
        exponent &= most;
    }
    uint64_t bits = exponent << fraction | pattern(fraction);
    return bits | (UINT64_C(1) << (format->bits - 1) & draw());
}

/* f64: which NaN is a matter of recordings. */
static uint64_t usable(const struct exact_format *format, uint64_t bits) {
    return format == &exact_f64 && exact_is_nan(format, bits) ? 0 : bits;
}

static void fill(const struct exact_format *format, struct row *row) {
    uint64_t one = (uint64_t)format->bias << (format->precision - 1);
    row->a = usable(format, operand(format, one));
    row->b = usable(format, operand(format, below(2) ? row->a : one));
    row->c = usable(format, operand(format, below(2) ? row->a : below(2) ? row->b : 0));
    struct exact a = exact_read(format, row->a), product;
    if (below(3) == 0) { /* a product near the ends of the range, or near what it is said to be */
        uint64_t ends[] = {UINT64_C(1) << (format->precision - 1), format->nan, one, draw()};
        struct exact end = exact_read(format, low(ends[below(4)] - below(3), format->bits));
        row->b = usable(format, exact_round(format, exact_divide(end, a), below(2)));
    }
    product = exact_multiply(a, exact_read(format, row->b));
    product.negative = !product.negative;
    if (below(4) == 0) /* what is left of the product */
        row->c = usable(format, exact_round(format, product, below(2)));
}

/* ---- arithmetic ------------------------------------------------------------------------------ */

enum operation { ADD, SUB, MUL, FMA, DIV, RCP, SQRT };
static const struct {
    const char *name, *operands;
} operations[] = {[ADD] = {"add", "f, g"},    [SUB] = {"sub", "f, g"}, [MUL] = {"mul", "f, g"},
                  [FMA] = {"fma", "f, g, h"}, [DIV] = {"div", "f, g"}, [RCP] = {"rcp", "f"},
                  [SQRT] = {"sqrt", "f"}};

struct form {
    enum operation operation;
    const struct exact_format *format;
    const char *type;
    enum exact_rounding rounding;
    bool ftz, sat, relu;
};

static struct exact compute(const struct form *form, struct exact a, struct exact b,
                            struct exact c) {
    switch (form->operation) {
    case SUB:
        b.negative = !b.negative;
        return exact_add(a, b, form->rounding);
    case ADD:
        return exact_add(a, b, form->rounding);
    case MUL:
        return exact_multiply(a, b);
    case FMA:
        return exact_fma(a, b, c, form->rounding);
    case DIV:
        return exact_divide(a, b);
    case RCP:
        return exact_divide(exact_integer(false, 1), a);
    default:
        return exact_root(a);
    }
}

static uint64_t expected(const struct form *form, const struct row *row) {
    const struct exact_format *format = form->format;
    uint64_t in[] = {row->a, row->b, row->c};
    struct exact values[3];
    for (unsigned i = 0; i < 3; i++)
        values[i] = exact_read(format, form->ftz ? exact_flush(format, in[i]) : in[i]);
    struct exact result = compute(form, values[0], values[1], values[2]);
    uint64_t bits = exact_round(format, result, form->rounding);
    /* Also what rounds up to the smallest normal number for lack of bits only, as an H200 does; of
     * rcp nothing was recorded there. */
    if (form->ftz && form->operation != RCP && exact_is_tiny(format, result, form->rounding))
        bits &= UINT64_C(1) << (format->bits - 1);
    if (form->ftz)
        bits = exact_flush(format, bits);
    if (form->sat)
        bits = exact_saturate(format, bits);
    if (form->relu && !exact_is_nan(format, bits) && bits >> (format->bits - 1))
        bits = 0;
    return bits;
}

static const char *moves_in(const struct exact_format *format) {
    return format->bits == 64   ? "mov.b64 f, %a; mov.b64 g, %b; mov.b64 h, %c;"
           : format->bits == 32 ? "mov.b32 f, %x; mov.b32 g, %y; mov.b32 h, %z;"
                                : "mov.b16 f, %s; mov.b16 g, %t; mov.b16 h, %u;";
}

static const char *move_out(const struct exact_format *format) {
    return format->bits == 64   ? "mov.b64 %d, r;"
           : format->bits == 32 ? "mov.b32 %w, r; cvt.u64.u32 %d, %w;"
                                : "mov.b16 %v, r; cvt.u64.u16 %d, %v;";
}

static void holds(const struct form *form) {
    char body[300];
    const struct exact_format *format = form->format;
    snprintf(body, sizeof body, "{ .reg .%s%u f, g, h, r; %s\n%s.%s%s%s%s.%s r, %s; %s }",
             format->bits == 16 ? "b" : "f", format->bits, moves_in(format),
             operations[form->operation].name, rounding_names[form->rounding],
             form->ftz ? ".ftz" : "", form->sat ? ".sat" : "", form->relu ? ".relu" : "",
             form->type, operations[form->operation].operands, move_out(format));
    for (unsigned round = times(); round > 0; round--) {
        struct row rows[ROWS];
        for (unsigned i = 0; i < ROWS; i++) {
            do {
                fill(format, &rows[i]);
                rows[i].d = expected(form, &rows[i]);
            } while (format == &exact_f64 && exact_is_nan(format, rows[i].d));
        }
        rows_hold(body, rows, ROWS);
    }
}

TEST(single_precision_arithmetic_is_exactly_rounded) {
    for (int operation = ADD; operation <= SQRT; operation++)
        for (int rounding = EXACT_RN; rounding <= EXACT_RP; rounding++)
            for (int ftz = 0; ftz < 2; ftz++)
                for (int sat = 0; sat < (operation <= FMA ? 2 : 1); sat++)
                    holds(&(struct form){(enum operation)operation, &exact_f32, "f32",
                                         (enum exact_rounding)rounding, ftz, sat, false});
}

TEST(double_precision_arithmetic_is_exactly_rounded) {
    for (int operation = ADD; operation <= SQRT; operation++)
        for (int rounding = EXACT_RN; rounding <= EXACT_RP; rounding++)
            holds(&(struct form){(enum operation)operation, &exact_f64, "f64",
                                 (enum exact_rounding)rounding, false, false, false});
}

TEST(half_precision_arithmetic_is_exactly_rounded) {
    for (int operation = ADD; operation <= FMA; operation++) {
        for (int ftz = 0; ftz < 2; ftz++)
            for (int sat = 0; sat < 2; sat++)
                holds(&(struct form){(enum operation)operation, &exact_f16, "f16", EXACT_RN, ftz,
                                     sat, false});
        holds(&(struct form){(enum operation)operation, &exact_bf16, "bf16", EXACT_RN, false, false,
                             false});
    }
    for (int ftz = 0; ftz < 2; ftz++)
        holds(&(struct form){FMA, &exact_f16, "f16", EXACT_RN, ftz, false, true});
    holds(&(struct form){FMA, &exact_bf16, "bf16", EXACT_RN, false, false, true});
}

/* ---- conversions ----------------------------------------------------------------------------- */

static const struct {
    const char *name;
    const struct exact_format *format;
} floats[] = {{"f16", &exact_f16}, {"bf16", &exact_bf16}, {"f32", &exact_f32}, {"f64", &exact_f64}};

/* A conversion with operands f of its source and r of its result, both declared here. */
static void converts(const char *instruction, unsigned to_bits, unsigned from_bits, bool to_float,
                     bool from_float, const struct row *rows) {
    char body[300];
    static const char *const in[] = {"mov.b16 f, %s;", "mov.b32 f, %x;", "mov.b64 f, %a;"};
    static const char *const out[] = {"mov.b16 %v, r; cvt.u64.u16 %d, %v;",
                                      "mov.b32 %w, r; cvt.u64.u32 %d, %w;", "mov.b64 %d, r;"};
    snprintf(body, sizeof body, "{ .reg .%s%u f; .reg .%s%u r; %s\n%s r, f; %s }",
             from_float && from_bits > 16 ? "f" : "b", from_bits,
             to_float && to_bits > 16 ? "f" : "b", to_bits, in[from_bits / 32], instruction,
             out[to_bits / 32]);
    rows_hold(body, rows, ROWS);
}

static void from_float_to_float(unsigned from, unsigned to, enum exact_rounding rounding, bool ftz,
                                bool sat) {
    const struct exact_format *in = floats[from].format, *out = floats[to].format;
    bool wider = out->bits > in->bits;
    struct row rows[ROWS];
    char text[60];
    snprintf(text, sizeof text, "cvt%s%s%s%s.%s.%s", wider ? "" : ".",
             wider ? "" : rounding_names[rounding], ftz ? ".ftz" : "", sat ? ".sat" : "",
             floats[to].name, floats[from].name);
    for (unsigned i = 0; i < ROWS; i++) {
        uint64_t narrow = operand(out->bits < in->bits ? out : in, 0);
        struct exact value = exact_read(out->bits < in->bits ? out : in, narrow);
        do { /* half of them near what the narrower format has */
            rows[i].a = below(2) ? operand(in, 0) : exact_round(in, value, EXACT_RN) + below(3);
        } while (exact_is_nan(in, rows[i].a) && (in->bits == 64 || out->bits == 64));
        /* To f16 an H200 flushes nothing (tests/parity/ptx). */
        bool flush = ftz && in == &exact_f32 && out != &exact_f16;
        value = exact_read(in, flush ? exact_flush(in, rows[i].a) : rows[i].a);
        rows[i].d = exact_round(out, value, rounding);
        if (ftz && out->bits == 32 && exact_is_tiny(out, value, rounding))
            rows[i].d &= UINT64_C(0x80000000);
        if (sat)
            rows[i].d = exact_saturate(out, rows[i].d);
    }
    converts(text, out->bits, in->bits, true, true, rows);
}

TEST(conversions_between_floats_are_exactly_rounded) {
    for (unsigned round = times(); round > 0; round--)
        for (int rounding = EXACT_RN; rounding <= EXACT_RP; rounding++)
            for (int sat = 0; sat < 2; sat++) {
                from_float_to_float(3, 2, (enum exact_rounding)rounding, false, sat);
                from_float_to_float(3, 2, (enum exact_rounding)rounding, true, sat);
                from_float_to_float(3, 0, (enum exact_rounding)rounding, false, sat);
                from_float_to_float(2, 0, (enum exact_rounding)rounding, false, sat);
                from_float_to_float(2, 0, (enum exact_rounding)rounding, true, sat);
                from_float_to_float(0, 2, EXACT_RN, false, sat);
                from_float_to_float(0, 2, EXACT_RN, true, sat);
                from_float_to_float(0, 3, EXACT_RN, false, sat);
                from_float_to_float(2, 3, EXACT_RN, false, sat);
                from_float_to_float(2, 3, EXACT_RN, true, sat);
                if (rounding <= EXACT_RZ && !sat)
                    from_float_to_float(2, 1, (enum exact_rounding)rounding, false, false);
            }
}

static const struct {
    const char *name;
    unsigned bits;
    bool is_signed;
} integers[] = {{"u8", 8, false},   {"s8", 8, true},   {"u16", 16, false}, {"s16", 16, true},
                {"u32", 32, false}, {"s32", 32, true}, {"u64", 64, false}, {"s64", 64, true}};

/* Integers of 8 bits lie in registers of 16. */
static unsigned register_bits(unsigned integer) {
    return integers[integer].bits == 8 ? 16 : integers[integer].bits;
}

static void from_integer(unsigned from, unsigned to, enum exact_rounding rounding) {
    char text[60];
    struct row rows[ROWS];
    unsigned bits = integers[from].bits;
    const struct exact_format *out = floats[to].format;
    snprintf(text, sizeof text, "cvt.%s.%s.%s", rounding_names[rounding], floats[to].name,
             integers[from].name);
    for (unsigned i = 0; i < ROWS; i++) {
        rows[i].a = pattern(bits) + below(3) - 1;
        uint64_t value = low(rows[i].a, bits);
        bool negative = integers[from].is_signed && value >> (bits - 1);
        rows[i].d = exact_round(
            out, exact_integer(negative, negative ? low(0 - value, bits) : value), rounding);
    }
    converts(text, out->bits, register_bits(from), true, false, rows);
}

/* Numbers beyond the integer's range are its ends. */
static uint64_t integer_of(unsigned to, struct exact value, enum exact_rounding rounding) {
    bool beyond;
    unsigned bits = integers[to].bits;
    uint64_t magnitude = exact_magnitude(value, rounding, &beyond);
    uint64_t most = low(UINT64_MAX, bits) >> integers[to].is_signed;
    if (!value.negative)
        return beyond || magnitude > most ? most : magnitude;
    if (!integers[to].is_signed)
        return 0;
    return low(0 - (beyond || magnitude > most + 1 ? most + 1 : magnitude), bits);
}

/* A result of 8 bits fills its register as its sign says. */
static uint64_t in_register(unsigned to, uint64_t value) {
    if (integers[to].bits == 8 && integers[to].is_signed && value >> 7)
        value |= 0xff00;
    return value;
}

static void to_integer(unsigned from, unsigned to, enum exact_rounding rounding, bool ftz) {
    char text[60];
    struct row rows[ROWS];
    const struct exact_format *in = floats[from].format;
    snprintf(text, sizeof text, "cvt.%s%s.%s.%s", integer_roundings[rounding], ftz ? ".ftz" : "",
             integers[to].name, floats[from].name);
    for (unsigned i = 0; i < ROWS; i++) {
        do {
            uint64_t number = pattern(integers[to].bits);
            rows[i].a =
                below(3) ? exact_round(in, exact_integer(below(2), number), EXACT_RZ) + below(3) - 1
                         : operand(in, (uint64_t)in->bias << (in->precision - 1));
            rows[i].a = low(rows[i].a, in->bits);
        } while (exact_is_nan(in, rows[i].a));
        struct exact value = exact_read(in, ftz ? exact_flush(in, rows[i].a) : rows[i].a);
        rows[i].d = in_register(to, integer_of(to, value, rounding));
    }
    converts(text, register_bits(to), in->bits, false, true, rows);
}

TEST(conversions_between_integers_and_floats_are_exactly_rounded) {
    for (unsigned round = times(); round > 0; round--)
        for (unsigned real = 0; real < 4; real++)
            for (unsigned integer = 0; integer < 8; integer++)
                for (int rounding = EXACT_RN; rounding <= EXACT_RP; rounding++) {
                    if (real == 1)
                        continue; /* of bf16 a compiler makes f32 first */
                    from_integer(integer, real, (enum exact_rounding)rounding);
                    to_integer(real, integer, (enum exact_rounding)rounding, false);
                    if (real == 2)
                        to_integer(real, integer, (enum exact_rounding)rounding, true);
                }
}

static int begin(void **state) {
    state_of_random = 8;
    return 0;
}

ALL_TESTS(begin, NULL);
