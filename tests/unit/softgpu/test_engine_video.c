/*
 * Video instructions against a reference of their own: numbers in 64 bits, bytes in arrays. Where
 * an H200 does not do what PTX says, the reference does as recorded there (tests/parity/ptx).
 */
#include "kernel.h"

#define VALUES 64

static uint64_t seed = 88172645463325252u;

static uint32_t some(void) {
    static const uint32_t edges[] = {0,          1,          0x7f,       0x80,       0xff,
                                     0x7fff,     0x8000,     0xffff,     0x7fffffff, 0x80000000,
                                     0xffffffff, 0x80808080, 0x7f7f7f7f, 0x80008000, 0x7fff7fff};
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed % 3 == 0 ? edges[(seed >> 8) % 15] : (uint32_t)(seed >> 16);
}

static void fill(struct row *rows) {
    for (size_t i = 0; i < VALUES; i++)
        rows[i] = (struct row){some(), some(), some(), 0};
}

/* "b2" of a word, as number; "" all of it. */
static int64_t chosen(uint64_t word, const char *part, bool has_sign) {
    int64_t bits = part[0] == 'b' ? 8 : part[0] == 'h' ? 16 : 32;
    int64_t at = part[0] ? bits * (part[1] - '0') : 0;
    int64_t value = (int64_t)(word & 0xffffffff) / ((int64_t)1 << at) % ((int64_t)1 << bits);
    return has_sign && value >= (int64_t)1 << (bits - 1) ? value - ((int64_t)1 << bits) : value;
}

static double held(double value, int bits, bool has_sign) {
    double most =
        has_sign ? (double)((int64_t)1 << (bits - 1)) - 1 : (double)((int64_t)1 << bits) - 1;
    double least = has_sign ? -most - 1 : 0;
    return value > most ? most : value < least ? least : value;
}

/* Sums and differences of 33-bit numbers are exact in double. */
static double made(const char *op, double a, double b) {
    if (strcmp(op, "vadd") == 0)
        return a + b;
    if (strcmp(op, "vsub") == 0)
        return a - b;
    if (strcmp(op, "vabsdiff") == 0)
        return a > b ? a - b : b - a;
    if (strcmp(op, "vmin") == 0)
        return a < b ? a : b;
    if (strcmp(op, "vmax") == 0)
        return a > b ? a : b;
    if (strcmp(op, "vavrg") == 0) { /* the half of a sum, ties upwards */
        double half = (a + b) / 2;
        double below = (double)(int64_t)half - (half < (double)(int64_t)half);
        return half > below && a + b >= 0 ? below + 1 : below;
    }
    fail_msg("%s", op);
    return 0;
}

static const char *const types[] = {"u32", "s32"};

/* ---- one result ------------------------------------------------------------------------------ */

struct single {
    const char *op, *a, *b, *d, *second;
    unsigned types; /* bits: of the result, of a, of b: signed */
    bool sat;
};

/* A part is held without a sign; of all of a register without one only the lower end is. */
static int64_t held_single(const struct single *one, int64_t value, int bits) {
    bool sign = one->types & 1;
    if (one->d[0]) {
        uint64_t most = (UINT64_C(1) << (bits - sign)) - 1;
        return (uint64_t)value > most ? (int64_t)most : value;
    }
    if (!sign)
        return value < 0 ? 0 : value;
    return (int64_t)held((double)value, 32, true);
}

