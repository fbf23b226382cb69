/*
 * Program images that are wrong, odd or at a limit: which the driver takes, and what it says of the
 * others. The text of its messages is its own business; whether there is one is recorded.
 */
#include "../parity.h"

#define HEAD  ".version 8.0\n.target sm_90\n.address_size 64\n"
#define ENTRY ".visible .entry k() { ret; }\n"

typedef struct text {
    const char *name, *image;
} text;

static void load(const char *name, const void *image) {
    CUmodule module = NULL;
    unsigned count = 0;
    CALLO(cuModuleLoadData, name, (&module, image), OUT_C(module));
    if (par_last() != CUDA_SUCCESS)
        return;
    CALLO(cuModuleGetFunctionCount, name, (&count, module), OUT_U(count));
    SETUP(cuModuleUnload, (module));
}

static void load_all(const text *texts, size_t count) {
    par_context();
    for (size_t i = 0; i < count; i++)
        load(texts[i].name, texts[i].image);
}

#define LOAD_ALL(texts) load_all(texts, sizeof(texts) / sizeof((texts)[0]))

/* What is an image at all, and what its first directives may be. */
SCENARIO(text_heads, "image/text-heads") {
    static const char elf_magic[64] = "\177ELF"; /* whose header is read, whatever it says */
    static const text texts[] = {
        {"empty", ""},
        {"newline", "\n"},
        {"blanks", "  \t \r\n \n"},
        {"comment-only", "// nothing\n"},
        {"block-comment-only", "/* nothing */"},
        {"open-comment", "/* nothing"},
        {"word", "garbage"},
        {"words", "hello, world: this is no program\n"},
        {"digit", "0"},
        {"semicolon", ";"},
        {"high-bytes", "\xff\xfe\xfd\xfc\xfb\xfa\xf9\xf8"},
        {"low-bytes", "\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a"},
        {"elf-magic-only", elf_magic},
        {"archive-magic", "!<arch>\n"},
        {"byte-order-mark", "\xef\xbb\xbf" HEAD ENTRY},
        {"head-only", HEAD},
        {"version-only", ".version 8.0\n"},
        {"version-and-target", ".version 8.0\n.target sm_90\n"},
        {"no-address-size-entry", ".version 8.0\n.target sm_90\n" ENTRY},
        {"address-size-32", ".version 8.0\n.target sm_90\n.address_size 32\n" ENTRY},
        {"address-size-16", ".version 8.0\n.target sm_90\n.address_size 16\n" ENTRY},
        {"address-size-missing-number", ".version 8.0\n.target sm_90\n.address_size\n" ENTRY},
        {"no-version", ".target sm_90\n.address_size 64\n" ENTRY},
        {"no-target", ".version 8.0\n.address_size 64\n" ENTRY},
        {"target-first", ".target sm_90\n.version 8.0\n.address_size 64\n" ENTRY},
        {"directive-first", ".global .u32 x;\n" HEAD ENTRY},
        {"two-versions", ".version 8.0\n" HEAD ENTRY},
        {"two-targets", HEAD ".target sm_90\n" ENTRY},
        {"comment-first", "// comment\n/* more */\n" HEAD ENTRY},
        {"words-in-comment-first", "// garbage {{{ \" ' \n" HEAD ENTRY},
        {"one-line", ".version 8.0 .target sm_90 .address_size 64 .visible .entry k() { ret; }"},
        {"carriage-returns", ".version 8.0\r\n.target sm_90\r\n.address_size 64\r\n" ENTRY},
        {"only-version-word", ".version"},
        {"unknown-first-directive", ".frobnicate 8.0\n"},
        {"capital-directive", ".VERSION 8.0\n.target sm_90\n.address_size 64\n" ENTRY},
        {"function-undeclared-head", ENTRY},
    };
    LOAD_ALL(texts);
}

SCENARIO(text_versions, "image/text-versions") {
    static const char *const versions[] = {"0.0", "1.0", "1.4", "2.0", "2.3",  "3.0",  "6.0",
                                           "7.7", "7.8", "7.9", "8.0", "8.00", "8.08", "8.8",
                                           "8.9", "9.0", "9.1", "9.2", "9.9",  "10.0", "99.9",
                                           "8",   "8.",  ".8",  "x.y", "-8.0"};
    par_context();
    for (size_t i = 0; i < COUNT(versions); i++) {
        char image[200], name[40];
        snprintf(image, sizeof(image), ".version %s\n.target sm_50\n.address_size 64\n" ENTRY,
                 versions[i]);
        snprintf(name, sizeof(name), "version-%s", versions[i]);
        load(name, image);
    }
    /* Both wrong: which is said? */
    load("version-99-and-syntax", ".version 99.0\n.target sm_90\n.address_size 64\n{{{\n");
    load("version-99-and-target", ".version 99.0\n.target sm_999\n.address_size 64\n" ENTRY);
}

SCENARIO(text_targets, "image/text-targets") {
    static const char *const targets[] = {"sm_10",
                                          "sm_20",
                                          "sm_30",
                                          "sm_35",
                                          "sm_50",
                                          "sm_51",
                                          "sm_75",
                                          "sm_80",
                                          "sm_87",
                                          "sm_89",
                                          "sm_90",
                                          "sm_90a",
                                          "sm_90f",
                                          "sm_80a",
                                          "sm_91",
                                          "sm_100",
                                          "sm_100a",
                                          "sm_100f",
                                          "sm_120",
                                          "sm_999",
                                          "sm_",
                                          "sm",
                                          "compute_90",
                                          "SM_90",
                                          "90",
                                          "sm_90, debug",
                                          "debug, sm_90",
                                          "debug",
                                          "sm_90, texmode_unified",
                                          "sm_90, texmode_independent",
                                          "sm_90, texmode_unified, texmode_independent",
                                          "sm_90, map_f64_to_f32",
                                          "sm_90, nonsense",
                                          "sm_80, sm_90",
                                          "sm_90,",
                                          ""};
    par_context();
    for (size_t i = 0; i < COUNT(targets); i++) {
        char image[200], name[80];
        snprintf(image, sizeof(image), ".version 8.8\n.target %s\n.address_size 64\n" ENTRY,
                 targets[i]);
        snprintf(name, sizeof(name), "target-%s", targets[i]);
        for (char *c = name; *c; c++)
            *c = *c == ' ' || *c == ',' ? '-' : *c;
        load(name, image);
    }
    /* A target that its version does not know yet. */
    load("sm-90-in-7.0", ".version 7.0\n.target sm_90\n.address_size 64\n" ENTRY);
    load("sm-90a-in-7.8", ".version 7.8\n.target sm_90a\n.address_size 64\n" ENTRY);
    load("sm-100-in-8.0", ".version 8.0\n.target sm_100\n.address_size 64\n" ENTRY);
}

