/*
 * Random programs whose results PTX defines. A statement is one of `simple`, or contains others:
 * branches, bounded loops, switches, calls, exchanges through shared memory, warp functions. %mask
 * holds the lanes that execute a statement together, so warp functions are used in divergent code
 * too; barriers are only where the whole block arrives.
 */
#include "program_text.h"

#include "ptx.h"
#include "sizes.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define FUNCTIONS 4
#define DEEPEST   3 /* statements within statements */

struct text {
    FILE *file;
    uint64_t random;
    unsigned statement; /* the last that began */
    unsigned muted;     /* open statements that are left out */
    unsigned label;
    unsigned callable; /* functions before this one may be called */
    bool uniform;      /* the whole block executes this together */
    const bool *drop;
    unsigned drops;
};

/* $r $d $h: registers of 32, 64 and 16 bits; $f $g: of f32 and f64; $p: predicates; $i: a constant,
 * $s: a small one, $b: one below 32. A destination may also be a source. NaNs of f64 are replaced
 * by one NaN. */
static const char *const simple[] = {
    "add.s32 $r, $r, $r;",
    "add.u32 $r, $r, $i;",
    "sub.s32 $r, $r, $r;",
    "mul.lo.s32 $r, $r, $r;",
    "mul.hi.u32 $r, $r, $r;",
    "mul.hi.s32 $r, $r, $r;",
    "mul.wide.s32 $d, $r, $r;",
    "mul.wide.u32 $d, $r, $i;",
    "mad.lo.s32 $r, $r, $r, $r;",
    "mad.hi.s32 $r, $r, $r, $r;",
    "mad.wide.u32 $d, $r, $r, $d;",
    "mad24.lo.s32 $r, $r, $r, $r;",
    "mul24.hi.u32 $r, $r, $r;",
    "add.s64 $d, $d, $d;",
    "sub.u64 $d, $d, $d;",
    "mul.lo.u64 $d, $d, $d;",
    "mul.hi.s64 $d, $d, $d;",
    "add.sat.s32 $r, $r, $r;",
    "sub.sat.s32 $r, $r, $r;",
    "and.b32 $r, $r, $r;",
    "or.b32 $r, $r, $i;",
    "xor.b32 $r, $r, $r;",
    "xor.b64 $d, $d, $d;",
    "and.b64 $d, $d, $d;",
    "not.b32 $r, $r;",
    "cnot.b32 $r, $r;",
    "shl.b32 $r, $r, $s;",
    "shr.u32 $r, $r, $r;",
    "shr.s32 $r, $r, $s;",
    "shl.b64 $d, $d, $r;",
    "shr.s64 $d, $d, $s;",
    "shf.l.wrap.b32 $r, $r, $r, $r;",
    "shf.r.clamp.b32 $r, $r, $r, $s;",
    "bfe.u32 $r, $r, $s, $b;",
    "bfe.s32 $r, $r, $r, $r;",
    "bfi.b32 $r, $r, $r, $s, $b;",
    "bfe.s64 $d, $d, $s, $s;",
    "bfind.u32 $r, $r;",
    "bfind.shiftamt.s32 $r, $r;",
    "clz.b64 $r, $d;",
    "popc.b32 $r, $r;",
    "popc.b64 $r, $d;",
    "brev.b32 $r, $r;",
    "prmt.b32 $r, $r, $r, $r;",
    "prmt.b32 $r, $r, $r, $i;",
    "lop3.b32 $r, $r, $r, $r, 0x96;",
    "lop3.b32 $r, $r, $r, $r, 0xca;",
    "lop3.b32 $r, $r, $r, $r, 0x1d;",
    "sad.s32 $r, $r, $r, $r;",
    "dp4a.s32.u32 $r, $r, $r, $r;",
    "dp2a.lo.u32.s32 $r, $r, $r, $r;",
    "abs.s32 $r, $r;",
    "neg.s64 $d, $d;",
    "min.s32 $r, $r, $r;",
    "max.u32 $r, $r, $r;",
    "min.u64 $d, $d, $d;",
    "max.s64 $d, $d, $d;",
    "{ .reg .b32 t; or.b32 t, $r, 1; div.u32 $r, $r, t; }",
    "{ .reg .b32 t; and.b32 t, $r, 0xff; or.b32 t, t, 1; rem.s32 $r, $r, t; }",
    "{ .reg .b64 t; or.b64 t, $d, 1; div.u64 $d, $d, t; }",
    "{ .reg .b64 t; and.b64 t, $d, 0xffff; or.b64 t, t, 1; rem.s64 $d, $d, t; }",
    "add.cc.u32 $r, $r, $r; addc.u32 $r, $r, $r;",
    "sub.cc.u32 $r, $r, $r; subc.cc.u32 $r, $r, $r; addc.u32 $r, $r, 0;",
    "mad.lo.cc.u32 $r, $r, $r, $r; madc.hi.u32 $r, $r, $r, $r;",
    "cvt.u32.u64 $r, $d;",
    "cvt.s64.s32 $d, $r;",
    "cvt.u64.u32 $d, $r;",
    "cvt.s32.s8 $r, $r;",
    "cvt.u32.u16 $r, $h;",
    "cvt.u16.u32 $h, $r;",
    "mov.b64 $d, {$r,$r};",
    "mov.b64 {$r,$r}, $d;",
    "mov.b32 $r, {$h,$h};",
    "mov.b32 {$h,$h}, $r;",
    "add.s16 $h, $h, $h;",
    "mul.lo.u16 $h, $h, $h;",
    "mad.lo.s16 $h, $h, $h, $h;",
    "shr.s16 $h, $h, $s;",
    "xor.b16 $h, $h, $h;",
    "min.s16 $h, $h, $h;",
    "setp.lt.s32 $p, $r, $r;",
    "setp.hi.u32 $p, $r, $i;",
    "setp.eq.s64 $p, $d, $d;",
    "setp.ge.and.s32 $p, $r, $r, $p;",
    "setp.ne.xor.u32 $p, $r, $r, !$p;",
    "setp.lt.f32 $p, $f, $f;",
    "setp.neu.f32 $p, $f, $f;",
    "setp.num.f64 $p, $g, $g;",
    "setp.ltu.f64 $p, $g, $g;",
    "and.pred $p, $p, $p;",
    "xor.pred $p, $p, $p;",
    "not.pred $p, $p;",
    "selp.b32 $r, $r, $r, $p;",
    "selp.b64 $d, $d, $d, $p;",
    "selp.f32 $f, $f, $f, $p;",
    "set.lt.u32.s32 $r, $r, $r;",
    "set.gt.f32.f32 $f, $f, $f;",
    "slct.s32.s32 $r, $r, $r, $r;",
    "slct.f32.f32 $f, $f, $f, $f;",
    "add.rn.f32 $f, $f, $f;",
    "sub.rz.f32 $f, $f, $f;",
    "mul.rn.ftz.f32 $f, $f, $f;",
    "mul.rm.f32 $f, $f, $f;",
    "fma.rn.f32 $f, $f, $f, $f;",
    "fma.rp.ftz.f32 $f, $f, $f, $f;",
    "fma.rn.sat.f32 $f, $f, $f, $f;",
    "div.rn.f32 $f, $f, $f;",
    "sqrt.rn.f32 $f, $f;",
    "rcp.rn.ftz.f32 $f, $f;",
    "min.f32 $f, $f, $f;",
    "max.NaN.f32 $f, $f, $f;",
    "abs.f32 $f, $f;",
    "neg.f32 $f, $f;",
    "copysign.f32 $f, $f, $f;",
    "cvt.rn.f32.s32 $f, $r;",
    "cvt.rz.f32.u64 $f, $d;",
    "cvt.rzi.s32.f32 $r, $f;",
    "cvt.rni.u32.f32 $r, $f;",
    "cvt.rmi.s64.f32 $d, $f;",
    "cvt.rpi.f32.f32 $f, $f;",
    "cvt.rn.f16.f32 $h, $f;",
    "cvt.f32.f16 $f, $h;",
    "cvt.rn.bf16.f32 $h, $f;",
    "cvt.f64.f32 $g, $f; $n",
    "cvt.rn.f32.f64 $f, $g;",
    "cvt.rn.f64.s64 $g, $d;",
    "cvt.rzi.s32.f64 $r, $g;",
    "add.rn.f64 $g, $g, $g; $n",
    "mul.rn.f64 $g, $g, $g; $n",
    "fma.rz.f64 $g, $g, $g, $g; $n",
    "div.rn.f64 $g, $g, $g; $n",
    "sqrt.rn.f64 $g, $g; $n",
    "add.rn.f16 $h, $h, $h;",
    "fma.rn.f16x2 $r, $r, $r, $r;",
    "mul.rn.bf16x2 $r, $r, $r;",
    "max.f16x2 $r, $r, $r;",
    "mov.b32 $f, $r;",
    "mov.b32 $r, $f;",
    "testp.subnormal.f32 $p, $f;",
    "@$p add.s32 $r, $r, $r;",
    "@!$p xor.b32 $r, $r, $i;",
    "@$p mov.b64 $d, $d;",
    "@!$p fma.rn.f32 $f, $f, $f, $f;",
    "vote.sync.ballot.b32 $r, $p, %mask;",
    "vote.sync.any.pred $p, $p, %mask;",
    "vote.sync.all.pred $p, $p, %mask;",
    "vote.sync.uni.pred $p, $p, %mask;",
    "{ .reg .b32 t; and.b32 t, $r, 3; match.any.sync.b32 $r, t, %mask; }",
    "{ .reg .b64 t; and.b64 t, $d, 1; match.all.sync.b64 $r|$p, t, %mask; }",
    "redux.sync.add.u32 $r, $r, %mask;",
    "redux.sync.min.s32 $r, $r, %mask;",
    "redux.sync.xor.b32 $r, $r, %mask;",
    "bar.warp.sync %mask;",
    /* Values of lanes that take part; other lanes' results do not change the register. */
    ("{ .reg .b32 t, v, k, x; .reg .pred q; mov.u32 x, $b; xor.b32 t, %lane, x; "
     "shr.u32 k, %mask, t; and.b32 k, k, 1; setp.ne.u32 q, k, 0; "
     "shfl.sync.bfly.b32 v, $r, x, 31, %mask; @q mov.b32 $r, v; }"),
    /* The thread's own memory. */
    ("{ .reg .b32 t; .reg .b64 u; and.b32 t, $r, 15; mad.wide.u32 u, t, 4, %local; st.local.b32 "
     "[u], $r; }"),
    ("{ .reg .b32 t; .reg .b64 u; and.b32 t, $r, 15; mad.wide.u32 u, t, 4, %local; ld.local.b32 "
     "$r, "
     "[u]; }"),
    "st.local.v2.b32 [%local+8], {$r,$r};",
    "ld.local.s8 $r, [%local+5];",
    "st.global.b64 [%own], $d;",
    "ld.global.b64 $d, [%own];",
    "st.global.v4.b32 [%own+16], {$r,$r,$r,$r};",
    "ld.global.v2.b32 {$r,$r}, [%own+24];",
    "ld.global.u16 $r, [%own+18];",
    "st.b8 [%own+9], $r;",
    "atom.global.add.u32 $r, [%own+12], $r;",
    "atom.global.cas.b32 $r, [%own+12], $r, $r;",
    "atom.global.exch.b64 $d, [%own], $d;",
    "atom.global.max.s64 $d, [%own], $d;",
    "atom.global.inc.u32 $r, [%own+8], $r;",
    /* Sums over all threads, read after a barrier or by the host. */
    "red.shared.add.u32 [sums], $r;",
    "red.shared.xor.b32 [sums+4], $r;",
    "red.shared.max.s32 [sums+8], $r;",
    "red.shared.min.u32 [sums+12], $r;",
    "red.shared.add.u64 [sums+16], $d;",
    "red.global.add.u32 [%all], $r;",
    "red.global.xor.b64 [%all+8], $d;",
    "red.global.min.s32 [%all+16], $r;",
    "red.global.max.u64 [%all+24], $d;",
};

