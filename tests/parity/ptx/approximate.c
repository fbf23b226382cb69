/*
 * Functions for which PTX only bounds the error. In single precision the results for all 2^32
 * inputs are hashed, in blocks of 2^20; in half precision all results are printed; with two
 * operands, pairs are sampled. Inputs in f64 are the upper halves, as the functions read no more.
 */
#include "approximate.h"
#include "ptx.h"

#include <stdlib.h>
#include <string.h>

const struct ptx_function ptx_functions[] = {
    {"ex2.approx.f32", SINGLE, 0.5f, 2},     {"ex2.approx.ftz.f32", SINGLE, 0, 0},
    {"lg2.approx.f32", SINGLE, 0.5f, 3},     {"lg2.approx.ftz.f32", SINGLE, 0, 0},
    {"sin.approx.f32", SINGLE, 0.25f, 5},    {"sin.approx.ftz.f32", SINGLE, 0, 0},
    {"cos.approx.f32", SINGLE, 0.25f, 5},    {"cos.approx.ftz.f32", SINGLE, 0, 0},
    {"rcp.approx.f32", SINGLE, 1, 1},        {"rcp.approx.ftz.f32", SINGLE, 0, 0},
    {"rsqrt.approx.f32", SINGLE, 1, 2},      {"rsqrt.approx.ftz.f32", SINGLE, 0, 0},
    {"sqrt.approx.f32", SINGLE, 1, 2},       {"sqrt.approx.ftz.f32", SINGLE, 0, 0},
    {"tanh.approx.f32", SINGLE, 0.0625f, 8}, {"rcp.approx.ftz.f64", DOUBLE, 0, 0},
    {"rsqrt.approx.ftz.f64", DOUBLE, 0, 0},  {"ex2.approx.f16", HALF, 0, 0},
    {"ex2.approx.ftz.bf16", HALF, 0, 0},     {"tanh.approx.f16", HALF, 0, 0},
    {"tanh.approx.bf16", HALF, 0, 0},        {"div.approx.f32", PAIR, 0, 0},
    {"div.approx.ftz.f32", PAIR, 0, 0},      {"div.full.f32", PAIR, 0, 0},
    {"div.full.ftz.f32", PAIR, 0, 0},
};
_Static_assert(sizeof ptx_functions / sizeof *ptx_functions == FUNCTIONS, "count them");

#define PART   65536u /* inputs for each block of threads */
#define LINE   16u    /* hashes in a line */
#define STRIDE 61u    /* between inputs whose results are sampled */

/* %y = f(%x); if f has two operands, both are made from %x. */
static void put_call(FILE *file, const struct ptx_function *f) {
    switch (f->kind) {
    case DOUBLE:
        fprintf(file,
                "mov.b64 %%w, {%%zero,%%x}; %s %%w, %%w; mov.b64 {%%low,%%y}, %%w;\n"
                "xor.b32 %%y, %%y, %%low;\n",
                f->name);
        break;
    case HALF:
        fprintf(file, "cvt.u16.u32 %%h, %%x; %s %%h, %%h; cvt.u32.u16 %%y, %%h;\n", f->name);
        break;
    case PAIR:
        fprintf(file,
                "mul.lo.u32 %%a, %%x, 0x9E3779B1; shr.u32 %%b, %%a, 15; xor.b32 %%a, %%a, %%b;\n"
                "mul.lo.u32 %%a, %%a, 0x85EBCA77; shr.u32 %%b, %%a, 13; xor.b32 %%a, %%a, %%b;\n"
                "mul.lo.u32 %%b, %%a, 0xC2B2AE3D; shr.u32 %%y, %%b, 16; xor.b32 %%b, %%b, %%y;\n"
                "mul.lo.u32 %%b, %%b, 0x27D4EB2F; shr.u32 %%y, %%b, 14; xor.b32 %%b, %%b, %%y;\n"
                "%s %%y, %%a, %%b;\n",
                f->name);
        break;
    default:
        fprintf(file, "%s %%y, %%x;\n", f->name);
    }
}

/*
 * hash(out, first, each, stride): a block of threads hashes inputs and results, and adds the hashes
 * up in out[block]; give(out, first, stride): out[i] is the result for first + i * stride.
 */
