#include "softgpu/launch/device_print.h"

#include <stdlib.h>
#include <string.h>

#define LONGEST_STRING ((size_t)1 << 20)
#define MOST_ELEMENTS  16

struct string {
    size_t at; /* position of its address among the arguments */
    char *text;
};

/* As in an H200's fifo: the arguments, padded to a multiple of 8, followed by the format. */
struct sg_print {
    struct sg_print *next;
    char *format;
    bool plain; /* `format` is a message for standard error */
    unsigned count, string_count;
    size_t size, used; /* bytes in the fifo; bytes of arguments */
    unsigned char arguments[SG_PRINT_ARGUMENTS * 8];
    struct string strings[];
};

struct sg_print **sg_print_next(struct sg_print *print) {
    return &print->next;
}

size_t sg_print_size(const struct sg_print *print) {
    return print->size;
}

void sg_print_free(struct sg_print *print) {
    if (!print)
        return;
    for (unsigned i = 0; i < print->string_count; i++)
        free(print->strings[i].text);
    free(print->format);
    free(print);
}

struct sg_print *sg_print_of_text(char *text) {
    struct sg_print *print = calloc(1, sizeof *print);
    if (!print) {
        free(text);
        return NULL;
    }
    print->format = text;
    print->plain = true;
    print->size = (strlen(text) + 16 + 8) & ~(size_t)7;
    return print;
}

/* ---- formats --------------------------------------------------------------------------------- */

enum length { PLAIN, HH, H, L, LL, HL };

struct conversion {
    const char *begin; /* the percent sign */
    char flags[8];
    bool star_width, star_precision, has_width, has_precision;
    int width, precision;
    unsigned vector; /* elements; 1: none */
    enum length length;
    char letter; /* 0: not a conversion, written as it is */
};

static bool among(char c, const char *set) {
    return c && strchr(set, c);
}

static const char *read_number(const char *at, bool *has, bool *star, int *number) {
    *star = *at == '*';
    *has = *star || (*at >= '0' && *at <= '9');
    if (*star)
        return at + 1;
    for (*number = 0; *at >= '0' && *at <= '9'; at++)
        *number = *number < 100000000 ? *number * 10 + (*at - '0') : *number;
    return at;
}

static const char *read_length(const char *at, enum length *length) {
    static const struct {
        const char *text;
        enum length length;
    } known[] = {{"hh", HH}, {"hl", HL}, {"h", H}, {"ll", LL}, {"l", L}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strncmp(at, known[i].text, strlen(known[i].text)) == 0) {
            *length = known[i].length;
            return at + strlen(known[i].text);
        }
    *length = PLAIN;
    return at;
}

static const char *read_vector(const char *at, unsigned *elements) {
    char *end;
    *elements = 1;
    if (at[0] != 'v' || at[1] < '1' || at[1] > '9')
        return at;
    unsigned long count = strtoul(at + 1, &end, 10);
    if (count != 2 && count != 3 && count != 4 && count != 8 && count != MOST_ELEMENTS)
        return at;
    *elements = (unsigned)count;
    return end;
}

/* Reads from a percent sign on; returns the end. */
static const char *read_conversion(const char *at, struct conversion *c) {
    *c = (struct conversion){.begin = at++};
    for (size_t i = 0; among(*at, "-+ #0"); at++)
        if (!strchr(c->flags, *at) && i < sizeof c->flags - 1)
            c->flags[i++] = *at;
    at = read_number(at, &c->has_width, &c->star_width, &c->width);
    if (*at == '.') {
        at = read_number(at + 1, &c->has_precision, &c->star_precision, &c->precision);
        c->has_precision = true; /* "." without digits is 0 */
    }
    at = read_vector(at, &c->vector);
    at = read_length(at, &c->length);
    bool vector = c->vector > 1;
    if (!among(*at, vector ? "diouxXeEfFgGaA" : "diouxXeEfFgGaAcps%"))
        return *at ? at + 1 : at;
    c->letter = *at;
    return at + 1;
}

static bool is_float(const struct conversion *c) {
    return among(c->letter, "eEfFgGaA");
}

/* Bytes of an argument, after C's promotions; elements of vectors have the length they name. */
static size_t element_size(const struct conversion *c) {
    static const size_t sizes[] = {[PLAIN] = 4, [HH] = 1, [H] = 2, [L] = 8, [LL] = 8, [HL] = 4};
    if (c->vector > 1)
        return sizes[c->length];
    bool wide = is_float(c) || among(c->letter, "ps") || c->length == L || c->length == LL;
    return wide ? 8 : 4;
}

static size_t aligned(size_t at, size_t to) {
    return (at + to - 1) & ~(to - 1);
}

/* ---- recording ------------------------------------------------------------------------------- */

