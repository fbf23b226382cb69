/*
 * Warps in lock step compute what each computes by itself: random kernels, in blocks of many
 * shapes, run both ways on every level, and their registers and memory are compared.
 */
#include "kernel.h"

enum { WORDS = 4096, RESULTS = 12, MOST_THREADS = 512, TEXT = 1 << 16 };

/* ---- random kernels -------------------------------------------------------------------------- */

struct writer {
    char text[TEXT];
    size_t used;
    uint64_t seed;
    unsigned labels;
    bool warps; /* whole ones */
};

static unsigned below(struct writer *writer, unsigned limit) {
    writer->seed = writer->seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (unsigned)(writer->seed >> 33) % limit;
}

__attribute__((format(printf, 2, 3))) static void put(struct writer *writer, const char *form,
                                                      ...) {
    va_list list;
    va_start(list, form);
    int size = vsnprintf(writer->text + writer->used, TEXT - writer->used, form, list);
    va_end(list);
    assert_true(size >= 0 && (size_t)size < TEXT - writer->used);
    writer->used += (size_t)size;
}

/* Registers 0 to 11 are values; 0 to 4 begin as tid, ctaid, ntid, and a thread's number. */
static unsigned any_register(struct writer *writer) {
    return below(writer, RESULTS);
}

static void source(struct writer *writer) {
    static const unsigned numbers[] = {0, 1, 2, 4, 5, 16, 31, 32, 64, 0x7fffffff, 0xfffffff0};
    if (below(writer, 4) == 0)
        put(writer, ", %u", numbers[below(writer, sizeof numbers / sizeof numbers[0])]);
    else
        put(writer, ", %%r%u", any_register(writer));
}

static void guard(struct writer *writer) {
    if (below(writer, 5) == 0)
        put(writer, "@%s%%p%u ", below(writer, 2) ? "!" : "", below(writer, 4));
}

static void arithmetic(struct writer *writer) {
    static const char *const two[] = {"add.s32", "sub.s32", "mul.lo.s32", "and.b32", "or.b32",
                                      "xor.b32", "shl.b32", "shr.u32",    "shr.s32", "min.s32",
                                      "max.u32", "add.s32", "mul.lo.u32", "add.f32", "mul.rn.f32"};
    static const char *const three[] = {"mad.lo.s32", "fma.rn.f32", "bfe.u32", "shf.l.wrap.b32"};
    unsigned which = below(writer, 20);
    guard(writer);
    bool more = which >= 16;
    const char *name = more ? three[which - 16] : two[which % 15];
    bool real = strstr(name, "f32") != NULL;
    put(writer, "%s %%r%u", name, any_register(writer));
    for (unsigned i = 0; i < (more ? 3u : 2u); i++) {
        if (real || which == 18) /* bfe takes constants up to 255 */
            put(writer, ", %%r%u", any_register(writer));
        else
            source(writer);
    }
    put(writer, ";\n");
}

static void wider(struct writer *writer) {
    unsigned to = below(writer, 4), from = any_register(writer);
    guard(writer);
    switch (below(writer, 7)) {
    case 0:
        put(writer, "mul.wide.s32 %%rd%u, %%r%u, %u;\n", to, from, 1 + below(writer, 9));
        break;
    case 1:
        put(writer, "mul.wide.u32 %%rd%u, %%r%u, %%r%u;\n", to, from, any_register(writer));
        break;
    case 2:
        put(writer, "cvt.s64.s32 %%rd%u, %%r%u;\n", to, from);
        break;
    case 3:
        put(writer, "cvt.u64.u32 %%rd%u, %%r%u;\n", to, from);
        break;
    case 4:
        put(writer, "add.s64 %%rd%u, %%rd%u, %%rd%u;\n", to, below(writer, 4), below(writer, 4));
        break;
    case 5:
        put(writer, "mad.wide.s32 %%rd%u, %%r%u, 8, %%rd%u;\n", to, from, below(writer, 4));
        break;
    default:
        put(writer, "cvt.u32.u64 %%r%u, %%rd%u;\n", from, to);
    }
}

