/*
 * What Triton's compiler makes, launched as Triton launches it: pipelined copies, matrix
 * instructions, reductions, scans, atomics. Its texts for compute capability 8.0 run on newer
 * devices, too.
 */
#include "kernel_module.h"
#include "triton/texts.h"

#include <math.h>

#define MOST_PARAMETERS 8

/* A module of one text, and the shape of its launches, which the text's first line says. */
struct text {
    CUmodule module;
    CUfunction function;
    unsigned threads, shared;
};

static struct text text_open(const char *ptx) {
    struct text text = {0};
    char name[32];
    assert_int_equal(
        sscanf(ptx, "// %31[a-z]: %u threads, %u bytes", name, &text.threads, &text.shared), 3);
    OK_CU(cu.cuModuleLoadData(&text.module, ptx));
    OK_CU(cu.cuModuleGetFunction(&text.function, text.module, name));
    if (text.shared > 48 << 10)
        OK_CU(cu.cuFuncSetAttribute(text.function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                    (int)text.shared));
    return text;
}

/* Behind a kernel's own parameters comes the address of scratch memory, which none of these has. */
static CUresult text_launch(const struct text *text, unsigned x, unsigned y, void *const *own,
                            unsigned count) {
    void *params[MOST_PARAMETERS + 1];
    CUdeviceptr scratch = 0;
    assert_true(count <= MOST_PARAMETERS);
    memcpy(params, own, count * sizeof *own);
    params[count] = &scratch;
    return cu.cuLaunchKernel(text->function, x, y, 1, text->threads, 1, 1, text->shared, NULL,
                             params, NULL);
}

#define LAUNCH(text, x, y, ...)                                                                    \
    text_launch(&(text), x, y, (void *[]){__VA_ARGS__},                                            \
                sizeof((void *[]){__VA_ARGS__}) / sizeof(void *))

static void text_close(const struct text *text) {
    OK_CU(cu.cuModuleUnload(text->module));
}

static CUdeviceptr on_device(const void *bytes, size_t size) {
    CUdeviceptr memory;
    OK_CU(cu.cuMemAlloc_v2(&memory, size));
    if (bytes)
        OK_CU(cu.cuMemcpyHtoD_v2(memory, bytes, size));
    else
        OK_CU(cu.cuMemsetD8_v2(memory, 0, size));
    return memory;
}

static void take(void *bytes, CUdeviceptr memory, size_t size) {
    OK_CU(cu.cuMemcpyDtoH_v2(bytes, memory, size));
    OK_CU(cu.cuMemFree_v2(memory));
}

#define ON_DEVICE(array) on_device(array, sizeof(array))
#define TAKE(array, p)   take(array, p, sizeof(array))

/* Of numbers that are exact in 11 bits and not too small. */
static uint16_t half_of(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if (value == 0)
        return 0;
    return (uint16_t)((bits >> 16 & 0x8000) | (((bits >> 23 & 255) - 112) << 10) |
                      (bits >> 13 & 0x3ff));
}

static float of_half(uint16_t half) {
    float size = (half & 0x7c00) ? ldexpf((float)((half & 0x3ff) | 0x400), (half >> 10 & 31) - 25)
                                 : ldexpf((float)(half & 0x3ff), -24);
    return half & 0x8000 ? -size : size;
}

static uint16_t bf16_of(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return (uint16_t)(bits >> 16);
}

/* Small whole numbers, negative ones too, that repeat late. */
static float number(unsigned i) {
    return (float)((i * 2654435761u >> 20) % 17) - 8;
}

static void near(float got, float wanted, float within) {
    if (!(fabsf(got - wanted) <= within))
        fail_msg("got %g, wanted %g within %g", (double)got, (double)wanted, (double)within);
}

TEST(a_triton_kernel_adds_arrays) {
    NEEDS_KERNELS();
    enum { COUNT_OF = 1000 };
    static float x[COUNT_OF], y[COUNT_OF], got[COUNT_OF + 24];
    for (unsigned i = 0; i < COUNT_OF; i++)
        x[i] = number(i), y[i] = (float)i / 4;
    struct text text = text_open(triton_add);
    CUdeviceptr a = ON_DEVICE(x), b = ON_DEVICE(y), out = on_device(NULL, sizeof got);
    int n = COUNT_OF;
    OK_CU(LAUNCH(text, 4, 1, &a, &b, &out, &n));
    TAKE(got, out);
    for (unsigned i = 0; i < COUNT(got); i++)
        assert_true(got[i] == (i < COUNT_OF ? x[i] + y[i] : 0)); /* exact; nothing past the end */
    OK_CU(cu.cuMemFree_v2(a));
    OK_CU(cu.cuMemFree_v2(b));
    text_close(&text);
}

