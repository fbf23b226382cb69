/* What stands around an instruction whose form is tested: its registers, variables and labels. */
#ifndef TESTS_UNIT_SOFTGPU_FORM_TEXT_H
#define TESTS_UNIT_SOFTGPU_FORM_TEXT_H

#define FORM_BEFORE                                                                                \
    ".version 9.5\n.target sm_90a\n.address_size 64\n"                                             \
    ".global .texref tx;\n.global .surfref su;\n"                                                  \
    ".global .align 16 .b8 gl[64];\n.global .align 4 .u32 gw[4];\n.const .align 4 .b8 ct[16];\n"   \
    ".func fn(.param .b32 a) { ret; }\n"                                                           \
    ".func (.reg .f32 x) fr(.reg .b32 a, .reg .b32 b) { ret; }\n"                                  \
    ".func (.param .b32 r) fi(.param .b32 a) { ret; }\n"                                           \
    ".func (.param .align 8 .b8 r[16]) ag(.param .align 8 .b8 a[24]) { ret; }\n"                   \
    ".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);\n"                       \
    ".extern .func nowhere();\n"                                                                   \
    ".visible .entry k(.param .u64 kp)\n{\n"                                                       \
    ".reg .pred p<9>; .reg .b8 b<9>; .reg .b16 h<20>; .reg .b32 r<20>; .reg .f32 f<20>;\n"         \
    ".reg .b64 d<20>; .reg .f64 e<20>; .reg .b128 q<3>; .reg .v4 .b32 v4, w4;\n"                   \
    ".shared .align 16 .b8 sm[64]; .shared .align 8 .b64 mb; .local .align 8 .b8 lo[32];\n"        \
    ".param .b32 pa; .param .align 8 .b8 pb[8]; .param .b64 pc; .param .b32 rv;\n"                 \
    ".param .align 8 .b8 pb2[24]; .param .align 8 .b8 rv2[16];\n"                                  \
    "PR: .callprototype (.param .b32 _) _ (.param .b32 _);\n"                                      \
    "PR2: .callprototype (.param .align 8 .b8 _[16]) _ (.param .align 8 .b8 _[24]);\n"             \
    "TS: .branchtargets L, M;\nCT: .calltargets fi;\n"
#define FORM_BEHIND "\nL: add.s32 r19, r19, 1;\nM: ret;\n}\n"

#endif
