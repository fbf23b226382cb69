/* Barriers with explicit counts, which are of whole warps: one with few lanes counts like any. */
#include "barrier_texts.h"
#include "kernels.h"

static const char text[] = KERNELS_HEAD ".visible .entry probe() { ret; }\n" //
    BARRIER_ENTRY("few") BARRIER_SHORT_WARP BARRIER_END                      //
        BARRIER_ENTRY("exited") BARRIER_EXITED BARRIER_END                   //
            BARRIER_ENTRY("arrives") BARRIER_ARRIVES BARRIER_END             //
                BARRIER_ENTRY("counted") BARRIER_MIXED("bar.sync 0, 96", "bar.sync 0, 96")
                    BARRIER_END BARRIER_ENTRY("plain") BARRIER_MIXED("bar.sync 0", "bar.sync 0")
                        BARRIER_END;

#define UNTOUCHED 0xccccccccu

static void expect(const char *name, unsigned threads, unsigned first, uint32_t low,
                   unsigned middle, uint32_t high, unsigned end) {
    uint32_t out[64];
    CUdeviceptr memory;
    void *params[] = {&memory};
    kernels_open(text);
    memory = new_memory(sizeof out);
    OK_CU(cu.cuMemsetD32_v2(memory, UNTOUCHED, COUNT(out)));
    OK_CU(cu.cuLaunchKernel(kernel(name), 1, 1, 1, threads, 1, 1, 0, NULL, params, NULL));
    OK_CU(cu.cuMemcpyDtoH_v2(out, memory, sizeof out));
    for (unsigned i = 0; i < COUNT(out); i++)
        assert_int_equal(out[i], i < first || i >= end ? UNTOUCHED : i < middle ? low : high);
}

TEST_IS(a_partial_warp_counts_as_a_whole_warp_at_a_barrier, expect("few", 40, 0, 77, 40, 77, 40));
TEST_IS(exited_lanes_count_as_arrived_at_a_barrier, expect("exited", 64, 5, 78, 63, 78, 63));
TEST_IS(a_partial_warp_may_arrive_without_waiting, expect("arrives", 64, 20, 1, 32, 520, 64));

/* 72 threads: the last warp has 8. */
TEST(the_last_warp_of_a_block_may_be_partial) {
    uint32_t out[72];
    CUdeviceptr memory;
    void *params[] = {&memory};
    kernels_open(text);
    memory = new_memory(sizeof out);
    for (unsigned late = 0; late < 6; late++) {
        OK_CU(cu.cuMemsetD32_v2(memory, late % 3, COUNT(out)));
        OK_CU(cu.cuLaunchKernel(kernel(late < 3 ? "counted" : "plain"), 1, 1, 1, COUNT(out), 1, 1,
                                0, NULL, params, NULL));
        OK_CU(cu.cuMemcpyDtoH_v2(out, memory, sizeof out));
        for (unsigned i = 0; i < COUNT(out); i++)
            assert_int_equal(out[i], 71 - i);
    }
}
