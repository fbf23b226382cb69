#include "matrix_wide.h"

#include "matrix_forms.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- which forms there are ------------------------------------------------------------------- */

struct list {
    struct wide_form *forms;
    size_t count, room;
};

static void add(struct list *list, struct matrix_product product, unsigned columns) {
    if (!product.rounding)
        product.rounding = "";
    if (!product.popc)
        product.popc = "";
    /* C and D in all orders in turn. */
    unsigned others = (unsigned)list->count;
    if (list->count < list->room)
        list->forms[list->count++] = (struct wide_form){
            product, {columns & 1, columns >> 1 & 1, others & 1, others >> 1 & 1}};
}

static void add_layouts(struct list *list, struct matrix_product product) {
    for (unsigned columns = 0; columns < 4; columns++)
        add(list, product, columns);
}

static struct matrix_product of(unsigned m, unsigned n, unsigned k, enum matrix_type factor,
                                enum matrix_type sum) {
    return (struct matrix_product){
        .m = m, .n = n, .k = k, .d = sum, .a = factor, .b = factor, .c = sum};
}

size_t wide_forms(struct wide_form *forms, size_t room) {
    static const unsigned shapes[3][2] = {{16, 16}, {8, 32}, {32, 8}};
    static const char *const roundings[] = {"rn", "rz", "rm", "rp"};
    struct list list = {forms, 0, room};
    for (unsigned s = 0; s < 3; s++) {
        unsigned m = shapes[s][0], n = shapes[s][1];
        for (unsigned types = 0; types < 4; types++) {
            struct matrix_product half = of(m, n, 16, M_F16, types & 1 ? M_F32 : M_F16);
            half.c = types & 2 ? M_F32 : M_F16;
            add_layouts(&list, half);
        }
        add_layouts(&list, of(m, n, 16, M_BF16, M_F32));
        for (unsigned types = 0; types < 4; types++) {
            struct matrix_product whole = of(m, n, 16, types & 1 ? M_U8 : M_S8, M_S32);
            whole.saturates = types & 2;
            add_layouts(&list, whole);
        }
    }
    add_layouts(&list, of(16, 16, 8, M_TF32, M_F32));
    add_layouts(&list, of(8, 8, 4, M_F64, M_F64));
    for (unsigned i = 0; i < 4; i++) {
        struct matrix_product rounded = of(8, 8, 4, M_F64, M_F64);
        rounded.rounding = roundings[i];
        add(&list, rounded, i);
    }
    for (unsigned i = 0; i < 4; i++) {
        struct matrix_product four = of(8, 8, 32, i & 1 ? M_U4 : M_S4, M_S32);
        four.saturates = i & 2;
        add(&list, four, 2);
    }
    for (unsigned i = 0; i < 2; i++) {
        struct matrix_product bits = of(8, 8, 128, M_B1, M_S32);
        bits.popc = i ? "xor" : "and";
        add(&list, bits, 2);
    }
    return list.count;
}

/* ---- texts ----------------------------------------------------------------------------------- */

struct out {
    char *text;
    size_t size, at;
};

static __attribute__((format(printf, 2, 3))) void put(struct out *out, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    if (out->at < out->size)
        out->at += (size_t)vsnprintf(out->text + out->at, out->size - out->at, format, arguments);
    va_end(arguments);
}

static enum matrix_type type_of(const struct wide_form *form, unsigned which) {
    const enum matrix_type types[] = {form->product.a, form->product.b, form->product.c,
                                      form->product.d};
    return types[which];
}

static void size_of(const struct wide_form *form, unsigned which, unsigned *rows,
                    unsigned *columns) {
    const struct matrix_product *p = &form->product;
    *rows = which == 1 ? p->k : p->m;
    *columns = which == 0 ? p->k : p->n;
}

static unsigned distinct(const struct wide_form *form, unsigned which) {
    unsigned rows, columns, bits = matrix_type_bits(type_of(form, which));
    size_of(form, which, &rows, &columns);
    return rows * columns * bits / (bits == 64 ? 64 : 32) / 32;
}

unsigned wide_registers(const struct wide_form *form, unsigned which) {
    return form->product.a == M_F16 && which < 2 ? 8 : distinct(form, which);
}