CUmodule ptx_function_module(const struct ptx_function *f) {
    char *text;
    size_t size;
    CUmodule module;
    FILE *file = open_memstream(&text, &size);
    if (file == NULL)
        abort();
    fprintf(
        file, PTX_HEAD
        ".visible .entry hash(.param .u64 out, .param .u32 first) {\n"
        ".reg .b32 %%x, %%y, %%t, %%low, %%zero, %%n, %%a, %%b, %%m; .reg .b64 %%w, %%sum, %%p;\n"
        ".reg .b16 %%h; .reg .pred %%q;\n"
        "mov.u32 %%zero, 0; mov.b64 %%sum, 0; mov.u32 %%t, %%ctaid.x; shl.b32 %%t, %%t, 16;\n"
        "ld.param.u32 %%x, [first]; add.u32 %%x, %%x, %%t; mov.u32 %%t, %%tid.x;\n"
        "add.u32 %%x, %%x, %%t; mov.u32 %%n, 256;\nAGAIN:\n");
    put_call(file, f);
    fprintf(file, "mul.lo.u32 %%m, %%y, 0x9E3779B1; add.u32 %%m, %%m, %%x; shr.u32 %%t, %%m, 15;\n"
                  "xor.b32 %%m, %%m, %%t; mul.lo.u32 %%m, %%m, 0x85EBCA77; xor.b32 %%y, %%y, %%x;\n"
                  "mad.wide.u32 %%sum, %%m, %%y, %%sum; cvt.u64.u32 %%w, %%m;\n"
                  "add.u64 %%sum, %%sum, %%w;\n"
                  "add.u32 %%x, %%x, 256; sub.u32 %%n, %%n, 1; setp.ne.u32 %%q, %%n, 0;\n"
                  "@%%q bra AGAIN;\n"
                  "ld.param.u64 %%p, [out]; mov.u32 %%t, %%ctaid.x; mul.wide.u32 %%w, %%t, 8;\n"
                  "add.u64 %%p, %%p, %%w; red.global.add.u64 [%%p], %%sum; ret; }\n");
    fprintf(
        file,
        ".visible .entry give(.param .u64 out, .param .u32 first, .param .u32 stride) {\n"
        ".reg .b32 %%x, %%y, %%t, %%low, %%zero, %%n, %%a, %%b; .reg .b64 %%w, %%p; .reg .b16 "
        "%%h;\n"
        "mov.u32 %%zero, 0; mov.u32 %%t, %%ctaid.x; mov.u32 %%n, %%tid.x;\n"
        "mad.lo.u32 %%n, %%t, 256, %%n; ld.param.u32 %%x, [first]; ld.param.u32 %%t, [stride];\n"
        "mad.lo.u32 %%x, %%n, %%t, %%x;\n");
    put_call(file, f);
    fprintf(file, "ld.param.u64 %%p, [out]; mul.wide.u32 %%w, %%n, 4; add.u64 %%p, %%p, %%w;\n"
                  "st.global.u32 [%%p], %%y; ret; }\n");
    fclose(file);
    MUST(cu->cuModuleLoadData(&module, text));
    free(text);
    return module;
}

uint64_t ptx_function_inputs(const struct ptx_function *f) {
    return f->kind == HALF ? 65536 : f->kind == PAIR ? (uint64_t)1 << 26 : (uint64_t)1 << 32;
}

static CUdeviceptr out;
static CUmodule modules[FUNCTIONS];

static void begin(void) {
    ptx_open(NULL);
    MUST(cu->cuMemAlloc_v2(&out, (size_t)BLOCK * 4));
}

static CUfunction kernel_of(size_t function, const char *name) {
    CUfunction kernel;
    if (modules[function] == NULL)
        modules[function] = ptx_function_module(&ptx_functions[function]);
    MUST(cu->cuModuleGetFunction(&kernel, modules[function], name));
    return kernel;
}

/* The hashes of consecutive blocks of inputs. */
static void hash(CUfunction kernel, uint32_t first, unsigned blocks, uint64_t *hashes) {
    static uint64_t parts[LINE * BLOCK / PART];
    void *params[] = {&out, &first};
    MUST(cu->cuMemsetD8_v2(out, 0, sizeof parts));
    MUST(cu->cuLaunchKernel(kernel, blocks * (BLOCK / PART), 1, 1, THREADS, 1, 1, 0, NULL, params,
                            NULL));
    MUST(cu->cuMemcpyDtoH_v2(parts, out, sizeof parts));
    for (unsigned i = 0; i < blocks; i++) {
        hashes[i] = 0;
        for (unsigned k = 0; k < BLOCK / PART; k++)
            hashes[i] += ptx_mix(parts[i * (BLOCK / PART) + k] + k);
    }
}

