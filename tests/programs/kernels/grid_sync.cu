// An iteration in one cooperative launch: all blocks meet after each step, at a barrier of their own
// in global memory, and at the one of cooperative groups, whose place %envreg1 and %envreg2 say.
#include "device.cuh"

// The first block adds what makes the top bit turn when all have come.
INLINE void meet(u32 *barrier) {
    sync();
    if (thread() == 0) {
        u32 own = block() == 0 ? 0x80000000u - (blocks() - 1) : 1;
        fence();
        u32 before = atomic_add(barrier, own);
        while (((load_acquire(barrier) ^ before) & 0x80000000u) == 0)
            ;
        fence();
    }
    sync();
}

INLINE u32 *workspace() {
    u32 low, high;
    asm volatile("mov.u32 %0, %%envreg2;" : "=r"(low));
    asm volatile("mov.u32 %0, %%envreg1;" : "=r"(high));
    return (u32 *)((u64)high << 32 | low);
}

INLINE void relax(double *a, double *b, u32 count, u32 steps, u32 *barrier) {
    for (u32 step = 0; step < steps; step++) {
        for (u32 i = index() + 1; i < count - 1; i += all_threads()) {
            double left = ((volatile double *)a)[i - 1], right = ((volatile double *)a)[i + 1];
            ((volatile double *)b)[i] = (left + right) * 0.5;
        }
        meet(barrier);
        double *kept = a;
        a = b;
        b = kept;
    }
}

KERNEL own_barrier(double *a, double *b, u32 count, u32 steps, u32 *barrier) {
    relax(a, b, count, steps, barrier);
}

KERNEL grid_barrier(double *a, double *b, u32 count, u32 steps) {
    relax(a, b, count, steps, workspace() + 1);
}
