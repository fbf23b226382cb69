/* Dynamic shared memory above 48 KiB: refused until the function opts in. */
#include "base/program.h"

#define SIDE 157u

static void turn(unsigned matrices) {
    unsigned side = SIDE, bytes = SIDE * SIDE * sizeof(uint32_t);
    uint32_t *in = host_new((size_t)matrices * bytes), *want = host_new((size_t)matrices * bytes);
    uint32_t *got = host_new((size_t)matrices * bytes);
    for (unsigned i = 0; i < matrices * SIDE * SIDE; i++)
        in[i] = random_bits();
    for (unsigned m = 0; m < matrices; m++)
        for (unsigned i = 0; i < SIDE * SIDE; i++)
            want[m * SIDE * SIDE + i] = in[m * SIDE * SIDE + i % SIDE * SIDE + SIDE - 1 - i / SIDE];
    CUdeviceptr matrix = device_copy(in, (size_t)matrices * bytes);
    CUfunction function = program_kernel("turn");
    CUresult result = cu.cuLaunchKernel(function, matrices, 1, 1, 256, 1, 1, bytes, NULL,
                                        (void *[]){&matrix, &side}, NULL);
    expect(result == CUDA_ERROR_INVALID_VALUE, "%u bytes without asking: error %d", bytes,
           (int)result);
    OK(cu.cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                             (int)bytes));
    LAUNCH("turn", SHAPE(matrices, 256, .shared = bytes), &matrix, &side);
    device_read(got, matrix, (size_t)matrices * bytes);
    expect_equal("turned", got, want, (size_t)matrices * bytes);
    checksum("turned", got, (size_t)matrices * bytes);
}

static void counts(unsigned blocks) {
    unsigned range = 25000, count = 4000, bytes = range * sizeof(uint32_t);
    uint32_t *numbers = host_new((size_t)blocks * count * sizeof *numbers);
    uint32_t *want = host_new((size_t)blocks * bytes), *got = host_new((size_t)blocks * bytes);
    for (unsigned i = 0; i < blocks * range; i++)
        want[i] = bytes * 1000;
    for (unsigned i = 0; i < blocks * count; i++)
        want[i / count * range + (numbers[i] = random_bits()) % range]++;
    CUdeviceptr from = device_copy(numbers, (size_t)blocks * count * sizeof *numbers);
    CUdeviceptr out = device_new((size_t)blocks * bytes);
    OK(cu.cuFuncSetAttribute(program_kernel("counts"),
                             CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, (int)bytes));
    LAUNCH("counts", SHAPE(blocks, 512, .shared = bytes), &from, &count, &range, &out);
    device_read(got, out, (size_t)blocks * bytes);
    expect_equal("counts", got, want, (size_t)blocks * bytes);
    checksum("counts", got, (size_t)blocks * bytes);
}

PROGRAM("large_shared") {
    unsigned more = program_scale(10);
    turn(4 * more);
    counts(3 * more);
}