SCENARIO(text_syntax, "image/text-syntax") {
    static const text texts[] = {
        {"words-after-head", HEAD "some words\n"},
        {"open-body", HEAD ".visible .entry k() { ret;"},
        {"no-body", HEAD ".visible .entry k()"},
        {"declared-entry", HEAD ".visible .entry k();\n" ENTRY},
        {"only-declared-entry", HEAD ".visible .entry k();\n"},
        {"close-too-much", HEAD ENTRY "}\n"},
        {"open-brace", HEAD "{\n"},
        {"block-at-top", HEAD "{ }\n"},
        {"empty-body", HEAD ".visible .entry k() { }\n"},
        {"missing-semicolon", HEAD ".visible .entry k() { ret }\n"},
        {"two-semicolons", HEAD ".visible .entry k() { ret;; }\n"},
        {"lone-semicolon", HEAD ".visible .entry k() { ; }\n"},
        {"unknown-opcode", HEAD ".visible .entry k() { rett; }\n"},
        {"unknown-suffix", HEAD ".visible .entry k() { ret.frob; }\n"},
        {"operand-too-many", HEAD ".visible .entry k() { ret 5; }\n"},
        {"undeclared-register", HEAD ".visible .entry k() { mov.u32 %r1, 5; ret; }\n"},
        {"register-wrong-type",
         HEAD ".visible .entry k() { .reg .b64 %r<2>; mov.u32 %r1, 5; ret; }\n"},
        {"operand-missing",
         HEAD ".visible .entry k() { .reg .b32 %r<4>; add.u32 %r1, %r2; ret; }\n"},
        {"type-missing", HEAD ".visible .entry k() { .reg .b32 %r<4>; add %r1, %r2, %r3; ret; }\n"},
        {"rounding-missing",
         HEAD ".visible .entry k() { .reg .f32 %f<4>; div.f32 %f1, %f2, %f3; ret; }\n"},
        {"unknown-label", HEAD ".visible .entry k() { bra nowhere; }\n"},
        {"label-twice", HEAD ".visible .entry k() { a: ret; a: ret; }\n"},
        {"predicate-undeclared", HEAD ".visible .entry k() { @%p1 ret; }\n"},
        {"unknown-directive-in-body", HEAD ".visible .entry k() { .frob 5; ret; }\n"},
        {"unknown-directive", HEAD ".frob 5;\n" ENTRY},
        {"entry-without-name", HEAD ".visible .entry () { ret; }\n"},
        {"entry-without-parentheses", HEAD ".visible .entry k { ret; }\n"},
        {"entry-not-visible", HEAD ".entry k() { ret; }\n"},
        {"entry-weak", HEAD ".weak .entry k() { ret; }\n"},
        {"entry-extern", HEAD ".extern .entry k() { ret; }\n"},
        {"entry-twice", HEAD ENTRY ENTRY},
        {"entry-name-keyword", HEAD ".visible .entry add() { ret; }\n"},
        {"entry-name-digit", HEAD ".visible .entry 9k() { ret; }\n"},
        {"entry-name-dollar", HEAD ".visible .entry $k() { ret; }\n"},
        {"entry-name-underscore", HEAD ".visible .entry _() { ret; }\n"},
        {"entry-name-percent", HEAD ".visible .entry %k() { ret; }\n"},
        {"entry-name-dot", HEAD ".visible .entry a.b() { ret; }\n"},
        {"entry-name-quoted", HEAD ".visible .entry \"k\"() { ret; }\n"},
        {"no-return", HEAD ".visible .entry k() { .reg .b32 %r<2>; mov.u32 %r1, 5; }\n"},
        {"inner-block", HEAD ".visible .entry k() { { .reg .b32 a; mov.u32 a, 1; } ret; }\n"},
        {"open-string", HEAD ".visible .entry k() { .pragma \"nounroll; ret; }\n"},
        {"pragma", HEAD ".visible .entry k() { .pragma \"nounroll\"; ret; }\n"},
        {"file-and-loc", HEAD ".visible .entry k() { .loc 1 2 3\n ret; }\n.file 1 \"a.cu\"\n"},
        {"section-debug", HEAD ENTRY ".section .debug_str { .b8 0 }\n"},
        {"zero-after-entry", HEAD ENTRY},
    };
    LOAD_ALL(texts);
}

