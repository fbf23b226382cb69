// target sm_90
// Copies in bulk: one thread asks for a tile, an mbarrier counts its bytes, and results leave in
// bulk too.
#include "device.cuh"

#define TILE 256

INLINE void expect(u32 barrier, u32 bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
                 : "memory");
}
INLINE void fetch(u32 to, const void *from, u32 bytes, u32 barrier) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1], %2, [%3];" ::"r"(to), "l"(from), "r"(bytes), "r"(barrier)
                 : "memory");
}
INLINE void await(u32 barrier, u32 parity) {
    u32 done = 0;
    while (!done)
        asm volatile("{.reg .pred p;\n\tmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n\t"
                     "selp.u32 %0, 1, 0, p;}"
                     : "=r"(done)
                     : "r"(barrier), "r"(parity)
                     : "memory");
}

// Two stages, each with a barrier, whose parity turns whenever it is full.
KERNEL smooth(const float *in, float *out, u32 tiles) {
    SHARED __attribute__((aligned(128))) float stage[2][TILE + 8], result[TILE];
    SHARED u64 barriers[2];
    u32 own = block() * tiles;
    if (thread() == 0) {
        for (u32 i = 0; i < 2; i++)
            asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(&barriers[i]))
                         : "memory");
        asm volatile("fence.mbarrier_init.release.cluster;\n\tfence.proxy.async;" ::: "memory");
    }
    sync();
    for (u32 tile = 0; tile < tiles + 1; tile++) {
        if (tile < tiles && thread() == 0) {
            u32 barrier = shared_address(&barriers[tile % 2]);
            expect(barrier, (TILE + 8) * 4);
            fetch(shared_address(stage[tile % 2]), in + (u64)(own + tile) * TILE, (TILE + 8) * 4,
                  barrier);
        }
        if (tile == 0)
            continue;
        u32 done = tile - 1;
        await(shared_address(&barriers[done % 2]), done / 2 % 2);
        const float *from = stage[done % 2] + thread();
        float sum = 0;
        for (u32 i = 0; i < 8; i++)
            sum = fused(from[i], 0.125f, sum);
        result[thread()] = sum;
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        sync();
        if (thread() == 0)
            asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;\n\t"
                         "cp.async.bulk.commit_group;\n\t"
                         "cp.async.bulk.wait_group 0;" ::"l"(out + (u64)(own + done) * TILE),
                         "r"(shared_address(result)), "r"(TILE * 4)
                         : "memory");
        sync();
    }
}