static void expect_single(const struct single *one, struct row *row) {
    bool sign = one->types & 1;
    double exact = made(one->op, (double)chosen(row->a, one->a, one->types & 2),
                        (double)chosen(row->b, one->b, one->types & 4));
    int bits = one->d[0] == 'b' ? 8 : one->d[0] == 'h' ? 16 : 32;
    int64_t value = one->sat ? held_single(one, (int64_t)exact, bits) : (int64_t)exact;
    uint32_t result = (uint32_t)value, c = (uint32_t)row->c;
    if (one->d[0]) {
        unsigned char bytes[4], from[4];
        memcpy(bytes, &c, 4);
        memcpy(from, &result, 4);
        bool high = strcmp(one->d, "h1") == 0; /* it gets the high half */
        memcpy(bytes + (one->d[1] - '0') * bits / 8, from + (high ? 2 : 0), (size_t)bits / 8);
        memcpy(&result, bytes, 4);
    } else if (strcmp(one->second, "add") == 0) {
        result += c;
    } else if (one->second[0]) {
        bool sum = strcmp(one->op, "vadd") == 0 || strcmp(one->op, "vsub") == 0;
        int64_t seen = sum ? (int32_t)result : value;
        bool less = sign ? seen < (int32_t)c : (uint64_t)seen < c;
        result = less == (one->second[1] == 'i') ? result : c;
    }
    row->d = result;
}

static void check_single(const struct single *one) {
    struct row rows[VALUES];
    char body[300];
    bool third = one->d[0] || one->second[0];
    snprintf(
        body, sizeof body, "%s.%s.%s.%s%s%s%s %%w%s%s, %%x%s%s, %%y%s%s%s; cvt.u64.u32 %%d, %%w;",
        one->op, types[one->types & 1], types[one->types >> 1 & 1], types[one->types >> 2],
        one->sat ? ".sat" : "", one->second[0] ? "." : "", one->second, one->d[0] ? "." : "",
        one->d, one->a[0] ? "." : "", one->a, one->b[0] ? "." : "", one->b, third ? ", %z" : "");
    fill(rows);
    for (size_t i = 0; i < VALUES; i++)
        expect_single(one, &rows[i]);
    ROWS_HOLD(body, rows);
}

TEST(scalar_video_instructions_match_the_reference) {
    static const char *const ops[] = {"vadd", "vsub", "vabsdiff", "vmin", "vmax"};
    static const char *const parts[] = {"", "b0", "b1", "b2", "b3", "h0", "h1"};
    static const char *const seconds[] = {"", "add", "min", "max"};
    for (unsigned op = 0; op < 5; op++)
        for (unsigned t = 0; t < 8; t++)
            for (unsigned k = 0; k < 14; k++) {
                struct single one = {.op = ops[op],
                                     .a = parts[k % 7],
                                     .b = parts[(k * 3 + t) % 7],
                                     .d = parts[k < 7 ? 0 : k - 7],
                                     .second = seconds[k < 7 ? k % 4 : 0],
                                     .types = t,
                                     .sat = (k + op) % 2};
                check_single(&one);
            }
}

/* ---- shifts ---------------------------------------------------------------------------------- */

TEST(video_shifts_clamp_or_wrap) {
    for (unsigned k = 0; k < 32; k++) {
        bool left = k & 1, wrap = k & 2, sign = k & 4, from_sign = k & 8, sat = k & 16;
        struct row rows[VALUES];
        char body[200];
        snprintf(body, sizeof body, "%s.%s.%s.u32%s.%s %%w, %%x.h1, %%y.b0; cvt.u64.u32 %%d, %%w;",
                 left ? "vshl" : "vshr", types[sign], types[from_sign], sat ? ".sat" : "",
                 wrap ? "wrap" : "clamp");
        fill(rows);
        for (size_t i = 0; i < VALUES; i++) {
            double value = (double)chosen(rows[i].a, "h1", from_sign);
            unsigned by = (unsigned)rows[i].b & 0xff;
            by = wrap ? by % 32 : by > 32 ? 32 : by;
            for (; by; by--) {
                value = left ? value * 2 : value / 2;
                value = left || value == (double)(int64_t)value ? value
                        : value < 0                             ? (double)(int64_t)value - 1
                                                                : (double)(int64_t)value;
            }
            int64_t whole = (int64_t)value, turn = (int64_t)1 << 34;
            if (sat && left) { /* in 34 bits, with a sign */
                whole = (whole % turn + turn) % turn;
                whole -= whole >= turn / 2 ? turn : 0;
            }
            rows[i].d = (uint32_t)(sat ? (int64_t)held((double)whole, 32, sign) : whole);
        }
        ROWS_HOLD(body, rows);
    }
}

