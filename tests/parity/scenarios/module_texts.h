/* PTX texts that the scenarios of images share. */
#ifndef MODULE_TEXTS_H
#define MODULE_TEXTS_H

#define TEXT_HEAD ".version 7.8\n.target sm_70\n.address_size 64\n"

/* Variables of each kind; entries with parameters, shared memory and limits. */
#define TEXT_PLAIN                                                                                 \
    TEXT_HEAD                                                                                      \
    ".visible .global .align 4 .u32 counter = 7;\n"                                                \
    ".visible .global .align 1 .b8 bytes[5] = {1, 2, 3, 4, 5};\n"                                  \
    ".visible .global .align 8 .u64 to_counter = generic(counter);\n"                              \
    ".visible .global .align 8 .u64 to_bytes_2 = generic(bytes)+2;\n"                              \
    ".visible .global .align 8 .u64 state_space = counter;\n"                                      \
    ".visible .const .align 4 .f32 factors[4] = {0f3F800000, 0f40000000, 0f40400000};\n"           \
    ".visible .global .align 16 .b8 zeros[100];\n"                                                 \
    ".visible .global .align 256 .b8 aligned[8];\n"                                                \
    ".visible .global .align 4 .b8 large[3000000];\n"                                              \
    ".weak .global .align 4 .u32 weak_one = 11;\n"                                                 \
    ".common .global .align 4 .u32 common_one;\n"                                                  \
    ".global .align 4 .u32 hidden = 3;\n"                                                          \
    ".visible .entry empty()\n{\nret;\n}\n"                                                        \
    ".visible .entry types(.param .u8 a, .param .u16 b, .param .u32 c, .param .u64 d,\n"           \
    ".param .f32 e, .param .f64 f, .param .align 8 .b8 g[24], .param .u8 h)\n{\nret;\n}\n"         \
    ".visible .entry bounded(.param .u64 p)\n.maxntid 128, 1, 1\n.minnctapersm 4\n{\nret;\n}\n"    \
    ".visible .entry required()\n.reqntid 64, 2, 1\n{\nret;\n}\n"                                  \
    ".visible .entry shared(.param .u64 p)\n{\n"                                                   \
    ".shared .align 4 .b8 tile[4096];\n.reg .b32 r;\n.reg .b64 x;\n"                               \
    "ld.param.u64 x, [p];\nld.volatile.shared.u32 r, [tile];\nst.u32 [x], r;\nret;\n}\n"           \
    ".visible .entry writes(.param .u64 p, .param .u32 v)\n{\n"                                    \
    ".reg .b32 r;\n.reg .b64 x;\n"                                                                 \
    "ld.param.u64 x, [p];\nld.param.u32 r, [v];\nst.u32 [x], r;\nst.global.u32 [counter], r;\n"    \
    "ret;\n}\n"                                                                                    \
    ".entry invisible()\n{\nret;\n}\n"                                                             \
    ".visible .func helper()\n{\nret;\n}\n"

/* Clusters: .target sm_90 is where they begin. */
#define TEXT_CLUSTERS                                                                              \
    ".version 7.8\n.target sm_90\n.address_size 64\n"                                              \
    ".visible .entry clustered()\n.explicitcluster\n.reqnctapercluster 2, 1, 1\n{\nret;\n}\n"      \
    ".visible .entry any_cluster()\n.explicitcluster\n{\nret;\n}\n"                                \
    ".visible .entry ranked()\n.maxclusterrank 4\n{\nret;\n}\n"                                    \
    ".visible .entry plain()\n{\nret;\n}\n"

#define TEXT_TEXTURES                                                                              \
    TEXT_HEAD                                                                                      \
    ".visible .global .texref picture;\n"                                                          \
    ".visible .global .surfref board;\n"                                                           \
    ".visible .entry look(.param .u64 p)\n{\n.reg .b64 x;\n.reg .f32 a, b, c, d;\n"                \
    ".reg .b32 i;\nmov.u32 i, 0;\nld.param.u64 x, [p];\n"                                          \
    "tex.1d.v4.f32.s32 {a, b, c, d}, [picture, {i}];\nst.f32 [x], a;\n"                            \
    "suld.b.1d.b32.trap i, [board, {i}];\nst.b32 [x], i;\nret;\n}\n"

#define TEXT_MANAGED                                                                               \
    TEXT_HEAD ".visible .global .attribute(.managed) .align 4 .u32 managed_one = 9;\n"             \
              ".visible .global .align 4 .u32 plain_one = 8;\n"                                    \
              ".visible .entry empty()\n{\nret;\n}\n"

/* Two parts of a program, neither of which stands alone. */
#define TEXT_CALLER                                                                                \
    TEXT_HEAD                                                                                      \
    ".extern .func (.param .b32 result) outside(.param .b32 a);\n"                                 \
    ".extern .global .align 4 .u32 shared_value;\n"                                                \
    ".visible .entry caller(.param .u64 p)\n{\n.reg .b32 r, s;\n.reg .b64 x;\n"                    \
    "ld.param.u64 x, [p];\nld.u32 r, [x];\n"                                                       \
    "{\n.param .b32 in;\n.param .b32 out;\nst.param.b32 [in], r;\n"                                \
    "call.uni (out), outside, (in);\nld.param.b32 r, [out];\n}\n"                                  \
    "ld.global.u32 s, [shared_value];\nadd.u32 r, r, s;\nst.u32 [x], r;\nret;\n}\n"
#define TEXT_OUTSIDE                                                                               \
    TEXT_HEAD                                                                                      \
    ".visible .global .align 4 .u32 shared_value = 21;\n"                                          \
    ".visible .func (.param .b32 result) outside(.param .b32 a)\n{\n.reg .b32 r;\n"                \
    "ld.param.b32 r, [a];\nadd.u32 r, r, 1;\nst.param.b32 [result], r;\nret;\n}\n"

#define TEXT_ENTRY ".visible .entry empty()\n{\nret;\n}\n"

#endif