static void compare(struct writer *writer) {
    static const char *const orders[] = {"eq", "ne", "lt", "le", "gt", "ge"};
    unsigned which = below(writer, 8);
    guard(writer);
    if (which == 0) {
        put(writer, "xor.pred %%p%u, %%p%u, %%p%u;\n", below(writer, 4), below(writer, 4),
            below(writer, 4));
    } else if (which == 1) {
        put(writer, "selp.b32 %%r%u, %%r%u, %%r%u, %%p%u;\n", any_register(writer),
            any_register(writer), any_register(writer), below(writer, 4));
    } else if (which == 2) {
        put(writer, "setp.%s.s64 %%p%u, %%rd%u, %%rd%u;\n", orders[below(writer, 6)],
            below(writer, 4), below(writer, 4), below(writer, 4));
    } else {
        put(writer, "setp.%s.%s32 %%p%u, %%r%u", orders[below(writer, 6)], which % 2 ? "s" : "u",
            below(writer, 4), any_register(writer));
        source(writer);
        put(writer, ";\n");
    }
}

/* Loads at the thread's number or at any; stores only to what is the thread's own. */
static void memory(struct writer *writer) {
    unsigned reg = any_register(writer), which = below(writer, 7);
    if (which == 4)
        put(writer,
            "and.b32 %%r20, %%r%u, 1023; mul.wide.u32 %%rd20, %%r20, 4; add.s64 %%rd20, %%rd9, "
            "%%rd20;\n",
            any_register(writer));
    guard(writer);
    switch (which) {
    case 0:
        put(writer, "ld.global.u32 %%r%u, [%%rd10+%u];\n", reg, 4 * below(writer, 16));
        break;
    case 1:
        put(writer, "ld.global.u8 %%r%u, [%%rd11+%u];\n", reg, below(writer, 64));
        break;
    case 2: /* one place for all */
        put(writer, "ld.global.s16 %%r%u, [%%rd9+%u];\n", reg, 2 * below(writer, 64));
        break;
    case 3: /* rows */
        put(writer, "ld.u32 %%r%u, [%%rd12+%u];\n", reg, 4 * below(writer, 16));
        break;
    case 4: /* anywhere */
        put(writer, "ld.global.u32 %%r%u, [%%rd20];\n", reg);
        break;
    case 5:
        put(writer, "ld.global.v4.u32 {%%r%u, %%r20, %%r21, %%r22}, [%%rd13+%u];\n", reg,
            16 * below(writer, 4));
        break;
    default:
        put(writer, "st.global.u32 [%%rd14+%u], %%r%u;\n", 4 * (RESULTS + below(writer, 2)), reg);
    }
}

/* Several values in a register, and registers of several words. */
static void packed(struct writer *writer) {
    static const char *const two[] = {
        "add.rn.f16x2",         "mul.rn.bf16x2",      "min.f16x2",         "set.lt.u32.s32",
        "set.gt.f32.f32",       "set.eq.f16x2.f16x2", "set.ne.u32.bf16x2", "cvt.rn.f16x2.f32",
        "cvt.pack.sat.s16.s32", "add.s16x2",          "max.u16x2",         "sad.u32"};
    static const char *const three[] = {"vadd.s32.s32.s32.sat.add",
                                        "vabsdiff4.u32.u32.u32.add",
                                        "vset2.u32.s32.ge.add",
                                        "vmin.u32.u32.s32.max",
                                        "dp4a.u32.s32",
                                        "prmt.b32",
                                        "fma.rn.f16x2",
                                        "vavrg2.s32.s32.s32.add"};
    unsigned which = below(writer, 20), sources = which < 11 ? 2 : 3;
    const char *name = which < 12 ? two[which] : three[which - 12];
    guard(writer);
    put(writer, "%s %%r%u", name, any_register(writer));
    for (unsigned i = 0; i < sources; i++)
        put(writer, ", %%r%u", any_register(writer));
    put(writer, ";\n");
}