/* ---- vmad ------------------------------------------------------------------------------------ */

TEST(vmad_shifts_and_saturates_its_product) {
    static const char *const signs[][3] = {
        {"", "", ""}, {"-", "", ""}, {"", "-", ""}, {"", "", "-"}};
    for (unsigned k = 0; k < 4 * 4 * 3 * 2; k++) {
        const char *const *sign = signs[k % 4];
        bool sa = k / 4 & 1, sb = k / 8 & 1, sat = k / 48 & 1;
        int shift = k / 16 % 3 == 0 ? 0 : k / 16 % 3 == 1 ? 7 : 15;
        struct row rows[VALUES];
        char body[200];
        snprintf(body, sizeof body,
                 "vmad.s32.%s.%s%s%s %%w, %s%%x.h0, %s%%y.h1, %s%%z; "
                 "cvt.u64.u32 %%d, %%w;",
                 types[sa], types[sb], sat ? ".sat" : "",
                 shift == 7    ? ".shr7"
                 : shift == 15 ? ".shr15"
                               : "",
                 sign[0], sign[1], sign[2]);
        fill(rows);
        for (size_t i = 0; i < VALUES; i++) {
            bool has_sign = sa || sb || k % 4;
            int64_t product = chosen(rows[i].a, "h0", sa) * chosen(rows[i].b, "h1", sb);
            int64_t c = chosen(rows[i].c, "", true);
            product = k % 4 == 1 || k % 4 == 2 ? -product : product;
            int64_t sum = product + (k % 4 == 3 ? -c : c);
            if (!has_sign)
                sum = shift ? (int64_t)((uint64_t)sum >> shift) : sum;
            else
                for (int by = shift; by; by--)
                    sum = sum >= 0 ? sum / 2 : (sum - 1) / 2;
            rows[i].d = (uint32_t)(sat ? (int64_t)held((double)sum, 32, has_sign) : sum);
        }
        ROWS_HOLD(body, rows);
    }
    HOLDS("vmad.u32.u32.u32.po %w, %x, %y, %z; cvt.u64.u32 %d, %w;", {3, 5, 7, 23},
          {0xffffffff, 0xffffffff, 0, 2});
    HOLDS("vmad.u32.u32.u32.sat %w, %x, %y, %z; cvt.u64.u32 %d, %w;",
          {0xffffffff, 0xffffffff, 0, 1});
    HOLDS("vmad.u32.u32.u32.shr7 %w, %x, %y, %z; cvt.u64.u32 %d, %w;",
          {0xffffffff, 0xffffffff, 0, 0});
}

/* ---- two and four at once -------------------------------------------------------------------- */

struct several {
    const char *op;
    int elements;
    const char *a, *b, *mask; /* digits, or "" */
    unsigned types;
    bool sat, add;
};

static void expect_several(const struct several *one, struct row *row) {
    unsigned char from[8], c[4], bytes[4] = {0};
    uint32_t words[3] = {(uint32_t)row->a, (uint32_t)row->b, (uint32_t)row->c}, sum = words[2];
    int n = one->elements, size = 4 / n;
    const char *usual = n == 2 ? "10" : "3210", *upper = n == 2 ? "32" : "7654";
    memcpy(from, words, 8);
    memcpy(c, words + 2, 4);
    memcpy(bytes, c, 4);
    for (int i = 0; i < n; i++) {
        const char *a = one->a[0] ? one->a : usual, *b = one->b[0] ? one->b : upper;
        const char *mask = one->mask[0] ? one->mask : usual;
        if (!strchr(mask, '0' + i))
            continue;
        uint32_t x = 0, y = 0;
        memcpy(&x, from + size * (a[n - 1 - i] - '0'), (size_t)size);
        memcpy(&y, from + size * (b[n - 1 - i] - '0'), (size_t)size);
        const char *all = size == 1 ? "b0" : "h0";
        double value = made(one->op, (double)chosen(x, all, one->types & 2),
                            (double)chosen(y, all, one->types & 4));
        if (one->sat)
            value = held(value, 8 * size, one->types & 1);
        int64_t whole = (int64_t)value;
        memcpy(bytes + i * size, &whole, (size_t)size);
        sum += (uint32_t)whole;
    }
    memcpy(words, bytes, 4);
    row->d = one->add ? sum : words[0];
}