/* In memory: behind each line there is room, but for B, whose lines touch. */
static unsigned stride_of(const struct wide_form *form, unsigned which) {
    unsigned rows, columns, bits = matrix_type_bits(type_of(form, which));
    size_of(form, which, &rows, &columns);
    unsigned line = form->column[which] ? rows : columns;
    return which == 1 ? line : line + (bits == 1 ? 128 : bits == 4 ? 32 : 16);
}

static void fragment(struct out *out, const struct wide_form *form, unsigned which) {
    for (unsigned i = 0; i < wide_registers(form, which); i++)
        put(out, "%s%c%u", i ? ", " : "{", "abcd"[which], i);
    put(out, "}");
}

static const char *layout(bool column) {
    return column ? "col" : "row";
}

void wide_words(const struct wide_form *form, char *words, size_t size) {
    const struct matrix_product *p = &form->product;
    struct out out = {words, size, 0};
    put(&out, "wmma.mma%s%s%s.sync.aligned.%s.%s.m%un%uk%u", p->popc[0] ? "." : "", p->popc,
        p->popc[0] ? ".popc" : "", layout(form->column[0]), layout(form->column[1]), p->m, p->n,
        p->k);
    put(&out, "%s%s", p->rounding[0] ? "." : "", p->rounding);
    if (p->a == M_F16)
        put(&out, ".%s.%s", matrix_type_name(p->d), matrix_type_name(p->c));
    else
        put(&out, ".%s.%s.%s.%s", matrix_type_name(p->d), matrix_type_name(p->a),
            matrix_type_name(p->b), matrix_type_name(p->c));
    put(&out, "%s", p->saturates ? ".satfinite" : "");
}

static void transfer(struct out *out, const struct wide_form *form, unsigned which) {
    static const char *const names[] = {"load.a", "load.b", "load.c", "store.d"};
    static const char *const spaces[] = {".global", "", "", ".global"};
    const struct matrix_product *p = &form->product;
    put(out, "wmma.%s.sync.aligned.%s.m%un%uk%u%s.%s ", names[which], layout(form->column[which]),
        p->m, p->n, p->k, spaces[which], matrix_type_name(type_of(form, which)));
    if (which == 3)
        put(out, "[p1], ");
    fragment(out, form, which);
    if (which != 3)
        put(out, ", [p0+%u]", which * WIDE_PART);
    if (which != 1)
        put(out, ", %u", stride_of(form, which));
    put(out, ";\n");
}

static void begin(struct out *out, const struct wide_form *form, const char *name) {
    const char *factor = form->product.a == M_F64 ? "f64" : "b32";
    put(out,
        ".visible .entry %s(.param .u64 in, .param .u64 out) {\n"
        ".reg .%s a<8>, b<8>; .reg .%s c<8>; .reg .%s d<8>; .reg .b32 t; .reg .b64 p<3>;\n"
        "ld.param.u64 p0, [in]; ld.param.u64 p1, [out];\n",
        name, factor,
        form->product.c == M_F32   ? "f32"
        : form->product.c == M_F64 ? "f64"
                                   : "b32",
        form->product.d == M_F32   ? "f32"
        : form->product.d == M_F64 ? "f64"
                                   : "b32");
}

void wide_kernel(const struct wide_form *form, const char *name, char *text, size_t size) {
    struct out out = {text, size, 0};
    char words[128];
    wide_words(form, words, sizeof words);
    begin(&out, form, name);
    for (unsigned which = 0; which < 3; which++)
        transfer(&out, form, which);
    put(&out, "%s ", words);
    fragment(&out, form, 3);
    for (unsigned which = 0; which < 3; which++) {
        put(&out, ", ");
        fragment(&out, form, which);
    }
    put(&out, ";\n");
    transfer(&out, form, 3);
    put(&out, "ret; }\n");
}

void wide_fragment_kernel(const struct wide_form *form, unsigned which, const char *name,
                          char *text, size_t size) {
    struct out out = {text, size, 0};
    const char *type = which == 2 && form->product.c == M_F32 ? "f32" : "b32";
    begin(&out, form, name);
    put(&out, "mov.u32 t, %%tid.x; mad.wide.u32 p1, t, 32, p1;\n");
    transfer(&out, form, which);
    for (unsigned i = 0; i < wide_registers(form, which); i++)
        put(&out, "st.global.%s [p1+%u], %c%u;\n", type, 4 * i, "abc"[which], i);
    put(&out, "ret; }\n");
}