static void several(struct writer *writer) {
    unsigned r = any_register(writer), other = any_register(writer), d = below(writer, 4);
    unsigned p = below(writer, 4), q = below(writer, 2);
    guard(writer);
    switch (below(writer, 9)) {
    case 0:
        put(writer, "mov.b128 %%q%u, {%%rd%u, %%rd%u};\n", q, d, below(writer, 4));
        break;
    case 1:
        put(writer, "mov.b128 {%%rd%u, %%rd%u}, %%q%u;\n", d, (d + 1) % 4, q);
        break;
    case 2:
        put(writer, "mov.b128 %%q%u, {%%r%u, %%r%u, %%r%u, %%r%u};\n", q, r, other,
            any_register(writer), any_register(writer));
        break;
    case 3:
        put(writer, "mov.b128 %%q%u, %%q%u;\n", q, 1 - q);
        break;
    case 4:
        put(writer, "%s %%q%u, [%%rd13+%u];\n",
            below(writer, 2) ? "ld.global.b128" : "ld.relaxed.gpu.global.b128", q,
            16 * below(writer, 4));
        break;
    case 5:
        put(writer, "mov.v2.b32 {%%r%u, %%r%u}, {%%r%u, %%r%u};\n", r, (r + 1) % RESULTS, other,
            any_register(writer));
        break;
    case 6:
        put(writer, "lop3.and.b32 %%r%u|%%p%u, %%r%u, %%r%u, %%r%u, %u, %%p%u;\n", r, p, other,
            any_register(writer), any_register(writer), below(writer, 256), below(writer, 4));
        break;
    case 7:
        put(writer, "setp.%s.f16x2 %%p%u|%%p%u, %%r%u, %%r%u;\n", below(writer, 2) ? "lt" : "ne", p,
            (p + 1) % 4, r, other);
        break;
    default: /* of the thread's own */
        put(writer, "atom.global.v2.f32.add {%%r%u, %%r%u}, [%%rd14+%u], {%%r%u, %%r%u};\n", r,
            (r + 1) % RESULTS, 4 * RESULTS, other, any_register(writer));
    }
}

/* What the device runtime returns is a result in a register as well. */
static void runtime(struct writer *writer) {
    guard(writer);
    put(writer, "call (%%rd%u), memcpy, (%%rd14, %%rd10, %%rd15);\n", 16 + below(writer, 2));
    put(writer, "sub.s64 %%rd%u, %%rd%u, %%rd14;\n", below(writer, 4), 16 + below(writer, 2));
    put(writer, "ld.global.u32 %%r%u, [%%rd14];\n", any_register(writer));
}

static void matrix(struct writer *writer) {
    unsigned r = any_register(writer);
    if (below(writer, 2))
        put(writer, "movmatrix.sync.aligned.m8n8.trans.b16 %%r%u, %%r%u;\n", r,
            any_register(writer));
    else
        put(writer,
            "mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%%r%u, %%r%u}, {%%r%u}, {%%r%u}, "
            "{%%r%u, %%r%u};\n",
            r, (r + 1) % RESULTS, any_register(writer), any_register(writer), any_register(writer),
            any_register(writer));
}

static void statements(struct writer *writer, unsigned count, unsigned depth);

static void either(struct writer *writer, unsigned depth) {
    unsigned label = writer->labels++;
    put(writer, "@%s%%p%u bra else%u;\n", below(writer, 2) ? "!" : "", below(writer, 4), label);
    statements(writer, 1 + below(writer, 5), depth + 1);
    put(writer, "bra done%u;\nelse%u:\n", label, label);
    if (below(writer, 2))
        statements(writer, 1 + below(writer, 4), depth + 1);
    put(writer, "done%u:\n", label);
}

static void loop(struct writer *writer, unsigned depth) {
    unsigned label = writer->labels++;
    put(writer, "mov.u32 %%r%u, %u;\nloop%u:\n", 24 + depth, below(writer, 4), label);
    statements(writer, 2 + below(writer, 4), depth + 1);
    put(writer, "add.u32 %%r%u, %%r%u, 1; setp.lt.u32 %%p%u, %%r%u, ", 24 + depth, 24 + depth,
        4 + depth, 24 + depth);
    if (below(writer, 2)) { /* each lane as often as it likes */
        put(writer, "6; and.b32 %%r20, %%r%u, 3; setp.lt.u32 %%p%u, %%r%u, %%r20;\n",
            any_register(writer), 4 + depth, 24 + depth);
    } else {
        put(writer, "%u;\n", 3 + below(writer, 3));
    }
    put(writer, "@%%p%u bra loop%u;\n", 4 + depth, label);
}

/* What all threads of a block do together: only where none has left. */
static void together(struct writer *writer) {
    unsigned reg = any_register(writer);
    switch (below(writer, 4)) {
    case 0:
        put(writer, "bar.sync 0; st.shared.u32 [%%r30], %%r%u; bar.sync 0;\n", reg);
        put(writer, "ld.shared.u32 %%r%u, [%%r31];\n", any_register(writer));
        break;
    case 1:
        put(writer, "bar.sync 0; atom.shared.add.u32 %%r20, [cell], %%r%u; bar.sync 0;\n", reg);
        put(writer, "ld.shared.u32 %%r%u, [cell];\n", any_register(writer));
        break;
    case 2:
        put(writer, "bar.red.popc.u32 %%r%u, 0, %%p%u;\n", reg, below(writer, 4));
        break;
    default:
        put(writer, "activemask.b32 %%r20; shfl.sync.bfly.b32 %%r%u, %%r%u, %u, 31, %%r20;\n", reg,
            any_register(writer), 1 + below(writer, 15));
    }
}

