// Kernels that decide how a graph goes on: whether a loop is repeated, and which of two bodies runs.
#include "device.cuh"

extern "C" DEVICE void cudaGraphSetConditional(u64 handle, u32 value);

// A step of Collatz's sequence: 3 x + 1 or x / 2, by what `parity` says.
KERNEL decide(const u64 *value, u64 loop, u64 parity) {
    cudaGraphSetConditional(loop, *value != 1);
    cudaGraphSetConditional(parity, *value % 2 != 0);
}

KERNEL halve(u64 *value, u32 *steps) {
    *value /= 2;
    ++*steps;
}

KERNEL triple(u64 *value, u32 *steps) {
    *value = 3 * *value + 1;
    ++*steps;
}
