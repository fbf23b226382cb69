/*
 * One module of PTX with a kernel for each way to sample a texture or reach a surface, each with
 * the parameters (out, in, handle, count): thread i reads eight words of `in`, as %f0 to %f7 and
 * %r0 to %r7, and writes four to `out`.
 */
#ifndef TEXTURE_TEXTS_H
#define TEXTURE_TEXTS_H

#include <stdio.h>

#define TEXTURE_KERNEL(name, body)                                                                 \
    ".visible .entry " name "(.param .u64 out, .param .u64 in, .param .u64 handle,\n"              \
    " .param .u32 count) {\n"                                                                      \
    ".reg .b64 %a, %b, %h; .reg .pred %p, %over; .reg .b32 %i, %n, %r<8>, %o<4>;\n"                \
    ".reg .f32 %f<8>; .reg .b16 %s<4>;\n"                                                          \
    "ld.param.u64 %a, [out]; ld.param.u64 %b, [in]; ld.param.u64 %h, [handle];\n"                  \
    "ld.param.u32 %n, [count]; mov.u32 %i, %ctaid.x; mov.u32 %o0, %ntid.x; mov.u32 %o1, %tid.x;\n" \
    "mad.lo.u32 %i, %i, %o0, %o1; setp.ge.u32 %over, %i, %n; @%over bra END;\n"                    \
    "mad.wide.u32 %a, %i, 16, %a; mad.wide.u32 %b, %i, 32, %b;\n"                                  \
    "ld.global.v4.b32 {%r0,%r1,%r2,%r3}, [%b]; ld.global.v4.b32 {%r4,%r5,%r6,%r7}, [%b+16];\n"     \
    "ld.global.v4.f32 {%f0,%f1,%f2,%f3}, [%b]; ld.global.v4.f32 {%f4,%f5,%f6,%f7}, [%b+16];\n"     \
    "mov.b32 %o0, 0; mov.b32 %o1, 0; mov.b32 %o2, 0; mov.b32 %o3, 0;\n" body                       \
    "\nst.global.v4.b32 [%a], {%o0,%o1,%o2,%o3};\nEND: ret; }\n"

#define TEXTURE_ALL "{%o0,%o1,%o2,%o3}"

