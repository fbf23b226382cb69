// target sm_90
// Kernels that follow each other by events, and ones that begin before those in front have ended.
#include "device.cuh"

KERNEL fill(u32 *values, u32 count, u32 seed) {
    if (index() < count)
        values[index()] = (index() + 1) * seed;
}

KERNEL mix(u32 *values, const u32 *other, u32 count) {
    if (index() < count)
        values[index()] = values[index()] * 31 + other[count - 1 - index()];
}

// What is written before griddepcontrol.wait is the next kernel's own; what it reads of the kernel
// in front it reads after that.
KERNEL link_of_chain(u32 *values, u32 *marks, u32 count, u32 step) {
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
    if (index() == 0)
        marks[step] = step + 1;
    asm volatile("griddepcontrol.wait;" ::: "memory");
    if (index() < count) {
        u32 own = ((volatile u32 *)values)[index()];
        ((volatile u32 *)values)[index()] = own * 5 + step;
    }
}