static void statements(struct writer *writer, unsigned count, unsigned depth) {
    for (unsigned i = 0; i < count; i++) {
        unsigned which = below(writer, 21);
        if (which >= 16 && which < 18)
            packed(writer);
        else if (which >= 18 && which < 20)
            several(writer);
        else if (which == 20 && depth == 0 && writer->warps && below(writer, 2))
            matrix(writer);
        else if (which == 20)
            runtime(writer);
        else if (which < 6)
            arithmetic(writer);
        else if (which < 8)
            wider(writer);
        else if (which < 10)
            compare(writer);
        else if (which < 13)
            memory(writer);
        else if (which == 13 && depth < 3)
            either(writer, depth);
        else if (which == 14 && depth < 2)
            loop(writer, depth);
        else if (depth == 0)
            together(writer);
    }
}

static void write_kernel(struct writer *writer) {
    put(writer,
        ".version 8.8\n.target sm_90\n.address_size 64\n"
        ".extern .func (.param .b64 to) memcpy (.param .b64 d, .param .b64 s, .param .b64 n);\n"
        ".func (.reg .b32 %%result) odd(.reg .b32 %%x) {\n"
        "add.u32 %%result, %%x, %%x; add.u32 %%result, %%result, 1; ret; }\n"
        ".visible .entry k(.param .u64 out, .param .u64 in) {\n"
        ".reg .pred %%p<8>; .reg .b32 %%r<40>; .reg .b64 %%rd<24>;\n"
        ".reg .b128 %%q<2>;\n"
        ".shared .align 4 .b32 cell[1024];\n"
        "ld.param.u64 %%rd8, [out]; ld.param.u64 %%rd9, [in];\n"
        "mov.u32 %%r0, %%tid.x; mov.u32 %%r1, %%tid.y; mov.u32 %%r2, %%ctaid.x;\n"
        "mov.u32 %%r3, %%ntid.x; mov.u32 %%r5, %%tid.z; mov.u32 %%r6, %%ntid.y;\n"
        "mad.lo.u32 %%r4, %%r5, %%r6, %%r1; mad.lo.u32 %%r4, %%r4, %%r3, %%r0;\n"
        "mov.u32 %%r7, 7; mov.u32 %%r8, 0x3f800000; mov.u32 %%r9, %%laneid;\n"
        "mov.u32 %%r10, %%nctaid.x; mul.lo.u32 %%r11, %%r4, 3;\n"
        "mul.wide.u32 %%rd10, %%r4, 4; add.s64 %%rd10, %%rd9, %%rd10;\n"
        "cvt.u64.u32 %%rd11, %%r4; add.s64 %%rd11, %%rd9, %%rd11;\n"
        "mad.lo.u32 %%r20, %%r1, 64, %%r0; and.b32 %%r20, %%r20, 1023;\n"
        "mul.wide.u32 %%rd12, %%r20, 4; add.s64 %%rd12, %%rd9, %%rd12;\n"
        "mul.wide.u32 %%rd13, %%r4, 16; add.s64 %%rd13, %%rd9, %%rd13;\n"
        "mul.lo.u32 %%r20, %%r3, %%r6; mov.u32 %%r21, %%ntid.z; mul.lo.u32 %%r20, %%r20, %%r21;\n"
        "mad.lo.u32 %%r20, %%r2, %%r20, %%r4; mul.wide.u32 %%rd14, %%r20, %u;\n"
        "add.s64 %%rd14, %%rd8, %%rd14; mov.u64 %%rd0, 1; mov.u64 %%rd1, %%rd9;\n"
        "sub.s64 %%rd1, %%rd1, %%rd9; mov.u64 %%rd2, -5; cvt.u64.u32 %%rd3, %%r4;\n"
        "mov.u32 %%r20, cell; shl.b32 %%r21, %%r4, 2; add.u32 %%r30, %%r20, %%r21;\n"
        "xor.b32 %%r21, %%r21, 12; add.u32 %%r31, %%r20, %%r21; mov.u32 %%r20, 0;\n"
        "st.shared.u32 [%%r30], %%r20; st.shared.u32 [%%r31], %%r20; bar.sync 0;\n"
        "setp.lt.u32 %%p0, %%r0, 5; setp.ne.u32 %%p1, %%r4, 77; setp.eq.u32 %%p2, %%r1, 1;\n"
        "setp.ge.u32 %%p3, %%r4, 40; mov.u32 %%r22, 0;\n"
        "mov.u64 %%rd15, 8; mov.u64 %%rd16, %%rd14; add.s64 %%rd17, %%rd14, 3;\n"
        "mov.b128 %%q0, {%%rd0, %%rd3}; mov.b128 %%q1, {%%rd3, %%rd2};\n"
        "@%%p0 st.global.u64 [%%rd14], %%rd0; @!%%p0 st.global.u64 [%%rd14], %%rd3;\n",
        4 * (RESULTS + 2));
    statements(writer, 12 + below(writer, 20), 0);
    if (below(writer, 3) == 0)
        put(writer, "call (%%r%u), odd, (%%r%u);\n", any_register(writer), any_register(writer));
    statements(writer, below(writer, 6), 0);
    /* Some leave early; what follows has no barriers. */
    if (below(writer, 2))
        put(writer, "@%%p%u st.global.u32 [%%rd14], %%r4; @%%p%u exit;\n", 1, 1);
    statements(writer, below(writer, 12), 3);
    for (unsigned i = 0; i < RESULTS; i++)
        put(writer, "st.global.u32 [%%rd14+%u], %%r%u;\n", 4 * i, i);
    put(writer, "ret; }\n");
}