SCENARIO(text_parameters, "image/text-parameters") {
    static const text texts[] = {
        {"parameter-without-type", HEAD ".visible .entry k(.param p) { ret; }\n"},
        {"parameter-without-space", HEAD ".visible .entry k(.u32 p) { ret; }\n"},
        {"parameter-register", HEAD ".visible .entry k(.reg .u32 p) { ret; }\n"},
        {"parameter-b128", HEAD ".visible .entry k(.param .b128 p) { ret; }\n"},
        {"parameter-vector", HEAD ".visible .entry k(.param .v4 .u32 p) { ret; }\n"},
        {"parameter-predicate", HEAD ".visible .entry k(.param .pred p) { ret; }\n"},
        {"parameter-f16", HEAD ".visible .entry k(.param .f16 p) { ret; }\n"},
        {"parameter-empty-array", HEAD ".visible .entry k(.param .b8 p[]) { ret; }\n"},
        {"parameter-array-0", HEAD ".visible .entry k(.param .b8 p[0]) { ret; }\n"},
        {"parameter-array-2d", HEAD ".visible .entry k(.param .b32 p[2][3]) { ret; }\n"},
        {"parameter-align-3", HEAD ".visible .entry k(.param .align 3 .b8 p[4]) { ret; }\n"},
        {"parameter-align-128", HEAD ".visible .entry k(.param .align 128 .b8 p[4]) { ret; }\n"},
        {"parameter-align-256", HEAD ".visible .entry k(.param .align 256 .b8 p[4]) { ret; }\n"},
        {"parameter-twice", HEAD ".visible .entry k(.param .u32 p, .param .u32 p) { ret; }\n"},
        {"parameter-comma-last", HEAD ".visible .entry k(.param .u32 p,) { ret; }\n"},
        {"parameter-4096", HEAD ".visible .entry k(.param .b8 p[4096]) { ret; }\n"},
        {"parameter-4097", HEAD ".visible .entry k(.param .b8 p[4097]) { ret; }\n"},
        {"parameter-4352", ".version 8.1\n.target sm_90\n.address_size 64\n"
                           ".visible .entry k(.param .b8 p[4352]) { ret; }\n"},
        {"parameter-32764", ".version 8.1\n.target sm_90\n.address_size 64\n"
                            ".visible .entry k(.param .b8 p[32764]) { ret; }\n"},
        {"parameter-32768", ".version 8.1\n.target sm_90\n.address_size 64\n"
                            ".visible .entry k(.param .b8 p[32768]) { ret; }\n"},
        {"parameter-pointer",
         HEAD ".visible .entry k(.param .u64 .ptr .global .align 16 p) { ret; }\n"},
        {"parameter-pointer-plain", HEAD ".visible .entry k(.param .u64 .ptr p) { ret; }\n"},
        {"parameter-texref", HEAD ".visible .entry k(.param .texref p) { ret; }\n"},
    };
    LOAD_ALL(texts);
}

SCENARIO(text_limits, "image/text-limits") {
    static const text texts[] = {
        {"maxntid-0", HEAD ".visible .entry k() .maxntid 0 { ret; }\n"},
        {"maxntid-1024", HEAD ".visible .entry k() .maxntid 1024 { ret; }\n"},
        {"maxntid-1025", HEAD ".visible .entry k() .maxntid 1025 { ret; }\n"},
        {"maxntid-4d", HEAD ".visible .entry k() .maxntid 1, 1, 1, 1 { ret; }\n"},
        {"maxntid-twice", HEAD ".visible .entry k() .maxntid 32 .maxntid 64 { ret; }\n"},
        {"reqntid-0", HEAD ".visible .entry k() .reqntid 0 { ret; }\n"},
        {"reqntid-2048", HEAD ".visible .entry k() .reqntid 2048 { ret; }\n"},
        {"reqntid-z-65", HEAD ".visible .entry k() .reqntid 1, 1, 65 { ret; }\n"},
        {"reqntid-and-maxntid", HEAD ".visible .entry k() .reqntid 32 .maxntid 64 { ret; }\n"},
        {"minnctapersm-alone", HEAD ".visible .entry k() .minnctapersm 2 { ret; }\n"},
        {"minnctapersm-99", HEAD ".visible .entry k() .maxntid 64 .minnctapersm 99 { ret; }\n"},
        {"maxnreg-0", HEAD ".visible .entry k() .maxnreg 0 { ret; }\n"},
        {"maxnreg-16", HEAD ".visible .entry k() .maxnreg 16 { ret; }\n"},
        {"maxnreg-1000", HEAD ".visible .entry k() .maxnreg 1000 { ret; }\n"},
        {"cluster-2", HEAD ".visible .entry k() .reqnctapercluster 2 { ret; }\n"},
        {"cluster-16", HEAD ".visible .entry k() .reqnctapercluster 16 { ret; }\n"},
        {"cluster-17", HEAD ".visible .entry k() .reqnctapercluster 17 { ret; }\n"},
        {"cluster-explicit",
         HEAD ".visible .entry k() .explicitcluster .reqnctapercluster 2, 2, 2 { ret; }\n"},
        {"cluster-explicit-alone", HEAD ".visible .entry k() .explicitcluster { ret; }\n"},
        {"cluster-rank", HEAD ".visible .entry k() .maxclusterrank 4 { ret; }\n"},
        {"cluster-rank-and-size",
         HEAD ".visible .entry k() .maxclusterrank 4 .reqnctapercluster 2 { ret; }\n"},
        {"cluster-on-sm-80", ".version 8.0\n.target sm_80\n.address_size 64\n"
                             ".visible .entry k() .reqnctapercluster 2 { ret; }\n"},
        {"noreturn-entry", HEAD ".visible .entry k() .noreturn { ret; }\n"},
        {"shared-48k", HEAD ".visible .entry k() { .shared .b8 s[49152]; ret; }\n"},
        {"shared-48k-used",
         HEAD ".visible .entry k() { .shared .b8 s[49152]; st.shared.u8 [s], 1; ret; }\n"},
        {"shared-48k-1-used",
         HEAD ".visible .entry k() { .shared .b8 s[49153]; st.shared.u8 [s], 1; ret; }\n"},
        {"shared-module-used",
         HEAD ".shared .b8 s[65536]; .visible .entry k() { st.shared.u8 [s], 1; ret; }\n"},
        {"shared-module-unused", HEAD ".shared .b8 s[65536];\n" ENTRY},
        {"constant-64k", HEAD ".visible .const .b8 c[65536];\n" ENTRY},
        {"constant-64k-1", HEAD ".visible .const .b8 c[65537];\n" ENTRY},
        {"local-1g", HEAD ".visible .entry k() { .local .b8 l[1073741824]; st.local.u8 [l], 1; "
                          "ret; }\n"},
    };
    LOAD_ALL(texts);
}