static void softmax(const char *ptx) {
    enum { ROWS = 5, ROW = 784 };
    static float x[ROWS][ROW], got[ROWS][ROW];
    for (unsigned i = 0; i < ROWS * ROW; i++)
        x[i / ROW][i % ROW] = number(i) / 2;
    struct text text = text_open(ptx);
    CUdeviceptr in = ON_DEVICE(x), out = on_device(NULL, sizeof got);
    int row = ROW;
    OK_CU(LAUNCH(text, ROWS, 1, &out, &in, &row, &row));
    TAKE(got, out);
    for (unsigned r = 0; r < ROWS; r++) {
        double sum = 0;
        for (unsigned i = 0; i < ROW; i++)
            sum += exp((double)x[r][i]);
        for (unsigned i = 0; i < ROW; i++)
            near(got[r][i], (float)(exp((double)x[r][i]) / sum), 1e-7f);
    }
    OK_CU(cu.cuMemFree_v2(in));
    text_close(&text);
}

TEST(a_triton_kernel_computes_softmax) {
    NEEDS_KERNELS();
    softmax(triton_softmax);
    if (device_attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) == 9)
        softmax(triton_softmax_90);
}

/* ---- Products of matrices -------------------------------------------------------------------- */

enum { M = 128, N = 64, K = 96 };
enum element { HALF, BFLOAT, TF32 };
static float left[M][K], right[K][N];

static CUdeviceptr elements(enum element kind, const float *from, unsigned count) {
    static uint16_t narrow[M * K];
    assert_true(count <= COUNT(narrow));
    for (unsigned i = 0; i < count; i++)
        narrow[i] = kind == HALF ? half_of(from[i]) : bf16_of(from[i]);
    return kind == TF32 ? on_device(from, count * sizeof *from)
                        : on_device(narrow, count * sizeof *narrow);
}

/* Whole numbers: the sums are exact in whatever order hardware adds. */
static CUresult product(const char *ptx, enum element kind, unsigned tile) {
    static float got[M][N];
    for (unsigned i = 0; i < M * K; i++)
        left[i / K][i % K] = number(i);
    for (unsigned i = 0; i < K * N; i++)
        right[i / N][i % N] = number(i + 77777);
    struct text text = text_open(ptx);
    CUdeviceptr a = elements(kind, left[0], M * K), b = elements(kind, right[0], K * N);
    CUdeviceptr c = on_device(NULL, sizeof got);
    int m = M, n = N, k = K;
    CUresult result = LAUNCH(text, M / tile, N / tile, &a, &b, &c, &m, &n, &k);
    TAKE(got, c);
    for (unsigned i = 0; result == CUDA_SUCCESS && i < M * N; i++) {
        float sum = 0;
        for (unsigned at = 0; at < K; at++)
            sum += left[i / N][at] * right[at][i % N];
        assert_true(got[i / N][i % N] == sum);
    }
    OK_CU(cu.cuMemFree_v2(a));
    OK_CU(cu.cuMemFree_v2(b));
    text_close(&text);
    return result;
}

TEST(triton_kernels_multiply_matrices) {
    NEEDS_KERNELS();
    OK_CU(product(triton_product_half, HALF, 64));
    OK_CU(product(triton_product_bf16, BFLOAT, 32));
    OK_CU(product(triton_product_tf32, TF32, 32));
    if (device_attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) == 9)
        OK_CU(product(triton_product_bf16_90, BFLOAT, 32));
}

/* ---- Attention ------------------------------------------------------------------------------- */

enum { LENGTH = 192, DEPTH = 64 };
static float q[LENGTH][DEPTH], k[LENGTH][DEPTH], v[LENGTH][DEPTH];