char *sg_device_string(const struct sg_device_call *call, uint64_t address) {
    char *text = NULL;
    size_t used = 0, span;
    while (used < LONGEST_STRING) {
        const unsigned char *from = sg_device_call_bytes(call, address + used, false, &span);
        if (!from)
            break;
        span = span < LONGEST_STRING - used ? span : LONGEST_STRING - used;
        const unsigned char *zero = memchr(from, 0, span);
        size_t length = zero ? (size_t)(zero - from) + 1 : span;
        char *more = realloc(text, used + length);
        if (!more)
            break;
        text = more;
        memcpy(text + used, from, length);
        used += length;
        if (zero)
            return text;
    }
    free(text);
    return NULL;
}

struct recorder {
    const struct sg_device_call *call;
    struct sg_print *print;
};

static bool record_one(struct recorder *recorder, size_t size, bool string) {
    struct sg_print *print = recorder->print;
    uint64_t bits = 0;
    print->used = aligned(print->used, size);
    if (!sg_device_call_read(recorder->call, recorder->call->argument[1] + print->used, &bits,
                             size))
        return false;
    memcpy(print->arguments + print->used, &bits, size);
    if (string && bits) {
        char *text = sg_device_string(recorder->call, bits);
        if (!text)
            return false;
        print->strings[print->string_count++] = (struct string){print->used, text};
        print->size += (strlen(text) + 8) & ~(size_t)7;
    }
    print->used += size;
    print->count++;
    return true;
}

/*
 * The number of arguments of a conversion, including a width. As on an H200, the kernel's side of
 * printf does not know vectors, bytes (%hhd) or a precision as an argument (%.*f), and passes
 * nothing for them.
 */
static unsigned wanted(const struct conversion *c) {
    bool takes =
        c->letter && c->letter != '%' && c->vector == 1 && c->length != HH && !c->star_precision;
    return takes ? 1U + c->star_width : 0;
}

static bool record(struct recorder *recorder, const struct conversion *c) {
    return (!c->star_width || record_one(recorder, 4, false)) &&
           record_one(recorder, element_size(c), c->letter == 's');
}

static unsigned count_arguments(const char *format) {
    unsigned count = 0;
    struct conversion c;
    for (const char *at = format; (at = strchr(at, '%')) != NULL;) {
        at = read_conversion(at, &c);
        if (count + wanted(&c) > SG_PRINT_ARGUMENTS)
            break;
        count += wanted(&c);
    }
    return count;
}

/* False: an argument cannot be read. */
static bool record_all(struct recorder *recorder, unsigned count) {
    struct conversion c;
    const char *at = recorder->print->format;
    while (recorder->print->count < count && (at = strchr(at, '%')) != NULL) {
        at = read_conversion(at, &c);
        if (wanted(&c) && !record(recorder, &c))
            return false;
    }
    return true;
}

int sg_print_record(const struct sg_device_call *call, struct sg_print **made) {
    *made = NULL;
    if (call->argument[0] == 0)
        return -1;
    char *format = sg_device_string(call, call->argument[0]);
    if (!format)
        return -2;
    unsigned count = count_arguments(format);
    struct sg_print *print = calloc(1, sizeof *print + count * sizeof print->strings[0]);
    if (!print) {
        free(format);
        return -2;
    }
    print->format = format;
    struct recorder recorder = {call, print};
    if (!record_all(&recorder, count)) {
        sg_print_free(print);
        return -2;
    }
    print->used = aligned(print->used, 8);
    print->size += 16 + print->used;
    *made = print;
    return (int)count;
}

/* ---- writing --------------------------------------------------------------------------------- */

static double half(uint16_t bits) {
    int exponent = bits >> 10 & 31;
    uint32_t fraction = bits & 1023, sign = (uint32_t)(bits >> 15) << 31;
    if (exponent == 0) /* zeros and subnormal numbers */
        return (sign ? -1.0 : 1.0) * fraction / 16777216.0;
    uint32_t word = sign | fraction << 13;
    word |= exponent == 31 ? 0x7f800000U : (uint32_t)(exponent + 112) << 23;
    float value;
    memcpy(&value, &word, sizeof value);
    return value;
}

static double float_at(const unsigned char *at, size_t size) {
    double wide;
    float narrow;
    uint16_t bits;
    if (size == 8) {
        memcpy(&wide, at, sizeof wide);
        return wide;
    }
    if (size == 4) {
        memcpy(&narrow, at, sizeof narrow);
        return narrow;
    }
    memcpy(&bits, at, sizeof bits);
    return half(bits);
}