SCENARIO(text_variables, "image/text-variables") {
    static const text texts[] = {
        {"global", HEAD ".visible .global .u32 x;\n"},
        {"global-zero-array", HEAD ".visible .global .u32 x[0];\n" ENTRY},
        {"global-open-array", HEAD ".visible .global .u32 x[];\n" ENTRY},
        {"global-open-array-initial", HEAD ".visible .global .u32 x[] = {1, 2, 3};\n" ENTRY},
        {"global-extern-open-array", HEAD ".extern .global .u32 x[];\n" ENTRY},
        {"global-extern-unused", HEAD ".extern .global .u32 x;\n" ENTRY},
        {"global-extern-used", HEAD ".extern .global .u32 x;\n"
                                    ".visible .entry k() { st.global.u32 [x], 1; ret; }\n"},
        {"shared-extern",
         HEAD ".extern .shared .b8 x[];\n.visible .entry k() { st.shared.u8 [x], 1; ret; }\n"},
        {"global-twice", HEAD ".visible .global .u32 x;\n.visible .global .u32 x;\n" ENTRY},
        {"global-as-entry", HEAD ".visible .global .u32 k;\n" ENTRY},
        {"global-initial-too-many", HEAD ".visible .global .u32 x[2] = {1, 2, 3};\n" ENTRY},
        {"global-initial-too-few", HEAD ".visible .global .u32 x[2] = {1};\n" ENTRY},
        {"global-initial-scalar-braces", HEAD ".visible .global .u32 x = {1};\n" ENTRY},
        {"global-initial-array-bare", HEAD ".visible .global .u32 x[2] = 1;\n" ENTRY},
        {"global-initial-nested", HEAD ".visible .global .u32 x[2][2] = {{1, 2}, {3, 4}};\n" ENTRY},
        {"global-initial-flat", HEAD ".visible .global .u32 x[2][2] = {1, 2, 3, 4};\n" ENTRY},
        {"global-initial-vector", HEAD ".visible .global .v2 .u32 x = {1, 2};\n" ENTRY},
        {"global-initial-float-in-int", HEAD ".visible .global .u32 x = 1.5;\n" ENTRY},
        {"global-initial-int-in-float", HEAD ".visible .global .f32 x = 1;\n" ENTRY},
        {"global-initial-hex-float", HEAD ".visible .global .f32 x = 0f3F800000;\n" ENTRY},
        {"global-initial-double-in-float",
         HEAD ".visible .global .f32 x = 0d3FF0000000000000;\n" ENTRY},
        {"global-initial-float16", HEAD ".visible .global .f16 x = 1.0;\n" ENTRY},
        {"global-initial-b16-bits", HEAD ".visible .global .b16 x = 0x3C00;\n" ENTRY},
        {"global-initial-too-big", HEAD ".visible .global .u8 x = 256;\n" ENTRY},
        {"global-initial-expression", HEAD ".visible .global .u32 x = (1 + 2) * 3;\n" ENTRY},
        {"global-initial-unknown", HEAD ".visible .global .u64 x = nowhere;\n" ENTRY},
        {"global-initial-later", HEAD ".visible .global .u64 x = y;\n.global .u32 y;\n" ENTRY},
        {"global-initial-address-u32", HEAD ".global .u32 y;\n.global .u32 x = y;\n" ENTRY},
        {"global-initial-address-u8", HEAD ".global .u32 y;\n"
                                           ".global .u8 x[8] = {0xFF(y), 0xFF00(y), 0xFF0000(y), "
                                           "0, 0, 0, 0, 0};\n" ENTRY},
        {"global-initial-function", HEAD ".func f() { ret; }\n.global .u64 x = f;\n" ENTRY},
        {"global-initial-entry", HEAD ENTRY ".global .u64 x = k;\n"},
        {"global-initial-shared", HEAD ".shared .u32 s;\n.global .u64 x = s;\n" ENTRY},
        {"global-initial-generic-const",
         HEAD ".const .u32 c;\n.global .u64 x = generic(c);\n" ENTRY},
        {"shared-initial", HEAD ".shared .u32 s = 1;\n" ENTRY},
        {"extern-initial", HEAD ".extern .global .u32 x = 1;\n" ENTRY},
        {"common", HEAD ".common .global .u32 x;\n" ENTRY},
        {"weak", HEAD ".weak .global .u32 x = 4;\n" ENTRY},
        {"visible-const-initial", HEAD ".visible .const .u32 x = 4;\n" ENTRY},
        {"align-0", HEAD ".visible .global .align 0 .u32 x;\n" ENTRY},
        {"align-3", HEAD ".visible .global .align 3 .u32 x;\n" ENTRY},
        {"align-2-of-4", HEAD ".visible .global .align 2 .u32 x;\n" ENTRY},
        {"align-4096", HEAD ".visible .global .align 4096 .u32 x;\n" ENTRY},
        {"managed", HEAD ".visible .global .attribute(.managed) .align 4 .u32 x = 3;\n" ENTRY},
        {"managed-const", HEAD ".visible .const .attribute(.managed) .u32 x;\n" ENTRY},
        {"attribute-unknown", HEAD ".visible .global .attribute(.frob) .u32 x;\n" ENTRY},
        {"attribute-unified",
         HEAD ".visible .global .attribute(.unified(1, 2)) .align 4 .u32 x;\n" ENTRY},
        {"register-at-top", HEAD ".reg .u32 x;\n" ENTRY},
        {"local-at-top", HEAD ".local .u32 x;\n" ENTRY},
        {"param-at-top", HEAD ".param .u32 x;\n" ENTRY},
        {"texref", HEAD ".global .texref t;\n" ENTRY},
        {"samplerref", HEAD ".global .samplerref t;\n" ENTRY},
        {"surfref", HEAD ".global .surfref t;\n" ENTRY},
        {"huge", HEAD ".visible .global .b8 x[1152921504606846976];\n" ENTRY},
        {"negative-size", HEAD ".visible .global .b8 x[-1];\n" ENTRY},
        {"function-extern-unused", HEAD ".extern .func f();\n" ENTRY},
        {"function-extern-used", HEAD ".extern .func f();\n.visible .entry k() { call f; ret; }\n"},
        {"function-extern-used-uni",
         HEAD ".extern .func f();\n.visible .entry k() { call.uni f, (); ret; }\n"},
        {"function-declared-only", HEAD ".func f();\n" ENTRY},
        {"function-printf",
         HEAD ".extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);\n" ENTRY},
        {"function-only", HEAD ".visible .func f() { ret; }\n"},
        {"alias", HEAD ".visible .func g();\n.visible .func f() { ret; }\n.alias g, f;\n" ENTRY},
    };
    LOAD_ALL(texts);
}

