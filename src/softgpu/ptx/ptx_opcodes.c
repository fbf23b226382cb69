/* Names of PTX: instructions with their number of operands, modifiers, special registers. From the
 * published description of PTX 9.5; the lists are sorted for searching. */
#include "softgpu/ptx/ptx.h"

#include <stdlib.h>
#include <string.h>

#define TYPED   SG_PTX_TYPED
#define ROUNDED (SG_PTX_TYPED | SG_PTX_ROUNDED)

#define GLOBAL     (1 << SG_SPACE_GLOBAL)
#define SHARED     (1 << SG_SPACE_SHARED)
#define LOCAL      (1 << SG_SPACE_LOCAL)
#define WRITTEN    (GLOBAL | SHARED | LOCAL | 1 << SG_SPACE_PARAM)
#define ANY_SPACE  (WRITTEN | 1 << SG_SPACE_CONST)
#define NOT_SHARED (ANY_SPACE & ~SHARED)

static const struct sg_ptx_opcode opcodes[] = {
#define SG_PTX_OPCODE(name, least, most, flags, types, operands, spaces, sm, version, modifiers)   \
    {#name, least, most, flags, types, operands, modifiers, spaces, sm, version},
#include "softgpu/ptx/ptx_opcodes.def"
};

/* Parts of modifiers: .shared::cluster has two. Shapes of matrices are not listed. */
/* clang-format off */
static const char *const parts[] = {
    "01_23", "02_13", "1", "128", "128B", "128x128b", "128x256b", "16b", "16x128b", "16x256b",
    "16x32bx2", "16x64b", "1X", "1d", "1d_buffer", "2", "256B", "2X", "2d", "2dms", "2pi", "32B",
    "32x128b", "32x32b", "3d", "4X", "4d", "4x256b", "5d", "64B", "64x128b", "L1", "L2", "NaN",
    "a", "a1d", "a2d", "a2dms", "abs", "acc", "acq_rel", "acquire", "acube", "add", "addr_mode_0",
    "addr_mode_1", "addr_mode_2", "after_thread_sync", "alias", "aligned", "all", "alloc", "and",
    "any", "approx", "array", "array_size", "arrive", "arrive_drop", "async", "async_group", "b",
    "b0", "b1", "b1024", "b128", "b16", "b2", "b3", "b32", "b3210", "b4", "b4e", "b4x16",
    "b4x16_p64", "b64", "b6p2x16", "b6x16", "b6x16_p32", "b7654", "b8", "b8x16", "ballot", "base",
    "before_thread_sync", "bf16", "bf16x2", "bfly", "block16", "block32", "block_scale",
    "box_dim", "bulk", "bulk_group", "bytes", "c", "ca", "cache_hint", "cachesize", "cas", "cc",
    "cg", "channel_data_type", "channel_order", "check_layout", "clamp", "cluster", "col", "collector", "commit",
    "commit_group", "complete_tx", "const", "cp", "cp_async", "cp_fenceproxy", "cp_mask", "cs",
    "cta", "cta_group", "cta_mask", "ctaid", "cube", "cv", "cvt", "d", "dealloc", "dec", "depth",
    "discard", "down", "e2m1", "e2m1x2", "e2m1x4", "e2m3", "e2m3x2", "e2m3x4", "e3m2", "e3m2x2",
    "e3m2x4", "e4m3", "e4m3x2", "e4m3x4", "e5m2", "e5m2x2", "e5m2x4", "ecl", "ecr",
    "element_stride", "elemtype", "entry", "eq", "equ", "evict_first", "evict_last",
    "evict_normal", "evict_unchanged", "exch", "expect_tx", "f16", "f16x2", "f32", "f32x2", "f4e",
    "f64", "f8", "f8f6f4", "fence", "fill", "fill_mode", "filter_mode", "finite",
    "force_unnormalized_coords", "fractional", "ftz", "full", "func", "g", "gather4", "ge",
    "generic", "get_first_ctaid", "geu", "gl", "global", "global_address", "global_dim",
    "global_stride", "gpu", "grad", "group", "gt", "gtu", "h0", "h1", "height", "hi", "hs", "i8",
    "idx", "ignore_oob", "im2col", "im2col_no_offs", "im2col_w", "inc", "infinite", "init",
    "interleave", "interleave_layout", "inval", "is_canceled", "isspacep", "kind", "l", "lastuse",
    "launch_dependents", "layout", "ld", "ld_reduce", "le", "left", "leu", "level", "level_zero", "lo",
    "load", "load_a", "local", "lod", "ls", "lt", "ltu", "lu", "m16n16", "m16n16k16", "m16n16k8",
    "m16n8", "m16n8k128", "m16n8k16", "m16n8k256", "m16n8k32", "m16n8k4", "m16n8k64", "m16n8k8",
    "m32n8k16", "m64k16", "m8n16", "m8n32k16", "m8n8", "m8n8k128", "m8n8k16", "m8n8k32", "m8n8k4",
    "mac", "mask", "max", "mbarrier", "mbarrier_init", "memory_layout", "min", "mma", "mma_async", "mmio",
    "mode", "multicast", "mxf4", "mxf4nvf4", "mxf8f6f4", "nan", "nc", "nctaid", "ne", "neg",
    "neu", "noComplete", "no_allocate", "noftz", "noinc", "normal", "normalized_coords", "not",
    "notanumber", "ntid", "num", "num_mipmap_levels", "num_samples", "number", "one", "oob",
    "op_restrict", "or", "ordered_metadata", "override", "p", "pack", "param", "parity",
    "pending_count", "phase_type", "po", "popc", "pred", "prefetch", "primary", "proxy", "query_cancel", "r", "range",
    "rank", "rc16", "rc8", "read", "readonly", "red", "red_async", "reduce", "reg", "relaxed", "release",
    "relinquish_alloc_permit", "relu", "replace", "right", "rm", "rmi", "rn", "rna", "rni", "row",
    "rp", "rpi", "rs", "rz", "rzi", "s128", "s16", "s16x2", "s2", "s2f6x2", "s32", "s4", "s4x8", "s64",
    "s8", "s8x4", "safeadd", "samplerref", "sat", "satfinite", "sc", "scale_vec", "scatter4",
    "shared", "shift", "shiftamt", "shr15", "shr7", "sp", "sp_ordered", "spcompress", "sreg",
    "st", "store", "sub", "subnormal", "surfref", "swizzle_atomicity", "swizzle_mode", "sync",
    "sync_aligned", "sync_restrict", "sys", "tensor", "tensormap", "test_wait", "tex", "texref",
    "tf32", "tid", "tile", "tiled", "tl", "to", "trans", "trap", "try_cancel", "try_wait", "u",
    "u128", "u16", "u16x2", "u2", "u32", "u4", "u4x8", "u64", "u8", "u8x4", "ue4m3", "ue4m3x2",
    "ue5m3", "ue8m0", "ue8m0x2", "uni", "unified", "unpack", "up", "use", "v", "v1", "v2", "v4", "v8",
    "valid_addr", "volatile", "w", "wait", "wait_all", "wait_group", "warp", "warp_sync", "warpgroup", "warpx2",
    "warpx4", "wb", "weak", "wide", "width", "wrap", "ws", "wt", "x", "x1", "x128", "x16", "x2",
    "x32", "x4", "x64", "x8", "xor", "xorsign", "y", "z", "zero",
};
/* clang-format on */

/* clang-format off */
static const char *const special_registers[] = {
    "%aggr_smem_size", "%clock", "%clock64", "%clock_hi", "%cluster_ctaid", "%cluster_ctarank",
    "%cluster_nctaid", "%cluster_nctarank", "%clusterid", "%ctaid", "%current_graph_exec",
    "%dynamic_smem_size", "%envreg0", "%envreg1", "%envreg10", "%envreg11", "%envreg12",
    "%envreg13", "%envreg14", "%envreg15", "%envreg16", "%envreg17", "%envreg18", "%envreg19",
    "%envreg2", "%envreg20", "%envreg21", "%envreg22", "%envreg23", "%envreg24", "%envreg25",
    "%envreg26", "%envreg27", "%envreg28", "%envreg29", "%envreg3", "%envreg30", "%envreg31",
    "%envreg4", "%envreg5", "%envreg6", "%envreg7", "%envreg8", "%envreg9", "%globaltimer",
    "%globaltimer_hi", "%globaltimer_lo", "%gridid", "%is_explicit_cluster", "%laneid",
    "%lanemask_eq", "%lanemask_ge", "%lanemask_gt", "%lanemask_le", "%lanemask_lt", "%nclusterid",
    "%nctaid", "%nsmid", "%ntid", "%nwarpid", "%pm0", "%pm0_64", "%pm1", "%pm1_64", "%pm2",
    "%pm2_64", "%pm3", "%pm3_64", "%pm4", "%pm4_64", "%pm5", "%pm5_64", "%pm6", "%pm6_64", "%pm7",
    "%pm7_64", "%reserved_smem_offset_0", "%reserved_smem_offset_1",
    "%reserved_smem_offset_begin", "%reserved_smem_offset_cap", "%reserved_smem_offset_end",
    "%smid", "%tid", "%total_smem_size", "%warpid", "WARP_SZ",
};
/* clang-format on */

struct text {
    const char *at;
    size_t length;
};

static int compare(const struct text *text, const char *name) {
    int order = strncmp(text->at, name, text->length);
    return order ? order : name[text->length] ? -1 : 0;
}

static int compare_opcode(const void *text, const void *opcode) {
    return compare(text, ((const struct sg_ptx_opcode *)opcode)->name);
}

static int compare_name(const void *text, const void *name) {
    return compare(text, *(const char *const *)name);
}

const struct sg_ptx_opcode *sg_ptx_opcode(const char *name, size_t length) {
    const struct text text = {name, length};
    return bsearch(&text, opcodes, sizeof opcodes / sizeof opcodes[0], sizeof opcodes[0],
                   compare_opcode);
}

size_t sg_ptx_opcode_number(const struct sg_ptx_opcode *opcode) {
    return (size_t)(opcode - opcodes);
}

bool sg_ptx_special_register(const char *name, size_t length) {
    const struct text text = {name, length};
    if (name[0] != '%' && name[0] != 'W')
        return false;
    return bsearch(&text, special_registers, sizeof special_registers / sizeof special_registers[0],
                   sizeof special_registers[0], compare_name);
}

/* m64n256k16, m16n8 */
static bool is_shape(const struct text *text) {
    static const char letters[] = "mnk";
    size_t at = 0, numbers = 0;
    while (at < text->length && numbers < 3) {
        if (text->at[at] != letters[numbers])
            return false;
        size_t first = ++at;
        while (at < text->length && text->at[at] >= '0' && text->at[at] <= '9')
            at++;
        if (at == first)
            return false;
        numbers++;
    }
    return at == text->length && numbers > 1;
}

static bool is_part(const struct text *text) {
    return is_shape(text) ||
           bsearch(text, parts, sizeof parts / sizeof parts[0], sizeof parts[0], compare_name);
}

bool sg_ptx_modifier(const char *name, size_t length) {
    const char *end = name + length;
    for (const char *at = name + 1; at < end;) {
        const char *colon = memchr(at, ':', (size_t)(end - at));
        const struct text part = {at, (size_t)((colon ? colon : end) - at)};
        if (!is_part(&part))
            return false;
        at = colon ? colon + 2 : end;
    }
    return true;
}
