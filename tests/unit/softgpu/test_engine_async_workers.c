/* Clusters and copies where several threads advance the grid: each cluster stays with one. */
#include "async_kernel.h"

#include <pthread.h>

enum { THREADS = 4 };

static void *advance(void *argument) {
    while (!sg_grid_advance(argument, 200))
        ;
    return NULL;
}

static void play(struct kernel *kernel) {
    struct sg_grid *grid;
    pthread_t threads[THREADS];
    kernel->launch.parameters = kernel->parameters;
    kernel->launch.workers = THREADS;
    assert_int_equal(sg_grid_begin(&kernel->launch, &grid), CUDA_SUCCESS);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, advance, grid), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    const struct sg_grid_fault *fault = sg_grid_fault(grid);
    if (fault)
        fail_msg("%s at line %u", sg_fault_name(fault->kind), fault->line);
    sg_grid_end(grid);
}

TEST(async_cases_answer_with_several_workers) {
    static uint32_t out[1024], in[ASYNC_INPUT] __attribute__((aligned(16)));
    for (uint32_t i = 0; i < ASYNC_INPUT; i++)
        in[i] = ASYNC_IN(i);
    for (size_t c = 0; c < ASYNC_CASES; c++)
        for (unsigned schedule = SG_GRID_EAGER; schedule <= SG_GRID_RANDOM; schedule++) {
            const struct async_case *each = &async_cases[c];
            memset(out, UNTOUCHED & 0xff, sizeof out);
            struct kernel kernel =
                KERNEL_WITH(each->text, sg_level_best(), each->blocks, each->threads, out, in);
            kernel.launch.cluster[0] = each->cluster;
            kernel.launch.explicit_cluster = each->cluster != 0;
            kernel.launch.schedule = (unsigned char)schedule;
            play(&kernel);
            kernel_free(&kernel);
            for (uint32_t i = 0; i < each->blocks * each->threads; i++)
                if (out[i] != each->answer(i / each->threads, i % each->threads))
                    fail_msg("%s, schedule %u: thread %u has %x", each->name, schedule, i, out[i]);
        }
}

/* Many clusters: each of its blocks adds to the first one's shared memory, which tells the sum. */
TEST(two_hundred_clusters_sum_through_distributed_shared_memory) {
    enum { CLUSTERS = 200, SIZE = 3 };
    static const char text[] =
        CLUSTER("@%q st.shared.u32 [%r10], 0;\n" SYNC
                "mapa.shared::cluster.u32 %r6, %r10, 0; mov.u32 %r5, %ctaid.x;\n"
                "@%q red.shared::cluster.add.u32 [%r6], %r5;\n" SYNC
                "ld.shared::cluster.u32 %r2, [%r6];\n" SYNC ANSWER);
    static uint32_t out[CLUSTERS * SIZE * 32];
    struct kernel kernel = KERNEL_WITH(text, sg_level_best(), CLUSTERS * SIZE, 32, out, NULL);
    kernel.launch.cluster[0] = SIZE;
    play(&kernel);
    kernel_free(&kernel);
    for (uint32_t i = 0; i < CLUSTERS * SIZE * 32; i++)
        assert_int_equal(out[i], 3 * (i / 32 / SIZE * SIZE) + 3);
}