/* ---- data ------------------------------------------------------------------------------------ */

static unsigned index_of(const struct wide_form *form, unsigned which, unsigned row,
                         unsigned column) {
    unsigned stride = stride_of(form, which);
    return form->column[which] ? column * stride + row : row * stride + column;
}

static void store(unsigned char *to, unsigned index, unsigned bits, uint64_t value) {
    if (bits >= 8)
        memcpy(to + index * bits / 8, &value, bits / 8);
    else
        to[index * bits / 8] |= (unsigned char)(value << (index * bits % 8));
}

static uint64_t element(const struct matrix_data *data, unsigned which, unsigned row,
                        unsigned column) {
    return which == 0   ? data->a[row][column]
           : which == 1 ? data->b[row][column]
                        : data->c[row][column];
}

void wide_prepare(const struct wide_form *form, struct matrix_data *data, bool exact,
                  uint32_t *seed, unsigned char in[3 * WIDE_PART]) {
    matrix_fill(&form->product, data, exact, seed);
    memset(in, 0, 3 * WIDE_PART);
    for (unsigned which = 0; which < 3; which++) {
        unsigned rows, columns, bits = matrix_type_bits(type_of(form, which));
        size_of(form, which, &rows, &columns);
        for (unsigned i = 0; i < rows; i++)
            for (unsigned j = 0; j < columns; j++)
                store(in + which * WIDE_PART, index_of(form, which, i, j), bits,
                      element(data, which, i, j));
    }
}

void wide_collect(const struct wide_form *form, const unsigned char out[WIDE_PART],
                  struct matrix_data *data) {
    unsigned bits = matrix_type_bits(form->product.d);
    for (unsigned i = 0; i < form->product.m; i++)
        for (unsigned j = 0; j < form->product.n; j++) {
            data->d[i][j] = 0;
            memcpy(&data->d[i][j], out + index_of(form, 3, i, j) * bits / 8, bits / 8);
        }
}

/* ---- fragments ------------------------------------------------------------------------------- */

/* A matrix of more lines than mma has is several, one behind the other; m8n32 is m32n8 with A and B
 * exchanged. */
static struct matrix_spot spot(const struct wide_form *form, unsigned which, unsigned row,
                               unsigned column) {
    const struct matrix_product *p = &form->product;
    unsigned bits = matrix_type_bits(type_of(form, which)), block, size;
    bool across = p->m == 8 && p->n == 32;
    struct matrix_spot at;
    if (which == 2) {
        bool half = bits == 16;
        unsigned i = across ? column : row, j = across ? row : column;
        at = matrix_spot_c(half, i % 16, j % 8);
        block = i / 16 + j / 8;
        size = half ? 2 : 4;
    } else {
        unsigned line = which == 0 ? row : column, k = which == 0 ? column : row;
        bool sixteen = (which == 0) != across && (which == 0 ? p->m : p->n) > 8;
        at = sixteen ? matrix_spot_a(16, bits, line % 16, k) : matrix_spot_b(bits, k, line % 8);
        block = line / (sixteen ? 16 : 8);
        size = p->k * bits / 128 * (sixteen ? 2 : 1);
    }
    at.reg += block * size;
    return at;
}

void wide_fragment(const struct wide_form *form, unsigned which, const struct matrix_data *data,
                   uint32_t registers[32][8]) {
    unsigned rows, columns, same = distinct(form, which);
    size_of(form, which, &rows, &columns);
    memset(registers, 0, 32 * sizeof registers[0]);
    for (unsigned i = 0; i < rows; i++)
        for (unsigned j = 0; j < columns; j++) {
            struct matrix_spot at = spot(form, which, i, j);
            registers[at.lane][at.reg] |= (uint32_t)element(data, which, i, j) << at.shift;
        }
    for (unsigned lane = 0; lane < 32; lane++)
        for (unsigned reg = same; reg < wide_registers(form, which); reg++)
            registers[lane][reg] = registers[lane][reg - same];
}