#define ODD                                                                                        \
    HEAD ".visible .entry odd(.param .u8 a, .param .u64 b, .param .u16 c, .param .f32 d,\n"        \
         "  .param .align 16 .b8 e[20], .param .u8 f, .param .align 1 .b8 g[3], .param .b32 "      \
         "h[3],\n"                                                                                 \
         "  .param .align 64 .b8 i[1], .param .u64 .ptr .global .align 256 j, .param .f16 l,\n"    \
         "  .param .b64 m[2])\n{ ret; }\n"

SCENARIO(parameters_seen, "image/parameters-seen", par_context) {
    size_t offset, size;
    CUmodule module = par_module(ODD);
    CUfunction function = par_function(module, "odd");
    for (size_t i = 0; i < 14; i++) {
        par_note("%zu", i);
        CALLO(cuFuncGetParamInfo, "odd", (function, i, &offset, &size), OUT_U(offset), OUT_U(size));
    }
}

static void attributes_of(const char *name, const char *image) {
    static const CUfunction_attribute asked[] = {
        CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK,
        CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES,
        CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES,
        CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES,
        CU_FUNC_ATTRIBUTE_PTX_VERSION,
        CU_FUNC_ATTRIBUTE_BINARY_VERSION,
        CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH,
        CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET,
        CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED,
    };
    int value;
    CUmodule module = par_module(image);
    CUfunction function = par_function(module, "k");
    for (size_t i = 0; i < COUNT(asked); i++) {
        par_note("%d", (int)asked[i]);
        CALLO(cuFuncGetAttribute, name, (&value, asked[i], function), OUT_I(value));
    }
    SETUP(cuModuleUnload, (module));
}

SCENARIO(attributes_seen, "image/attributes-seen", par_context) {
    static const text texts[] = {
        {"plain", HEAD ENTRY},
        {"version-7.8-target-80", ".version 7.8\n.target sm_80\n.address_size 64\n" ENTRY},
        {"shared-unused", HEAD ".visible .entry k() { .shared .b8 s[100]; ret; }\n"},
        {"shared-used",
         HEAD ".visible .entry k() { .shared .b8 s[100]; st.volatile.shared.u8 [s], 1; ret; }\n"},
        {"shared-two-aligned", HEAD ".visible .entry k() { .shared .b8 s[1]; .shared .align 16 .b8 "
                                    "t[1]; st.volatile.shared.u8 [s], 1; st.volatile.shared.u8 "
                                    "[t], 1; ret; }\n"},
        {"shared-of-module-used",
         HEAD ".shared .b8 s[100];\n.visible .entry k() { st.volatile.shared.u8 [s], 1; ret; }\n"},
        {"shared-of-module-unused", HEAD ".shared .b8 s[100];\n" ENTRY},
        {"local-used", HEAD ".global .u64 g;\n.visible .entry k() { .local .b8 l[100]; .reg .b64 "
                            "r; cvta.local.u64 r, l; st.volatile.global.u64 [g], r; ret; }\n"},
        {"local-unused", HEAD ".visible .entry k() { .local .b8 l[100]; ret; }\n"},
        {"constants-unused", HEAD ".const .b8 c[100];\n" ENTRY},
        {"constants-visible-unused", HEAD ".visible .const .b8 c[100];\n" ENTRY},
        {"constants-used",
         HEAD ".const .b8 c[100];\n.global .u8 g;\n.visible .entry k() { .reg .b16 r; ld.const.u8 "
              "r, [c]; st.volatile.global.u8 [g], r; ret; }\n"},
        {"maxntid", HEAD ".visible .entry k() .maxntid 33, 3 { ret; }\n"},
        {"reqntid", HEAD ".visible .entry k() .reqntid 33, 3, 2 { ret; }\n"},
        {"maxnreg", HEAD ".visible .entry k() .maxnreg 255 { ret; }\n"},
        {"cluster", HEAD ".visible .entry k() .reqnctapercluster 2, 2 { ret; }\n"},
        {"cluster-16", HEAD ".visible .entry k() .reqnctapercluster 16 { ret; }\n"},
        {"cluster-explicit",
         HEAD ".visible .entry k() .explicitcluster .reqnctapercluster 2 { ret; }\n"},
        {"cluster-explicit-alone", HEAD ".visible .entry k() .explicitcluster { ret; }\n"},
    };
    for (size_t i = 0; i < COUNT(texts); i++)
        attributes_of(texts[i].name, texts[i].image);
}

#define VARIABLES                                                                                  \
    HEAD ".visible .global .u32 a = 5;\n"                                                          \
         ".global .u32 hidden = 6;\n"                                                              \
         ".weak .global .u16 w = 0x1234;\n"                                                        \
         ".visible .const .align 8 .b8 c[12] = {1, 2, 3};\n"                                       \
         ".const .u32 hidden_c = 7;\n"                                                             \
         ".visible .shared .u32 s;\n"                                                              \
         ".visible .global .f32 f[3] = {1.5, -2.0, 0f40400000};\n"                                 \
         ".visible .global .f64 d = -1.0;\n"                                                       \
         ".visible .global .s8 n[4] = {-1, 0x7f, -128, 0};\n"                                      \
         ".visible .global .v4 .u16 v = {1, 2, 3, 4};\n"                                           \
         ".visible .global .u32 m[2][3] = {{1}, {2, 3}};\n"                                        \
         ".visible .global .align 64 .u8 x = 0b101;\n"                                             \
         ".visible .global .u32 e = (1 + 2) * 3 - ~0 + (7 >> 1) + (1 ? 20 : 30);\n"                \
         ".visible .global .u64 big[2] = {0xFFFFFFFFFFFFFFFF, 01777};\n"                           \
         ".visible .global .u64 p[4] = {a, generic(a), a+4, generic(f)+8};\n"                      \
         ".visible .global .u64 pc = generic(c);\n"                                                \
         ".common .global .u32 cm;\n" ENTRY

