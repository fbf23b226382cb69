/* Memory that kernels allocate with malloc, and that outlives the kernel. */
#include "base/program.h"

PROGRAM_KERNELS("device_heap");

#define BLOCKS  20u
#define THREADS 64u
#define LISTS   (BLOCKS * THREADS)

int main(void) {
    static uint32_t want[LISTS], got[LISTS], wrong;
    program_begin_empty("device_heap");
    OK(cu.cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 16u << 20));
    OK(cu.cuModuleLoadData(&program_module, program_kernels));
    CUdeviceptr lists = device_new(LISTS * 8), sums = device_new(sizeof got), count = device_new(4);
    struct shape shape = SHAPE(BLOCKS, THREADS);
    for (unsigned i = 0; i < LISTS; i++)
        for (unsigned j = i % 7; j-- > 0;)
            want[i] = want[i] * 31 + i * 10 + j;
    for (unsigned round = 0; round < 3 * program_scale(20); round++) {
        LAUNCH("make", shape, &lists, &count);
        LAUNCH("sum", shape, &lists, &sums);
        LAUNCH("give_back", shape, &lists);
    }
    device_read(got, sums, sizeof got);
    device_read(&wrong, count, sizeof wrong);
    expect(wrong == 0, "allocations that were refused, not aligned or too large: %u", wrong);
    expect_equal("lists", got, want, sizeof got);
    return program_end();
}
