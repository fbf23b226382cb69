// More shared memory than a block has without asking: a matrix that is turned in it, and a sort of
// counts.
#include "device.cuh"

DYNAMIC u32 space[];

// In place: the whole matrix is in shared memory.
KERNEL turn(u32 *matrix, u32 side) {
    u32 *own = matrix + (u64)block() * side * side;
    for (u32 i = thread(); i < side * side; i += threads())
        space[i] = own[i];
    sync();
    for (u32 i = thread(); i < side * side; i += threads())
        own[i] = space[i % side * side + side - 1 - i / side];
}

// How often each of `range` numbers occurs before each place, modulo the range.
KERNEL counts(const u32 *numbers, u32 count, u32 range, u32 *out) {
    for (u32 i = thread(); i < range; i += threads())
        space[i] = 0;
    sync();
    for (u32 i = thread(); i < count; i += threads())
        atomic_add(&space[numbers[block() * count + i] % range], 1u);
    sync();
    u32 size;
    asm volatile("mov.u32 %0, %%dynamic_smem_size;" : "=r"(size));
    for (u32 i = thread(); i < range; i += threads())
        out[block() * range + i] = space[i] + size * 1000;
}