static const char *const texture_parts[] = {
    ".version 8.0\n.target sm_70\n.address_size 64\n"
    ".visible .global .texref TX;\n.visible .global .surfref SF;\n",
    TEXTURE_KERNEL("t_1d", "tex.1d.v4.f32.f32 " TEXTURE_ALL ", [%h, {%f0}];"),
    TEXTURE_KERNEL("t_2d", "tex.2d.v4.f32.f32 " TEXTURE_ALL ", [%h, {%f0,%f1}];"),
    TEXTURE_KERNEL("t_3d", "tex.3d.v4.f32.f32 " TEXTURE_ALL ", [%h, {%f0,%f1,%f2,%f2}];"),
    TEXTURE_KERNEL("t_a1d", "tex.a1d.v4.f32.f32 " TEXTURE_ALL ", [%h, {%r3,%f0}];"),
    TEXTURE_KERNEL("t_a2d", "tex.a2d.v4.f32.f32 " TEXTURE_ALL ", [%h, {%r3,%f0,%f1,%f1}];"),
    TEXTURE_KERNEL("t_cube", "tex.cube.v4.f32.f32 " TEXTURE_ALL ", [%h, {%f0,%f1,%f2,%f2}];"),
    TEXTURE_KERNEL("t_acube", "tex.acube.v4.f32.f32 " TEXTURE_ALL ", [%h, {%r3,%f0,%f1,%f2}];"),
    TEXTURE_KERNEL("t_1d_u32", "tex.1d.v4.u32.f32 " TEXTURE_ALL ", [%h, {%f0}];"),
    TEXTURE_KERNEL("t_fetch", "tex.1d.v4.u32.s32 " TEXTURE_ALL ", [%h, {%r0}];"),
    TEXTURE_KERNEL("t_fetch_2d", "tex.2d.v4.u32.s32 " TEXTURE_ALL ", [%h, {%r0,%r1}];"),
    TEXTURE_KERNEL("t_f16", "tex.1d.v2.f16x2.f32 {%o0,%o1}, [%h, {%f0}];"),
    TEXTURE_KERNEL("t_level", "tex.level.2d.v4.f32.f32 " TEXTURE_ALL ", [%h, {%f0,%f1}], %f2;"),
    TEXTURE_KERNEL("t_base", "tex.base.2d.v4.f32.f32 " TEXTURE_ALL ", [%h, {%f0,%f1}];"),
    TEXTURE_KERNEL("t_grad", "tex.grad.2d.v4.f32.f32 " TEXTURE_ALL ", [%h, {%f0,%f1}], "
                             "{%f2,%f3}, {%f4,%f5};"),
    TEXTURE_KERNEL("t_offset", "tex.2d.v4.f32.f32 " TEXTURE_ALL ", [%h, {%f0,%f1}], {1,-2};"),
    TEXTURE_KERNEL("t_resident", "tex.2d.v4.f32.f32 {%o0,%o1,%o2,%o3}|%p, [%h, {%f0,%f1}];"
                                 "selp.u32 %o3, 1, 0, %p;"),
    TEXTURE_KERNEL("t_gather_r", "tld4.r.2d.v4.f32.f32 " TEXTURE_ALL ", [%h, {%f0,%f1}];"),
    TEXTURE_KERNEL("t_gather_g", "tld4.g.2d.v4.f32.f32 " TEXTURE_ALL ", [%h, {%f0,%f1}];"),
    TEXTURE_KERNEL("t_gather_cube",
                   "tld4.r.cube.v4.f32.f32 " TEXTURE_ALL ", [%h, {%f0,%f1,%f2,%f2}];"),
    TEXTURE_KERNEL("t_named", "tex.2d.v4.f32.f32 " TEXTURE_ALL ", [TX, {%f0,%f1}];"),
    TEXTURE_KERNEL("s_named", "suld.b.2d.b32.zero %o0, [SF, {%r0,%r1}];"),
    TEXTURE_KERNEL("s_zero", "suld.b.2d.b32.zero %o0, [%h, {%r0,%r1}];"),
    TEXTURE_KERNEL("s_clamp", "suld.b.2d.b32.clamp %o0, [%h, {%r0,%r1}];"),
    TEXTURE_KERNEL("s_trap", "suld.b.2d.b32.trap %o0, [%h, {%r0,%r1}];"),
    TEXTURE_KERNEL("s_vector", "suld.b.2d.v4.b32.zero " TEXTURE_ALL ", [%h, {%r0,%r1}];"),
    TEXTURE_KERNEL("s_bytes", "suld.b.2d.v4.b8.clamp {%s0,%s1,%s2,%s3}, [%h, {%r0,%r1}];"
                              "cvt.u32.u16 %o0, %s0; cvt.u32.u16 %o1, %s1;"
                              "cvt.u32.u16 %o2, %s2; cvt.u32.u16 %o3, %s3;"),
    TEXTURE_KERNEL("s_layer", "suld.b.a2d.b32.zero %o0, [%h, {%r3,%r0,%r1,%r1}];"),
    TEXTURE_KERNEL("s_slice", "suld.b.3d.b32.zero %o0, [%h, {%r0,%r1,%r3,%r3}];"),
    TEXTURE_KERNEL("s_store", "sust.b.2d.b32.zero [%h, {%r0,%r1}], %r4;"),
    TEXTURE_KERNEL("s_store_clamp", "sust.b.2d.b32.clamp [%h, {%r0,%r1}], %r4;"),
    TEXTURE_KERNEL("s_store_p", "sust.p.2d.v4.b32.zero [%h, {%r0,%r1}], {%r4,%r5,%r6,%r7};"),
    TEXTURE_KERNEL("s_add", "sured.b.add.2d.u32.zero [%h, {%r0,%r1}], %r4;"),
    TEXTURE_KERNEL("s_max_p", "sured.p.max.2d.b32.zero [%h, {%r0,%r1}], %r4;"),
    TEXTURE_KERNEL("q_size", "txq.width.b32 %o0, [%h]; txq.height.b32 %o1, [%h];"
                             "txq.depth.b32 %o2, [%h];"),
    TEXTURE_KERNEL("q_level", "txq.level.width.b32 %o0, [%h], %r0; txq.level.height.b32 %o1, [%h], "
                              "%r0; txq.level.depth.b32 %o2, [%h], %r0;"),
    TEXTURE_KERNEL("q_surface", "suq.width.b32 %o0, [%h]; suq.height.b32 %o1, [%h];"
                                "suq.depth.b32 %o2, [%h];"),
    TEXTURE_KERNEL("q_type", "istypep.texref %p, %h; selp.u32 %o0, 1, 0, %p;"
                             "istypep.surfref %p, %h; selp.u32 %o1, 1, 0, %p;"
                             "istypep.samplerref %p, %h; selp.u32 %o2, 1, 0, %p;"),
};

/*
 * A module of its own for one of the other queries. ptxas takes them; what they ask lies in tables
 * of descriptors (.nv.surfrefDescSize, .nv.unified.texrefDescSize) that an H200's driver does not
 * have: it does not load the module with the surface's (NOT_SUPPORTED), and has no kernel of the
 * texture's name (NOT_FOUND).
 */
#define TEXTURE_QUERY(what)                                                                        \
    ".version 8.0\n.target sm_70\n.address_size 64\n" TEXTURE_KERNEL("q", what ".b32 %o0, [%h];")

static const char *const surface_queries[] = {
    TEXTURE_QUERY("suq.channel_data_type"), TEXTURE_QUERY("suq.channel_order"),
    TEXTURE_QUERY("suq.array_size"), TEXTURE_QUERY("suq.memory_layout")};
static const char *const texture_queries[] = {
    TEXTURE_QUERY("txq.channel_data_type"), TEXTURE_QUERY("txq.channel_order"),
    TEXTURE_QUERY("txq.normalized_coords"), TEXTURE_QUERY("txq.array_size"),
    TEXTURE_QUERY("txq.num_mipmap_levels"), TEXTURE_QUERY("txq.num_samples"),
    TEXTURE_QUERY("txq.filter_mode"),       TEXTURE_QUERY("txq.addr_mode_0"),
    TEXTURE_QUERY("txq.addr_mode_1"),       TEXTURE_QUERY("txq.addr_mode_2"),
};

/* The module's text: C promises no string as long as that. */
static inline const char *texture_text(void) {
    static char text[sizeof texture_parts / sizeof texture_parts[0] * 1200];
    size_t used = 0;
    for (size_t i = 0; i < sizeof texture_parts / sizeof texture_parts[0]; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s", texture_parts[i]);
    return text;
}

#endif