/* Which variables are found, how long they are, and what is in them. */
SCENARIO(variables_seen, "image/variables-seen") {
    static const char *const names[] = {"a", "hidden", "w", "c",  "hidden_c", "s",      "f",
                                        "d", "n",      "v", "m",  "x",        "e",      "big",
                                        "p", "pc",     "k", "cm", "",         "nothing"};
    unsigned char bytes[32];
    par_context();
    CUmodule module = par_module(VARIABLES);
    for (size_t i = 0; i < COUNT(names); i++) {
        CUdeviceptr at = 0;
        size_t size = 0;
        const char *name = names[i];
        par_note("%s", name);
        CALLO(cuModuleGetGlobal_v2, "variable", (&at, &size, module, name), OUT_C(at), OUT_U(size));
        if (par_last() != CUDA_SUCCESS || size > sizeof(bytes))
            continue;
        SETUP(cuMemcpyDtoH_v2, (bytes, at, size));
        if (name[0] == 'p')
            continue;
        char hex[2 * sizeof(bytes) + 1];
        par_see("content", "%s %s", name, par_hex(hex, sizeof(hex), bytes, size));
        par_see("alignment", "%s %s", name, at % 64 == 0 ? "64" : "less");
    }
}

/* The words of p and pc against the addresses that the driver gives out. */
SCENARIO(addresses_seen, "image/addresses-seen", par_context) {
    CUdeviceptr a, f, c, p, pc;
    size_t size;
    uint64_t words[4], word;
    CUmodule module = par_module(VARIABLES);
    SETUP(cuModuleGetGlobal_v2, (&a, &size, module, "a"));
    SETUP(cuModuleGetGlobal_v2, (&f, &size, module, "f"));
    SETUP(cuModuleGetGlobal_v2, (&c, &size, module, "c"));
    SETUP(cuModuleGetGlobal_v2, (&p, &size, module, "p"));
    SETUP(cuModuleGetGlobal_v2, (&pc, &size, module, "pc"));
    SETUP(cuMemcpyDtoH_v2, (words, p, sizeof(words)));
    SETUP(cuMemcpyDtoH_v2, (&word, pc, sizeof(word)));
    par_see("address", "plain %s", words[0] == a ? "equal" : "other");
    par_see("address", "generic %s", words[1] == a ? "equal" : "other");
    par_see("address", "plus %s", words[2] == a + 4 ? "equal" : "other");
    par_see("address", "generic-plus %s", words[3] == f + 8 ? "equal" : "other");
    par_see("address", "constant %s", word == c ? "equal" : word == 0 ? "zero" : "other");
}

static void load_logged(const char *name, const void *image, char *error, size_t room) {
    char info[2000] = "";
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
                              CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {error, (void *)(uintptr_t)room, info, (void *)sizeof(info)};
    CUmodule module = NULL;
    memset(error, 'z', room);
    CALLO(cuModuleLoadDataEx, name, (&module, image, 4, options, values), OUT_C(module));
    size_t used = (size_t)values[1];
    const char *end = memchr(error, 0, room);
    par_see("error-log", "%s used %s",
            error[0] == 'z' ? "untouched"
            : error[0]      ? "text"
                            : "empty",
            used == room                               ? "all"
            : used == 0                                ? "none"
            : end && (size_t)(end - error) == used     ? "length"
            : end && (size_t)(end - error) + 1 == used ? "length-and-zero"
                                                       : "other");
    par_see("error-log", "ends %s", end ? "with zero" : "nowhere");
    par_see("info-log", "%s used %s", info[0] ? "text" : "empty",
            (size_t)values[3] == sizeof(info) ? "all"
            : values[3]                       ? "some"
                                              : "none");
    if (par_last() == CUDA_SUCCESS)
        SETUP(cuModuleUnload, (module));
}

SCENARIO(logs, "image/logs", par_context) {
    char error[2000];
    load_logged("log-good", HEAD ENTRY, error, sizeof(error));
    load_logged("log-syntax", HEAD "some words\n", error, sizeof(error));
    par_see("says", "line %s", strstr(error, "line 4") ? "4" : "no");
    load_logged("log-garbage", "garbage", error, sizeof(error));
    load_logged("log-empty-text", "", error, sizeof(error));
    load_logged("log-version", ".version 99.0\n.target sm_90\n", error, sizeof(error));
    load_logged("log-target", ".version 8.8\n.target sm_100\n.address_size 64\n" ENTRY, error,
                sizeof(error));
    load_logged("log-extern", HEAD ".extern .func f();\n.visible .entry k() { call f; ret; }\n",
                error, sizeof(error));
    load_logged("log-syntax-cut-20", HEAD "some words\n", error, 20);
    load_logged("log-syntax-cut-1", HEAD "some words\n", error, 1);
}

/* ---- fatbins --------------------------------------------------------------------------------- */

typedef struct fat_entry {
    uint16_t kind, version;
    uint32_t header;
    uint64_t size;
    uint32_t compressed, options;
    uint16_t minor, major;
    uint32_t architecture, name, name_length;
    uint64_t flags, zero, plain;
    uint32_t text_at, text_length; /* the options: without them a driver crashes on PTX */
    uint64_t no_text;
} fat_entry;

typedef struct fat {
    uint32_t magic;
    uint16_t version, header;
    uint64_t size;
    unsigned char entries[4000];
} fat;

typedef struct fat_wrapper {
    uint32_t magic, version;
    const void *data;
    void *more;
} fat_wrapper;

/* Behind what is there: an entry of PTX. Returns it, to be changed. */
static fat_entry *fat_add(fat *to, const char *image, uint32_t architecture) {
    fat_entry *entry = (fat_entry *)(to->entries + to->size);
    size_t size = (strlen(image) + 8) & ~(size_t)7;
    memset(entry, 0, sizeof(*entry) + size);
    entry->kind = 1;
    entry->version = 0x101;
    entry->header = sizeof(*entry);
    entry->options = 64;
    entry->text_at = 72;
    entry->size = size;
    entry->minor = 0;
    entry->major = 8;
    entry->architecture = architecture;
    entry->flags = 0x11;
    memcpy(entry + 1, image, strlen(image));
    to->size += sizeof(*entry) + size;
    return entry;
}