/* ---- comparing ------------------------------------------------------------------------------- */

static const unsigned shapes[][3] = {{32, 1, 1},  {20, 1, 1},  {64, 1, 1},  {100, 1, 1},
                                     {128, 1, 1}, {256, 1, 1}, {16, 16, 1}, {8, 8, 2},
                                     {48, 3, 1},  {32, 4, 1},  {16, 3, 2},  {64, 5, 1},
                                     {1, 64, 1},  {2, 50, 1},  {300, 1, 1}, {16, 5, 5}};
#define SHAPES (sizeof shapes / sizeof shapes[0])

struct outcome {
    uint32_t words[2 * MOST_THREADS * (RESULTS + 2)];
    struct sg_grid_fault fault;
};

static void run(const char *text, const unsigned *shape, const uint32_t *in, enum sg_level level,
                bool apart, uint64_t budget, struct outcome *outcome) {
    memset(outcome, 0, sizeof *outcome);
    struct kernel kernel = KERNEL_WITH(text, level, 2, shape[0], outcome->words, in);
    kernel.launch.block[1] = shape[1];
    kernel.launch.block[2] = shape[2];
    kernel.launch.apart = apart;
    outcome->fault = kernel_run(&kernel, budget);
    kernel_free(&kernel);
}

static void compare_ways(uint64_t seed, const uint32_t *in) {
    static struct writer writer;
    static struct outcome one, other;
    writer = (struct writer){.seed = seed};
    const unsigned *shape = shapes[below(&writer, SHAPES)];
    writer.warps = shape[0] * shape[1] * shape[2] % 32 == 0;
    write_kernel(&writer);
    uint64_t budget = below(&writer, 2) ? 0 : 100 + below(&writer, 3000);
    run(writer.text, shape, in, SG_LEVEL_GENERIC, true, 0, &one);
    if (one.fault.kind != SG_FAULT_COUNT)
        print_message("%s\n", writer.text);
    assert_int_equal(one.fault.kind, SG_FAULT_COUNT);
    FOR_EACH_LEVEL(level) {
        run(writer.text, shape, in, (enum sg_level)level, false, budget, &other);
        bool same = other.fault.kind == SG_FAULT_COUNT &&
                    memcmp(one.words, other.words, sizeof one.words) == 0;
        for (size_t i = 0; !same && i < sizeof one.words / 4; i++)
            if (one.words[i] != other.words[i]) {
                print_message("%s\nseed %llu, level %d, block %u,%u,%u: thread %zu word %zu: %08x, "
                              "by itself %08x\n",
                              writer.text, (unsigned long long)seed, level, shape[0], shape[1],
                              shape[2], i / (RESULTS + 2), i % (RESULTS + 2), other.words[i],
                              one.words[i]);
                break;
            }
        assert_true(same);
    }
}

TEST(random_kernels_compute_the_same_with_and_without_lock_step) {
    static uint32_t in[WORDS];
    const char *more = getenv("GPUMEM_TEST_SEEDS");
    uint64_t seeds = more ? strtoull(more, NULL, 10) : 150;
    for (uint32_t i = 0; i < WORDS; i++)
        in[i] = i * 2654435761u ^ i >> 3;
    for (uint64_t seed = 0; seed < seeds; seed++)
        compare_ways(seed, in);
}
