/* Whole kernels on every level: what they leave in memory. */
#include "kernel.h"
#include "kernel_texts.h"

TEST(saxpy_writes_its_elements_and_nothing_beyond) {
    FOR_EACH_LEVEL(level) {
        enum { COUNT = 1000, ROOM = 1024 };
        static float x[ROOM], y[ROOM];
        for (int i = 0; i < ROOM; i++) {
            x[i] = (float)i;
            y[i] = 0.5F;
        }
        struct kernel kernel;
        kernel_make(&kernel, saxpy_text, (enum sg_level)level);
        float a = 3;
        kernel_pointer(&kernel, y);
        kernel_pointer(&kernel, x);
        kernel_argument(&kernel, &a, 4);
        kernel_number(&kernel, COUNT);
        kernel_shape(&kernel, 8, 128);
        kernel_succeeds(&kernel);
        for (int i = 0; i < ROOM; i++)
            assert_true(y[i] == (i < COUNT ? (float)i * 3 + 0.5F : 0.5F));
        kernel_free(&kernel);
    }
}

TEST(a_tiled_matrix_multiplication_is_exact) {
    enum { N = 48 };
    static float a[N][N], b[N][N], c[N][N];
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            a[i][j] = (float)(i * 3 + j % 5);
            b[i][j] = (float)(j * 2 - i % 7);
        }
    FOR_EACH_LEVEL(level) {
        struct kernel kernel;
        memset(c, 0, sizeof c);
        kernel_make(&kernel, matmul_text, (enum sg_level)level);
        kernel_pointer(&kernel, c);
        kernel_pointer(&kernel, a);
        kernel_pointer(&kernel, b);
        kernel_number(&kernel, N);
        for (int i = 0; i < 2; i++) {
            kernel.launch.grid[i] = N / 16;
            kernel.launch.block[i] = 16;
        }
        kernel_succeeds(&kernel);
        for (int i = 0; i < N; i++)
            for (int j = 0; j < N; j++) {
                float sum = 0; /* whole numbers: exact in any order */
                for (int k = 0; k < N; k++)
                    sum += a[i][k] * b[k][j];
                assert_true(c[i][j] == sum);
            }
        kernel_free(&kernel);
    }
}

TEST(a_shuffle_reduction_sums_all_elements) {
    enum { COUNT = 5000, BLOCKS = 3 };
    static float in[COUNT];
    double all = 0;
    for (int i = 0; i < COUNT; i++)
        all += in[i] = (float)(i % 11);
    FOR_EACH_LEVEL(level) {
        float out[BLOCKS] = {0};
        struct kernel kernel;
        kernel_make(&kernel, reduce_text, (enum sg_level)level);
        kernel_pointer(&kernel, out);
        kernel_pointer(&kernel, in);
        kernel_number(&kernel, COUNT);
        kernel_shape(&kernel, BLOCKS, 256);
        kernel_succeeds(&kernel);
        assert_true((double)out[0] + out[1] + out[2] == all);
        kernel_free(&kernel);
    }
}

TEST(a_histogram_by_shared_atomics_is_exact) {
    enum { COUNT = 10000 };
    static unsigned char in[COUNT];
    uint32_t expected[256] = {0};
    for (uint32_t i = 0; i < COUNT; i++) {
        in[i] = (unsigned char)(i * 2654435761u >> 25);
        expected[in[i]]++;
    }
    FOR_EACH_LEVEL(level) {
        uint32_t bins[256] = {0};
        struct kernel kernel;
        kernel_make(&kernel, histogram_text, (enum sg_level)level);
        kernel_pointer(&kernel, bins);
        kernel_pointer(&kernel, in);
        kernel_number(&kernel, COUNT);
        kernel_shape(&kernel, 7, 256);
        kernel_succeeds(&kernel);
        assert_memory_equal(bins, expected, sizeof bins);
        kernel_free(&kernel);
    }
}