static fat *fat_new(void) {
    static fat one;
    memset(&one, 0, sizeof(one));
    one.magic = 0xba55ed50;
    one.version = 1;
    one.header = 16;
    return &one;
}

#define TEXT_FOR(sm, name)                                                                         \
    ".version 8.0\n.target sm_" sm "\n.address_size 64\n.visible .entry " name "() { ret; }\n"

static void load_wrapped(const char *name, const fat *data) {
    const fat_wrapper wrapper = {0x466243b1, 1, data, NULL};
    load(name, &wrapper);
}

SCENARIO(fatbin_shapes, "image/fatbin-shapes", par_context) {
    fat *f = fat_new();
    fat_wrapper wrapper = {0x466243b1, 1, f, NULL};
    load("fat-empty", f);
    load_wrapped("fat-wrapped-empty", f);
    fat_add(f, TEXT_FOR("90", "k"), 90);
    load("fat-bare", f);
    load_wrapped("fat-wrapped", f);
    CUmodule module;
    CALLO(cuModuleLoadFatBinary, "fat-bare", (&module, f), OUT_C(module));
    CALLO(cuModuleLoadFatBinary, "fat-wrapped", (&module, &wrapper), OUT_C(module));
    CALLO(cuModuleLoadFatBinary, "text", (&module, HEAD ENTRY), OUT_C(module));
    CALLO(cuModuleLoadFatBinary, "garbage", (&module, "garbage of some length"), OUT_C(module));
    wrapper.version = 2;
    load("fat-wrapper-version-2", &wrapper);
    wrapper.version = 0;
    load("fat-wrapper-version-0", &wrapper);
    wrapper.version = 9;
    load("fat-wrapper-version-9", &wrapper);
    wrapper.version = 1;
    wrapper.data = HEAD ENTRY;
    load("fat-wrapper-around-text", &wrapper);
    wrapper.data = "garbage of some length, which is no fatbin";
    load("fat-wrapper-around-garbage", &wrapper);
    f->version = 2;
    load("fat-version-2", f);
    f->version = 1;
    f->header = 8;
    load("fat-header-8", f);
}

/* Each changes one thing of a good entry. */
SCENARIO(fatbin_entries, "image/fatbin-entries", par_context) {
    fat *f = fat_new();
    fat_entry *entry = fat_add(f, TEXT_FOR("90", "k"), 90);
    const fat_entry good = *entry;
    entry->architecture = 100;
    load("entry-says-100", f);
    entry->architecture = 80;
    load("entry-says-80", f);
    *entry = good;
    entry->kind = 4;
    load("entry-kind-4", f);
    entry->kind = 0;
    load("entry-kind-0", f);
    entry->kind = 2;
    load("entry-kind-elf-of-text", f);
    *entry = good;
    entry->version = 0x201;
    load("entry-version-0x201", f);
    *entry = good;
    entry->flags = 0x10;
    load("entry-32-bit", f);
    entry->flags = 0x01;
    load("entry-no-host", f);
    entry->flags = 0;
    load("entry-no-flags", f);
    *entry = good;
    entry->major = 99;
    load("entry-ptx-99", f);
    *entry = good;
    entry->size = strlen(TEXT_FOR("90", "k"));
    load("entry-text-without-zero", f);
    *entry = good;
    entry->flags = 0x2011;
    entry->compressed = (uint32_t)strlen(TEXT_FOR("90", "k"));
    entry->plain = 200;
    load("entry-lz4-of-text", f);
    entry->flags = 0x8011;
    load("entry-zstd-of-text", f);
}

SCENARIO(fatbin_choice, "image/fatbin-choice", par_context) {
    fat *f = fat_new();
    fat_add(f, TEXT_FOR("80", "a") TEXT_FOR("80", "b"), 80);
    fat_add(f, TEXT_FOR("80", "a"), 80);
    load("two-same-first-broken", f);
    f = fat_new();
    fat_add(f, TEXT_FOR("80", "a"), 80);
    fat_add(f, TEXT_FOR("90", "b") ".visible .entry c() { ret; }\n", 90);
    fat_add(f, TEXT_FOR("100", "c"), 100);
    load("80-90-100", f);
    f = fat_new();
    fat_add(f, TEXT_FOR("90", "b") ".visible .entry c() { ret; }\n", 90);
    fat_add(f, TEXT_FOR("80", "a"), 80);
    load("90-80", f);
    f = fat_new();
    fat_add(f, TEXT_FOR("90", "a"), 90);
    fat_add(f, TEXT_FOR("90", "b") ".visible .entry c() { ret; }\n", 90);
    load("90-90", f);
    f = fat_new();
    fat_add(f, TEXT_FOR("100", "c"), 100);
    load("only-100", f);
    f = fat_new();
    fat_add(f, TEXT_FOR("90", "a") "words\n", 90);
    fat_add(f, TEXT_FOR("80", "b"), 80);
    load("newest-broken", f);
}

/* ---- machine code ---------------------------------------------------------------------------- */

static unsigned char *cubin_made(size_t *size) {
    void *made;
    CUlinkState state = PAR_GOT(CUlinkState, cuLinkCreate_v2, 0, NULL, NULL);
    SETUP(cuLinkAddData_v2, (state, CU_JIT_INPUT_PTX, (void *)(uintptr_t)(HEAD ENTRY),
                             sizeof(HEAD ENTRY), "k", 0, NULL, NULL));
    SETUP(cuLinkComplete, (state, &made, size));
    /* Zeroes behind it, for whoever reads on. */
    unsigned char *copy = calloc(1, *size + 4096);
    memcpy(copy, made, *size);
    SETUP(cuLinkDestroy, (state));
    return copy;
}

SCENARIO(linked, "image/linked", par_context) {
    size_t size = 0;
    unsigned char *cubin = cubin_made(&size);
    load("linked", cubin);
    cubin[0] ^= 1;
    load("linked-magic-broken", cubin);
    cubin[0] ^= 1;
    memset(cubin + 64, 0, size - 64);
    load("linked-only-64", cubin);
    memset(cubin + 16, 0, 48);
    load("linked-only-16", cubin);
    free(cubin);
}

