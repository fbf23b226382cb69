// target sm_80
// A pipeline of cp.async: while a block adds up one tile, the next ones are on their way.
#include "device.cuh"

#define STAGES  4
#define THREADS 128

INLINE void copy(void *to, const void *from, u32 bytes) {
    u32 at = shared_address(to);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(at), "l"(from), "r"(bytes)
                 : "memory");
}
INLINE void copy_word(void *to, const void *from) {
    u32 at = shared_address(to);
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(at), "l"(from) : "memory");
}
INLINE void commit() {
    asm volatile("cp.async.commit_group;" ::: "memory");
}
template <int N> INLINE void wait() {
    asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}

struct four {
    u32 x, y, z, w;
};

// Each block has `tiles` tiles of THREADS * 4 words, of which the array may end before: the rest of
// a copy is zeros. A word is weighed by its neighbour's place, so that each thread reads what another
// one has copied.
KERNEL weigh(const u32 *in, u32 count, u32 tiles, u32 *sums) {
    SHARED __attribute__((aligned(16))) u32 stage[STAGES][THREADS * 4];
    u32 first = block() * tiles * THREADS * 4, sum = 0;
    for (u32 tile = 0; tile < tiles + STAGES - 1; tile++) {
        if (tile < tiles) {
            u32 at = first + (tile * THREADS + thread()) * 4;
            u32 left = at < count ? (count - at) * 4 : 0;
            copy(&stage[tile % STAGES][thread() * 4], in + (at < count ? at : 0), left < 16 ? left : 16);
        }
        commit(); // an empty group too
        if (tile < STAGES - 1)
            continue;
        wait<STAGES - 1>();
        sync();
        u32 done = tile - (STAGES - 1);
        const u32 *own = stage[done % STAGES];
        for (u32 i = 0; i < 4; i++) {
            u32 at = (thread() * 4 + i * 37 + 5) % (THREADS * 4);
            sum = sum * 33 + (own[at] ^ (at + done));
        }
        sync();
    }
    sums[index()] = sum;
}

// Rows of any alignment, word by word. Each thread arrives twice at an mbarrier: itself, and when its
// copies have.
KERNEL gather(const u32 *in, const u32 *rows, u32 width, u32 *out) {
    SHARED u32 row[256];
    SHARED u64 barrier;
    u32 at = shared_address(&barrier);
    if (thread() == 0)
        asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(at), "r"(2 * threads()) : "memory");
    sync();
    for (u32 i = thread(); i < width; i += threads())
        copy_word(&row[i], &in[rows[block()] + i]);
    asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(at) : "memory");
    u64 state;
    u32 done = 0;
    asm volatile("mbarrier.arrive.shared.b64 %0, [%1];" : "=l"(state) : "r"(at) : "memory");
    while (!done)
        asm volatile("{.reg .pred p;\n\tmbarrier.test_wait.shared.b64 p, [%1], %2;\n\t"
                     "selp.u32 %0, 1, 0, p;}"
                     : "=r"(done)
                     : "r"(at), "l"(state)
                     : "memory");
    for (u32 i = thread(); i < width; i += threads())
        out[block() * width + i] = row[width - 1 - i];
}