/* One for each line: the function and which of its inputs. */
static struct item {
    size_t function;
    uint32_t first;
} * items;
static unsigned every;

static void put_name(unsigned item, FILE *file) {
    fprintf(file, "%s %08x", ptx_functions[items[item].function].name, items[item].first);
}

static void put_halves(const struct item *item, FILE *file) {
    static uint32_t got[1024];
    uint32_t first = item->first, stride = 1;
    void *params[] = {&out, &first, &stride};
    CUfunction kernel = kernel_of(item->function, "give");
    MUST(cu->cuLaunchKernel(kernel, 4, 1, 1, THREADS, 1, 1, 0, NULL, params, NULL));
    MUST(cu->cuMemcpyDtoH_v2(got, out, sizeof got));
    for (size_t i = 0; i < 1024; i++)
        fprintf(file, "%c%x", i ? ' ' : '\t', got[i]);
}

static bool work(unsigned number, FILE *file) {
    const struct item *item = &items[number];
    put_name(number, file);
    if (ptx_functions[item->function].kind == HALF) {
        put_halves(item, file);
    } else {
        CUfunction kernel = kernel_of(item->function, "hash");
        uint64_t hashes[LINE];
        unsigned step = every < 1 ? 1 : every < LINE ? every : LINE;
        if (step == 1)
            hash(kernel, item->first, LINE, hashes);
        for (unsigned i = 0; step > 1 && i < LINE; i += step)
            hash(kernel, item->first + i * BLOCK, 1, &hashes[i]);
        for (unsigned i = 0; i < LINE; i++) {
            fputc(i ? ' ' : '\t', file);
            if (i % step)
                fputc('-', file);
            else
                fprintf(file, "%08x", (uint32_t)(hashes[i] >> 32 ^ hashes[i]));
        }
    }
    fputc('\n', file);
    return true;
}

static unsigned list_items(const struct ptx_options *options) {
    unsigned count = 0;
    every = options->every ? options->every : 1;
    items = calloc(FUNCTIONS * 256, sizeof *items);
    if (items == NULL)
        abort();
    for (size_t f = 0; f < FUNCTIONS; f++) {
        uint64_t inputs = ptx_function_inputs(&ptx_functions[f]);
        unsigned line = ptx_functions[f].kind == HALF ? 1024 : LINE * BLOCK;
        if (options->only != NULL && strstr(ptx_functions[f].name, options->only) == NULL)
            continue;
        /* If more blocks than a line's are skipped at once, whole lines are left out. */
        uint64_t skip = ptx_functions[f].kind == HALF || every <= LINE ? 1 : every / LINE;
        for (uint64_t first = 0; first < inputs; first += line * skip)
            items[count++] = (struct item){f, (uint32_t)first};
    }
    return count;
}

int ptx_approximate_record(const struct ptx_options *options, FILE *to) {
    struct ptx_work all = {.count = list_items(options),
                           .chunk = 64,
                           .jobs = options->jobs,
                           .seconds = 600,
                           .begin = begin,
                           .work = work,
                           .name = put_name};
    unsigned bad = ptx_fan_out(&all, to);
    free(items);
    return bad ? 1 : 0;
}

/* Writes binary results, 32 bits each, function after function, for every STRIDE-th input of the
 * ranges from which tables can be fitted. */
int ptx_approximate_steps(const struct ptx_options *options, FILE *to) {
    uint32_t *got = malloc((size_t)BLOCK * 4);
    (void)options;
    if (got == NULL)
        abort();
    begin();
    for (size_t f = 0; f < FUNCTIONS; f++) {
        uint32_t first, stride = STRIDE;
        memcpy(&first, &ptx_functions[f].step, sizeof first);
        uint32_t left = (ptx_functions[f].octaves << 23) / STRIDE;
        while (left > 0) {
            uint32_t count = left < BLOCK ? left : BLOCK;
            void *params[] = {&out, &first, &stride};
            MUST(cu->cuLaunchKernel(kernel_of(f, "give"), (count + THREADS - 1) / THREADS, 1, 1,
                                    THREADS, 1, 1, 0, NULL, params, NULL));
            MUST(cu->cuMemcpyDtoH_v2(got, out, (size_t)count * 4));
            fwrite(got, 4, count, to);
            first += count * STRIDE;
            left -= count;
        }
    }
    free(got);
    return 0;
}