static void check_several(const struct several *one) {
    struct row rows[VALUES];
    char body[300];
    const char *part = one->elements == 2 ? ".h" : ".b";
    snprintf(body, sizeof body,
             "%s%d.%s.%s.%s%s%s %%w%s%s, %%x%s%s, %%y%s%s, %%z; cvt.u64.u32 %%d, %%w;", one->op,
             one->elements, types[one->types & 1], types[one->types >> 1 & 1],
             types[one->types >> 2], one->sat ? ".sat" : "", one->add ? ".add" : "",
             one->mask[0] ? part : "", one->mask, one->a[0] ? part : "", one->a,
             one->b[0] ? part : "", one->b);
    fill(rows);
    for (size_t i = 0; i < VALUES; i++)
        expect_several(one, &rows[i]);
    ROWS_HOLD(body, rows);
}

TEST(simd_video_instructions_match_the_reference) {
    static const char *const ops[] = {"vadd", "vsub", "vavrg", "vabsdiff", "vmin", "vmax"};
    static const char *const by_two[][3] = {
        {"", "", ""}, {"32", "01", "0"}, {"13", "20", "1"}, {"", "10", "10"}};
    static const char *const by_four[][3] = {
        {"", "", ""}, {"7531", "0246", "20"}, {"0123", "4567", "3"}, {"3333", "", "321"}};
    for (unsigned op = 0; op < 6; op++)
        for (unsigned t = 0; t < 8; t++)
            for (unsigned k = 0; k < 12; k++) {
                const char *const *how = k % 2 ? by_four[k / 3] : by_two[k / 3];
                struct several one = {.op = ops[op],
                                      .elements = k % 2 ? 4 : 2,
                                      .a = how[0],
                                      .b = how[1],
                                      .mask = how[2],
                                      .types = t,
                                      .sat = k % 3 == 1,
                                      .add = k % 3 == 2};
                check_several(&one);
            }
}

TEST(video_comparisons_return_numbers) {
    HOLDS("vset.u32.u32.lt %w, %x, %y; cvt.u64.u32 %d, %w;", {5, 7, 0, 1}, {7, 5, 0, 0},
          {0xffffffff, 1, 0, 0});
    HOLDS("vset.s32.u32.lt %w, %x, %y; cvt.u64.u32 %d, %w;", {0xffffffff, 1, 0, 1},
          {0x80, 0x80, 0, 0});
    HOLDS("vset.s32.s32.le %w.b2, %x.h0, %y.b0, %z; cvt.u64.u32 %d, %w;",
          {0x8000, 1, 0x11223344, 0x11013344});
    HOLDS("vset4.u32.u32.eq.add %w, %x, %y, %z; cvt.u64.u32 %d, %w;",
          {0x01020304, 0x01000305, 10, 12});
    HOLDS("vset2.u32.u32.ge %w.h0, %x, %y, %z; cvt.u64.u32 %d, %w;",
          {0x00010005, 0x00020005, 0xaaaabbbb, 0xaaaa0001});
    HOLDS("vset.u32.u32.lt.max %w, %x, %y, %z; cvt.u64.u32 %d, %w;", {1, 2, 0xffffffff, 0xffffffff},
          {3, 2, 7, 7});
}