static CUdeviceptr halves(float values[LENGTH][DEPTH], unsigned seed) {
    static uint16_t narrow[LENGTH * DEPTH];
    for (unsigned i = 0; i < LENGTH * DEPTH; i++) {
        values[i / DEPTH][i % DEPTH] = number(i + seed) / 8;
        narrow[i] = half_of(values[i / DEPTH][i % DEPTH]);
    }
    return ON_DEVICE(narrow);
}

/* Row `i` of the result, in double. */
static void attended(unsigned i, double row[DEPTH]) {
    double whole = 0;
    memset(row, 0, DEPTH * sizeof *row);
    for (unsigned j = 0; j < LENGTH; j++) {
        double score = 0;
        for (unsigned d = 0; d < DEPTH; d++)
            score += (double)q[i][d] * (double)k[j][d];
        double part = exp(score / 8);
        whole += part;
        for (unsigned d = 0; d < DEPTH; d++)
            row[d] += part * (double)v[j][d];
    }
    for (unsigned d = 0; d < DEPTH; d++)
        row[d] /= whole;
}

static CUresult attention(const char *ptx) {
    static uint16_t got[LENGTH][DEPTH];
    struct text text = text_open(ptx);
    CUdeviceptr a = halves(q, 1), b = halves(k, 50000), c = halves(v, 90000);
    CUdeviceptr out = on_device(NULL, sizeof got);
    float scale = 0.125f;
    int length = LENGTH;
    CUresult result = LAUNCH(text, LENGTH / 64, 1, &a, &b, &c, &out, &scale, &length);
    TAKE(got, out);
    for (unsigned i = 0; result == CUDA_SUCCESS && i < LENGTH; i++) {
        double row[DEPTH];
        attended(i, row);
        for (unsigned d = 0; d < DEPTH; d++)
            near(of_half(got[i][d]), (float)row[d], 2e-3f); /* probabilities are halves, too */
    }
    OK_CU(cu.cuMemFree_v2(a));
    OK_CU(cu.cuMemFree_v2(b));
    OK_CU(cu.cuMemFree_v2(c));
    text_close(&text);
    return result;
}

TEST(a_triton_kernel_computes_tiled_attention) {
    NEEDS_KERNELS();
    OK_CU(attention(triton_attention));
}

/* For 9.0 itself Triton writes wgmma, which softgpu refuses by name: a profile of 8.0 avoids it. */
TEST(a_kernel_with_wgmma_runs_or_is_refused_by_name) {
    NEEDS_KERNELS();
    if (device_attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) != 9)
        SKIP("wgmma is of compute capability 9.0 alone");
    if (!soft) {
        OK_CU(product(triton_product_half_90, HALF, 64));
        OK_CU(attention(triton_attention_90));
        return;
    }
    int error = dup(STDERR_FILENO), file = output_begin(STDERR_FILENO);
    CUresult results[] = {product(triton_product_half_90, HALF, 64),
                          attention(triton_attention_90)};
    char *said = output_so_far(file);
    assert_true(dup2(error, STDERR_FILENO) >= 0);
    close(error);
    close(file);
    FAILS_CU(NOT_SUPPORTED, results[0]);
    FAILS_CU(NOT_SUPPORTED, results[1]);
    assert_non_null(strstr(said, "kernel product was not launched"));
    assert_non_null(strstr(said, "kernel attention was not launched"));
    assert_non_null(strstr(said, "wgmma"));
    free(said);
}

/* ---- Others ---------------------------------------------------------------------------------- */

TEST(triton_kernels_use_atomics_and_a_lock) {
    NEEDS_KERNELS();
    enum { VALUES = 5000, BINS = 16, PROGRAMS = 50 };
    static int values[VALUES], bins[BINS], order[PROGRAMS], counter[2];
    int wanted[BINS] = {0}, seen[PROGRAMS] = {0}, n = VALUES;
    for (unsigned i = 0; i < VALUES; i++)
        wanted[values[i] = (int)(i * 7 % 13)]++;
    struct text text = text_open(triton_histogram);
    CUdeviceptr in = ON_DEVICE(values), out = on_device(NULL, sizeof bins);
    OK_CU(LAUNCH(text, (VALUES + 255) / 256, 1, &in, &out, &n));
    TAKE(bins, out);
    assert_memory_equal(bins, wanted, sizeof bins);
    OK_CU(cu.cuMemFree_v2(in));
    text_close(&text);
    text = text_open(triton_ticket);
    in = on_device(NULL, sizeof counter);
    out = on_device(NULL, sizeof order);
    OK_CU(LAUNCH(text, PROGRAMS, 1, &in, &out));
    TAKE(order, out);
    TAKE(counter, in);
    assert_int_equal(counter[0], 0);
    assert_int_equal(counter[1], PROGRAMS);
    for (unsigned i = 0; i < PROGRAMS; i++)
        seen[order[i]]++;
    for (unsigned i = 0; i < PROGRAMS; i++)
        assert_int_equal(seen[i], 1);
    text_close(&text);
}