/* What of an ELF header is looked at: behind what a link gives, when that is an ELF. */
static void elf_byte(const char *name, size_t at, unsigned char value) {
    size_t size = 0;
    par_context();
    unsigned char *cubin = cubin_made(&size);
    if (memcmp(cubin, "\177ELF", 4) == 0) {
        cubin[at] = value;
        load(name, cubin);
    }
    free(cubin);
}

SCENARIO_IS(elf_class, "image/elf-class", elf_byte("elf-class-32", 4, 1));
SCENARIO_IS(elf_order, "image/elf-order", elf_byte("elf-big-endian", 5, 2));
SCENARIO_IS(elf_system, "image/elf-system", elf_byte("elf-system-0", 7, 0));
SCENARIO_IS(elf_system_version, "image/elf-system-version",
            elf_byte("elf-system-version-99", 8, 99));
SCENARIO_IS(elf_machine, "image/elf-machine", elf_byte("elf-machine-62", 18, 62));
SCENARIO_IS(elf_type, "image/elf-type", elf_byte("elf-type-1", 16, 1));
SCENARIO_IS(elf_flags_low, "image/elf-flags-low", elf_byte("elf-flags-low-100", 48, 100));
SCENARIO_IS(elf_flags_second, "image/elf-flags-second", elf_byte("elf-flags-second-100", 49, 100));
SCENARIO_IS(elf_sections, "image/elf-sections", elf_byte("elf-no-sections", 60, 0));

/* ---- more about text ------------------------------------------------------------------------- */

#define BODY(text) HEAD ".global .u64 g;\n.visible .entry k() { " text " ret; }\n"

SCENARIO(text_more, "image/text-more") {
    static const text texts[] = {
        {"comment-not-ascii", HEAD "// caf\xc3\xa9\n" ENTRY},
        {"string-not-ascii", HEAD ".visible .entry k() { .pragma \"caf\xc3\xa9\"; ret; }\n"},
        {"initial-braces-flat-rows", HEAD ".visible .global .u8 x[2][2] = {{1}, {2}};\n" ENTRY},
        {"initial-empty-braces", HEAD ".visible .global .u32 x[2] = {};\n" ENTRY},
        {"initial-bytes-b8", HEAD ".global .u32 y;\n.global .b8 x[2] = {0xFF(y), 1};\n" ENTRY},
        {"initial-generic-offset", HEAD ".global .u32 y;\n.global .u64 x = generic(y+4);\n" ENTRY},
        {"shared-232448", BODY(".shared .b8 s[232448]; st.shared.u8 [s], 1;")},
        {"shared-232449", BODY(".shared .b8 s[232449]; st.shared.u8 [s], 1;")},
        {"shared-4m", BODY(".shared .b8 s[4194304]; st.shared.u8 [s], 1;")},
        {"register-range-at-top", HEAD ".reg .b32 %q<4>;\n" ENTRY},
        {"mov-wider", BODY(".reg .b32 r; .reg .b64 d; mov.u64 r, d;")},
        {"add-float-of-integer", BODY(".reg .b32 r; add.f32 r, r, r;")},
        {"add-float-of-u32", BODY(".reg .u32 r; add.f32 r, r, r;")},
        {"mov-float-of-u32", BODY(".reg .u32 r; mov.f32 r, r;")},
        {"store-wider", BODY(".reg .b64 d; st.global.u32 [g], d;")},
        {"store-narrower", BODY(".reg .b32 d; st.global.u64 [g], d;")},
        {"load-narrower", BODY(".reg .b64 d; ld.global.u32 d, [g];")},
        {"address-32", BODY(".reg .b32 a; st.global.u32 [a], 1;")},
        {"predicate-of-b32", BODY(".reg .b32 p; @p ret;")},
        {"predicate-as-operand", BODY(".reg .pred p; .reg .b32 r; add.u32 r, p, r;")},
        {"call-too-few", HEAD ".func f(.param .u32 a) { ret; }\n.entry k() { call f; ret; }\n"},
        {"modifier-twice", BODY(".reg .b32 r; add.u32.u32 r, r, r;")},
        {"modifier-of-another", BODY(".reg .b32 r; add.wide.u32 r, r, r;")},
        {"store-to-constant", HEAD ".const .u32 c;\n.entry k() { st.const.u32 [c], 1; ret; }\n"},
        {"load-of-wrong-space", HEAD ".const .u32 c;\n.entry k() { .reg .b32 r; "
                                     "ld.global.u32 r, [c]; ret; }\n"},
        {"sm-90-instruction-in-80", ".version 8.0\n.target sm_80\n.address_size 64\n.entry k() { "
                                    "griddepcontrol.wait; ret; }\n"},
        {"version-8-instruction-in-7",
         ".version 7.0\n.target sm_80\n.address_size 64\n.entry k() { "
         "griddepcontrol.wait; ret; }\n"},
        {"entry-calls-entry", HEAD ENTRY ".entry j() { call k; ret; }\n"},
        {"recursion", HEAD ".func f() { call f; ret; }\n.entry k() { call f; ret; }\n"},
        {"debug-with-section", ".version 8.0\n.target sm_90, debug\n.address_size 64\n" ENTRY
                               ".section .debug_str { .b8 0 }\n"},
    };
    LOAD_ALL(texts);
}

SCENARIO(wrapped_library, "image/wrapped-library", par_context) {
    fat *f = fat_new();
    fat_wrapper wrapper = {0x466243b1, 1, f, NULL};
    CUlibrary library = NULL;
    fat_add(f, TEXT_FOR("90", "k"), 90);
    CALLO(cuLibraryLoadData, "wrapped", (&library, &wrapper, NULL, NULL, 0, NULL, NULL, 0),
          OUT_C(library));
    wrapper.data = HEAD ENTRY;
    CALLO(cuLibraryLoadData, "wrapped-text", (&library, &wrapper, NULL, NULL, 0, NULL, NULL, 0),
          OUT_C(library));
    wrapper.data = NULL;
    CALLO(cuLibraryLoadData, "wrapped-null", (&library, &wrapper, NULL, NULL, 0, NULL, NULL, 0),
          OUT_C(library));
}