static uint64_t next(struct text *text) {
    return ptx_mix(text->random++);
}

static unsigned below(struct text *text, unsigned bound) {
    return (unsigned)(next(text) >> 33) % bound;
}

static void say(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void say(struct text *text, const char *format, ...) {
    va_list list;
    if (text->muted)
        return;
    va_start(list, format);
    vfprintf(text->file, format, list);
    va_end(list);
}

/* Begins a statement that can be left out; returns whether it stays. */
static bool begins(struct text *text) {
    unsigned number = ++text->statement;
    bool left_out = number < text->drops && text->drop[number];
    text->muted += left_out;
    say(text, "/* %u */ ", number);
    return left_out;
}

static void ends(struct text *text, bool left_out) {
    say(text, "\n");
    text->muted -= left_out;
}

static void put_constant(struct text *text) {
    static const uint32_t edges[] = {0,          1,          31,         32,
                                     0x7fffffff, 0x80000000, 0xffffffff, 0x3f800000,
                                     0x7f800000, 0x00800000, 0xffff,     0x00400000};
    uint64_t r = next(text);
    say(text, "0x%x", r & 1 ? edges[(r >> 8) % COUNT(edges)] : (uint32_t)(r >> 32));
}

static void put_simple(struct text *text, const char *from) {
    for (; *from != '\0'; from++) {
        if (*from != '$') {
            say(text, "%c", *from);
            continue;
        }
        switch (*++from) {
        case 'r':
            say(text, "%%r%u", below(text, 10));
            break;
        case 'i':
            put_constant(text);
            break;
        case 's':
            say(text, "%u", below(text, 70));
            break;
        case 'b':
            say(text, "%u", below(text, 32));
            break;
        case 'n':
            for (unsigned g = 0; g < 3; g++)
                say(text,
                    "testp.notanumber.f64 %%nan, %%g%u; "
                    "@%%nan mov.b64 %%g%u, 0x7ff8000000000000; ",
                    g, g);
            break;
        case 'g':
            say(text, "%%g%u", below(text, 3));
            break;
        default:
            say(text, "%%%c%u", *from, below(text, 4));
        }
    }
}

static void put_statements(struct text *text, unsigned depth, unsigned count);

/* Both sides of a branch; inside, %mask names the lanes that took it. */
static void put_branch(struct text *text, unsigned depth) {
    unsigned label = text->label++, p = below(text, 4);
    bool other = next(text) & 1, outside = text->uniform;
    text->uniform = false;
    say(text,
        "{ .reg .b32 before, took; .reg .pred p; mov.pred p, %%p%u; mov.b32 before, %%mask;\n"
        "vote.sync.ballot.b32 took, p, before; @!p bra ELSE%u;\nmov.b32 %%mask, took;\n",
        p, label);
    put_statements(text, depth + 1, 1 + below(text, 5));
    say(text, "bra DONE%u;\nELSE%u: not.b32 took, took; and.b32 %%mask, before, took;\n", label,
        label);
    if (other)
        put_statements(text, depth + 1, 1 + below(text, 5));
    say(text, "DONE%u: mov.b32 %%mask, before; }", label);
    text->uniform = outside;
}

/* A loop of at most seven iterations; a register of each lane says how many. */
static void put_loop(struct text *text, unsigned depth) {
    unsigned label = text->label++, r = below(text, 10);
    bool outside = text->uniform;
    text->uniform = false;
    say(text,
        "{ .reg .b32 before, left; .reg .pred more; mov.b32 before, %%mask; and.b32 left, %%r%u, "
        "7;\n"
        "LOOP%u: setp.ne.u32 more, left, 0; { .reg .b32 t; vote.sync.ballot.b32 t, more, %%mask; "
        "@more mov.b32 %%mask, t; }\n@!more bra LEAVE%u; sub.u32 left, left, 1;\n",
        r, label, label);
    put_statements(text, depth + 1, 1 + below(text, 4));
    say(text, "bra LOOP%u;\nLEAVE%u: mov.b32 %%mask, before; }", label, label);
    text->uniform = outside;
}

/* A loop with the same count for each thread of the block, so that it may contain barriers. */
static void put_even_loop(struct text *text, unsigned depth) {
    unsigned label = text->label++, times = 1 + below(text, 5);
    say(text, "{ .reg .b32 left; .reg .pred more; mov.u32 left, %u;\nAGAIN%u:\n", times, label);
    put_statements(text, depth + 1, 1 + below(text, 4));
    say(text, "sub.u32 left, left, 1; setp.ne.u32 more, left, 0; @more bra%s AGAIN%u; }",
        next(text) & 1 ? ".uni" : "", label);
}

static void put_switch(struct text *text, unsigned depth) {
    unsigned label = text->label++, r = below(text, 10);
    bool outside = text->uniform;
    text->uniform = false;
    say(text,
        "{ .reg .b32 before, way; mov.b32 before, %%mask; and.b32 way, %%r%u, 3;\n"
        "match.any.sync.b32 %%mask, way, before; TABLE%u: .branchtargets W0_%u, W1_%u, W2_%u, "
        "W3_%u;\n"
        "brx.idx way, TABLE%u;\n",
        r, label, label, label, label, label, label);
    for (unsigned i = 0; i < 4; i++) {
        say(text, "W%u_%u:\n", i, label);
        put_statements(text, depth + 1, 1 + below(text, 3));
        say(text, "bra OUT%u;\n", label);
    }
    say(text, "OUT%u: mov.b32 %%mask, before; }", label);
    text->uniform = outside;
}

static void put_call(struct text *text) {
    unsigned function = below(text, text->callable), a = below(text, 10), b = below(text, 10);
    unsigned d = below(text, 4), to = below(text, 10), wide = below(text, 4);
    bool indirect = next(text) % 3 == 0;
    say(text,
        "{ .param .b32 ax; .param .b32 ay; .param .b64 az; .param .b32 am; .param .align 8 .b8 "
        "ares[16];\n"
        "st.param.b32 [ax], %%r%u; st.param.b32 [ay], %%r%u; st.param.b64 [az], %%d%u; "
        "st.param.b32 [am], %%mask;\n",
        a, b, d);
    if (indirect)
        say(text,
            "{ .reg .b64 t; mov.u64 t, f%u; PROTO%u: .callprototype (.param .align 8 .b8 _[16]) _ "
            "(.param .b32 _, .param .b32 _, .param .b64 _, .param .b32 _);\n"
            "call (ares), t, (ax, ay, az, am), PROTO%u; }",
            function, text->label, text->label);
    else
        say(text, "call (ares), f%u, (ax, ay, az, am);", function);
    text->label++;
    say(text, "\nld.param.b32 %%r%u, [ares]; ld.param.b64 %%d%u, [ares+8]; }", to, wide);
}

/* Each thread passes a value to another of its block. */
static void put_exchange(struct text *text) {
    unsigned a = below(text, 10), to = below(text, 10), by = 1 + below(text, 95);
    say(text,
        "{ .reg .b32 t, u; bar.warp.sync %%mask; bar.sync 0; mov.u32 u, given; mad.lo.u32 t, %%t, "
        "4, u; st.shared.b32 "
        "[t], "
        "%%r%u; bar.sync 0;\nadd.u32 t, %%t, %u; rem.u32 t, t, 96; mad.lo.u32 t, t, 4, u; "
        "ld.shared.b32 %%r%u, [t]; }",
        a, by, to);
}

static void put_barrier(struct text *text) {
    unsigned r = below(text, 10), p = below(text, 4), number = below(text, 16),
             which = below(text, 5);
    /* bar is aligned: it requires a converged warp, which the end of a branch does not ensure. */
    say(text, "bar.warp.sync %%mask; ");
    switch (which) {
    case 0:
        say(text, "bar.red.popc.u32 %%r%u, %u, %%p%u;", r, number, p);
        break;
    case 1:
        say(text, "barrier.red.and.pred %%p%u, %u, %%p%u;", p, number, p);
        break;
    case 2:
        say(text, "bar.red.or.pred %%p%u, %u, !%%p%u;", p, number, p);
        break;
    case 3:
        say(text, "bar.sync %u; ld.shared.b32 %%r%u, [sums+%u]; bar.sync %u;", number, r,
            4 * below(text, 6), number);
        break;
    default:
        say(text, "barrier.sync %u; mov.u32 %%r%u, %u;", number, r, number);
    }
}

static void put_statement(struct text *text, unsigned depth) {
    bool left_out = begins(text);
    unsigned way = below(text, 100);
    if (depth < DEEPEST && way < 8)
        put_branch(text, depth);
    else if (depth < DEEPEST && way < 14)
        put_loop(text, depth);
    else if (depth < DEEPEST && way < 17)
        put_switch(text, depth);
    else if (depth < DEEPEST && way < 20 && text->uniform)
        put_even_loop(text, depth);
    else if (way < 26 && text->callable)
        put_call(text);
    else if (way < 33 && text->uniform)
        put_exchange(text);
    else if (way < 38 && text->uniform)
        put_barrier(text);
    else
        put_simple(text, simple[below(text, COUNT(simple))]);
    ends(text, left_out);
}

static void put_statements(struct text *text, unsigned depth, unsigned count) {
    while (count-- > 0)
        put_statement(text, depth);
}

/* Registers of the kernel and of each function, all written before anything reads them. */
static void put_registers(struct text *text) {
    say(text,
        ".reg .b32 %%r<10>, %%mask, %%lane, %%t, %%x; .reg .b64 %%d<4>, %%local, %%own, %%all; "
        ".reg .f32 %%f<4>;\n.reg .f64 %%g<3>; .reg .b16 %%h<4>; .reg .pred %%p<4>, %%nan;\n"
        ".local .align 16 .b8 frame[64];\n");
}

static void put_beginning(struct text *text) {
    say(text, "mov.u64 %%local, frame; mov.u32 %%lane, %%laneid; mov.u32 %%t, %%tid.x;\n");
    for (unsigned i = 2; i < 10; i++)
        say(text, "mad.lo.u32 %%r%u, %%r%u, 0x%x, %%r%u;\n", i, i - 2, (uint32_t)next(text) | 1,
            i - 1);
    for (unsigned i = 1; i < 4; i++)
        say(text, "mad.wide.u32 %%d%u, %%r%u, %%r%u, %%d%u;\n", i, i, i + 1, i - 1);
    for (unsigned i = 0; i < 4; i++)
        say(text,
            i & 1
                ? "cvt.rn.f32.s32 %%f%u, %%r%u; cvt.u16.u32 %%h%u, %%r%u; setp.lt.s32 %%p%u, "
                  "%%r%u, 0;\n"
                : "mov.b32 %%f%u, %%r%u; cvt.u16.u32 %%h%u, %%r%u; setp.gt.s32 %%p%u, %%r%u, 7;\n",
            i, i + 2, i, i + 3, i, i + 4);
    for (unsigned i = 0; i < 3; i++)
        say(text, "cvt.rn.f64.s64 %%g%u, %%d%u;\n", i, i);
    for (unsigned i = 0; i < 64; i += 8)
        say(text, "st.local.b64 [%%local+%u], %%d%u;\n", i, i / 8 % 4);
}

/* %x becomes a hash of all registers. */
static void put_end(struct text *text) {
    put_simple(text, "$n");
    say(text, "\nmov.b32 %%x, %%mask;\n");
    for (unsigned i = 0; i < 10; i++)
        say(text, "mad.lo.u32 %%x, %%x, 0x9E3779B1, %%r%u;\n", i);
    for (unsigned i = 0; i < 4; i++)
        say(text,
            "{ .reg .b32 t; mov.b32 t, %%f%u; mad.lo.u32 %%x, %%x, 0x9E3779B1, t; cvt.u32.u16 t, "
            "%%h%u;\n"
            "mad.lo.u32 %%x, %%x, 0x85EBCA77, t; selp.b32 t, 1, 0, %%p%u; mad.lo.u32 %%x, %%x, 5, "
            "t; }\n",
            i, i, i);
    for (unsigned i = 0; i < 7; i++)
        say(text,
            "{ .reg .b32 t, u; mov.b64 {t,u}, %%%c%u; mad.lo.u32 %%x, %%x, 0x9E3779B1, t;\n"
            "mad.lo.u32 %%x, %%x, 0x9E3779B1, u; }\n",
            i < 4 ? 'd' : 'g', i < 4 ? i : i - 4);
    for (unsigned i = 0; i < 64; i += 4)
        say(text,
            "{ .reg .b32 t; ld.local.b32 t, [%%local+%u]; mad.lo.u32 %%x, %%x, 0x85EBCA77, t; }\n",
            i);
}

static void put_function(struct text *text, unsigned number) {
    say(text,
        ".func (.param .align 8 .b8 res[16]) f%u(.param .b32 x, .param .b32 y, .param .b64 z, "
        ".param .b32 m) {\n",
        number);
    put_registers(text);
    say(text, "ld.param.b32 %%r0, [x]; ld.param.b32 %%r1, [y]; ld.param.b64 %%d0, [z]; "
              "ld.param.b32 %%mask, [m];\n"
              "mov.u64 %%all, everything; mov.u32 %%x, %%ctaid.x; mad.lo.u32 %%x, %%x, 96, 0; "
              "mov.u32 %%t, %%tid.x; add.u32 %%x, %%x, %%t; mov.u64 %%own, owns; "
              "mad.wide.u32 %%own, %%x, 32, %%own;\n");
    put_beginning(text);
    put_statements(text, 1, 4 + below(text, 10));
    put_end(text);
    say(text, "st.param.b32 [res], %%x; st.param.b64 [res+8], %%d%u; ret; }\n", below(text, 4));
}

static void put_leaving(struct text *text) {
    bool left_out = begins(text);
    unsigned lane = below(text, 96);
    say(text,
        "{ .reg .pred p; .reg .b32 took; setp.eq.u32 p, %%t, %u; vote.sync.ballot.b32 took, p, "
        "%%mask; "
        "@p exit; not.b32 took, took; and.b32 %%mask, %%mask, took; }",
        lane);
    ends(text, left_out);
}

char *ptx_program_text(uint64_t seed, const bool *drop, unsigned drops, unsigned *statements) {
    char *result;
    size_t size;
    struct text text = {.random = ptx_mix(seed), .drop = drop, .drops = drops};
    text.file = open_memstream(&result, &size);
    if (text.file == NULL)
        abort();
    say(&text,
        PTX_HEAD
        "/* seed %llu */\n.shared .align 8 .b8 sums[24];\n.shared .align 4 .b8 given[384];\n"
        ".visible .global .align 8 .b8 everything[32];\n"
        ".visible .global .align 16 .b8 owns[%u];\n",
        (unsigned long long)seed, PTX_PROGRAM_THREADS * PTX_PROGRAM_BLOCKS * 32);
    unsigned functions = below(&text, FUNCTIONS + 1);
    for (; text.callable < functions; text.callable++)
        put_function(&text, text.callable);
    say(&text, ".visible .entry k(.param .u64 out) {\n");
    put_registers(&text);
    say(&text,
        ".reg .b64 %%out; mov.u32 %%x, %%ctaid.x; mov.u32 %%t, %%tid.x; mad.lo.u32 %%x, %%x, %u, "
        "%%t;\n"
        "mov.u64 %%all, everything; mov.u64 %%own, owns; mad.wide.u32 %%own, %%x, 32, %%own;\n"
        "mul.lo.u32 %%r0, %%x, 0x9E3779B1; shr.u32 %%r1, %%r0, 15; xor.b32 %%r0, %%r0, %%r1;\n"
        "mul.lo.u32 %%r0, %%r0, 0x%x; shr.u32 %%r1, %%r0, 13; xor.b32 %%r0, %%r0, %%r1;\n"
        "mul.wide.u32 %%d0, %%r0, %%r1; mov.u32 %%mask, -1;\n"
        "{ .reg .pred p; .reg .b32 s; mov.b32 s, 0; setp.eq.u32 p, %%t, 0; @p st.shared.v4.b32 "
        "[sums], "
        "{s,s,s,s};\n@p st.shared.v2.b32 [sums+16], {s,s}; mov.u32 s, given; mad.lo.u32 s, %%t, 4, "
        "s; "
        "st.shared.b32 [s], %%t; bar.sync 0; }\n",
        PTX_PROGRAM_THREADS, (uint32_t)next(&text) | 1);
    put_beginning(&text);
    text.uniform = true;
    put_statements(&text, 0, 8 + below(&text, 24));
    if (next(&text) % 4 == 0) {
        put_leaving(&text);
        put_statements(&text, 0, 4 + below(&text, 8));
    }
    put_end(&text);
    say(&text,
        "ld.param.u64 %%out, [out]; mov.u32 %%r0, %%ctaid.x; mad.lo.u32 %%r0, %%r0, %u, %%t;\n"
        "mad.wide.u32 %%out, %%r0, 4, %%out; st.global.b32 [%%out], %%x;\n"
        "bar.warp.sync %%mask; bar.sync 0; setp.lt.u32 %%p0, %%t, 6; @!%%p0 bra OVER; mov.u32 "
        "%%r1, sums; "
        "mad.lo.u32 %%r1, %%t, 4, %%r1; ld.shared.b32 %%r2, [%%r1];\n"
        "mov.u32 %%r0, %%ctaid.x; mad.lo.u32 %%r0, %%r0, 6, %%t; ld.param.u64 %%out, [out];\n"
        "mad.wide.u32 %%out, %%r0, 4, %%out; st.global.b32 [%%out+%u], %%r2;\nOVER: ret; }\n",
        PTX_PROGRAM_THREADS, PTX_PROGRAM_THREADS * PTX_PROGRAM_BLOCKS * 4);
    fclose(text.file);
    *statements = text.statement;
    return result;
}