/* The integer in the conversion's length and signedness. */
static long long integer_at(const unsigned char *at, const struct conversion *c) {
    static const unsigned bits[] = {
        [PLAIN] = 32, [HH] = 8, [H] = 16, [L] = 64, [LL] = 64, [HL] = 32};
    uint64_t value = 0;
    memcpy(&value, at, element_size(c));
    unsigned keep = bits[c->length];
    if (keep == 64)
        return (long long)value;
    value &= (UINT64_C(1) << keep) - 1;
    if (among(c->letter, "di") && value >> (keep - 1))
        value |= ~UINT64_C(0) << keep;
    return (long long)value;
}

/* A format such as "%-*.*lld": width and precision are arguments, if there are any. */
static void spell(char *spec, size_t room, const struct conversion *c, const char *length) {
    snprintf(spec, room, "%%%s%s%s%s%c", c->flags, c->has_width ? "*" : "",
             c->has_precision ? ".*" : "", length, c->letter);
}

#define PUT(out, spec, c, value)                                                                   \
    do {                                                                                           \
        if ((c)->has_width && (c)->has_precision)                                                  \
            fprintf(out, spec, (c)->width, (c)->precision, value);                                 \
        else if ((c)->has_width)                                                                   \
            fprintf(out, spec, (c)->width, value);                                                 \
        else if ((c)->has_precision)                                                               \
            fprintf(out, spec, (c)->precision, value);                                             \
        else                                                                                       \
            fprintf(out, spec, value);                                                             \
    } while (0)

/* The formats are built above, from checked letters. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
static void put_one(FILE *out, const struct conversion *c, const char *string,
                    const unsigned char *at) {
    char spec[32];
    uint64_t bits = 0;
    memcpy(&bits, at, element_size(c));
    if (is_float(c)) {
        spell(spec, sizeof spec, c, "");
        PUT(out, spec, c, float_at(at, element_size(c)));
    } else if (c->letter == 's') {
        spell(spec, sizeof spec, c, "");
        PUT(out, spec, c, string ? string : "(null)");
    } else if (c->letter == 'p') {
        spell(spec, sizeof spec, c, "");
        PUT(out, spec, c, (void *)(uintptr_t)bits);
    } else if (c->letter == 'c') {
        spell(spec, sizeof spec, c, "");
        PUT(out, spec, c, (int)(bits & 0xff));
    } else {
        spell(spec, sizeof spec, c, "ll");
        PUT(out, spec, c, integer_at(at, c));
    }
}
#pragma GCC diagnostic pop

/* The host reads values in sequence: after the arguments the format's bytes, and then zeros. */
struct reader {
    const struct sg_print *print;
    size_t at;
};

static void take(struct reader *reader, void *to, size_t size) {
    const struct sg_print *print = reader->print;
    size_t length = strlen(print->format);
    unsigned char *byte = to;
    for (size_t i = 0; i < size; i++, reader->at++) {
        size_t behind = reader->at - print->used;
        byte[i] = reader->at < print->used ? print->arguments[reader->at]
                  : behind < length        ? (unsigned char)print->format[behind]
                                           : 0;
    }
}

static int take_number(struct reader *reader) {
    int number;
    reader->at = aligned(reader->at, sizeof number);
    take(reader, &number, sizeof number);
    return number;
}

static const char *string_at(const struct sg_print *print, size_t at) {
    for (unsigned i = 0; i < print->string_count; i++)
        if (print->strings[i].at == at)
            return print->strings[i].text;
    return NULL;
}

static void put(FILE *out, struct conversion *c, struct reader *reader) {
    unsigned char value[MOST_ELEMENTS * 8];
    size_t size = element_size(c), slots = c->vector == 3 ? 4 : c->vector;
    if (c->star_width)
        c->width = take_number(reader);
    reader->at = aligned(reader->at, size * slots);
    const char *string = string_at(reader->print, reader->at);
    take(reader, value, size * slots);
    for (unsigned i = 0; i < c->vector; i++) {
        if (i > 0)
            putc(',', out);
        put_one(out, c, string, value + i * size);
    }
}

void sg_print_write(const struct sg_print *print, FILE *out) {
    struct reader reader = {print, 0};
    if (print->plain) {
        fputs(print->format, stderr);
        return;
    }
    unsigned used = 0;
    for (const char *at = print->format, *next; *at; at = next) {
        struct conversion c;
        const char *percent = strchr(at, '%');
        next = percent ? percent : at + strlen(at);
        fwrite(at, 1, (size_t)(next - at), out);
        if (!percent)
            return;
        next = read_conversion(percent, &c);
        if (c.letter == '%') {
            putc('%', out);
        } else if (!c.letter || c.star_precision || used + wanted(&c) > print->count) {
            fwrite(percent, 1, (size_t)(next - percent), out);
        } else {
            put(out, &c, &reader);
            used += wanted(&c);
            next += c.length == HL && *next; /* an H200's driver drops it too */
        }
    }
}