TEST(a_triton_kernel_computes_prefix_sums) {
    NEEDS_KERNELS();
    static int x[1024], got[1024];
    for (unsigned i = 0; i < COUNT(x); i++)
        x[i] = (int)(i * 2654435761u >> 8);
    struct text text = text_open(triton_scan);
    CUdeviceptr in = ON_DEVICE(x), out = on_device(NULL, sizeof got);
    OK_CU(LAUNCH(text, 1, 1, &in, &out));
    TAKE(got, out);
    unsigned sum = 0;
    for (unsigned i = 0; i < COUNT(x); i++)
        assert_int_equal((unsigned)got[i], sum += (unsigned)x[i]);
    OK_CU(cu.cuMemFree_v2(in));
    text_close(&text);
}

TEST(a_triton_kernel_normalizes_rows) {
    NEEDS_KERNELS();
    enum { ROWS = 3, ROW = 400 };
    static uint16_t x[ROWS][ROW], got[ROWS][ROW];
    static float weight[ROW], bias[ROW];
    for (unsigned i = 0; i < ROWS * ROW; i++)
        x[i / ROW][i % ROW] = half_of(number(i));
    for (unsigned i = 0; i < ROW; i++)
        weight[i] = number(i + 5) / 8, bias[i] = number(i + 9);
    struct text text = text_open(triton_normalize);
    CUdeviceptr in = ON_DEVICE(x), w = ON_DEVICE(weight), b = ON_DEVICE(bias);
    CUdeviceptr out = on_device(NULL, sizeof got);
    int row = ROW;
    float eps = 0.5f;
    OK_CU(LAUNCH(text, ROWS, 1, &in, &w, &b, &out, &row, &eps));
    TAKE(got, out);
    for (unsigned r = 0; r < ROWS; r++) {
        double mean = 0, most = 0;
        for (unsigned i = 0; i < ROW; i++)
            mean += (double)of_half(x[r][i]) / (double)ROW;
        for (unsigned i = 0; i < ROW; i++)
            most = fmax(most, fabs((double)of_half(x[r][i]) - mean));
        for (unsigned i = 0; i < ROW; i++)
            near(of_half(got[r][i]),
                 (float)(((double)of_half(x[r][i]) - mean) / (most + 0.5) * (double)weight[i] +
                         (double)bias[i]),
                 5e-3f); /* a half near 9 has steps of 2^-7 */
    }
    OK_CU(cu.cuMemFree_v2(in));
    OK_CU(cu.cuMemFree_v2(w));
    OK_CU(cu.cuMemFree_v2(b));
    text_close(&text);
}

TEST(a_triton_kernel_transposes_a_matrix) {
    NEEDS_KERNELS();
    enum { ROWS = 64, COLUMNS = 96 };
    static float x[ROWS][COLUMNS], got[COLUMNS][ROWS];
    for (unsigned i = 0; i < ROWS * COLUMNS; i++)
        x[i / COLUMNS][i % COLUMNS] = (float)i;
    struct text text = text_open(triton_transpose);
    CUdeviceptr in = ON_DEVICE(x), out = on_device(NULL, sizeof got);
    int m = ROWS, n = COLUMNS;
    OK_CU(LAUNCH(text, ROWS / 32, COLUMNS / 32, &in, &out, &m, &n));
    TAKE(got, out);
    for (unsigned i = 0; i < ROWS * COLUMNS; i++)
        assert_true(got[i % COLUMNS][i / COLUMNS] == (float)i);
    OK_CU(cu.cuMemFree_v2(in));
    text_close(&text);
}
