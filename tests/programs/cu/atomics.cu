/* Atomic operations of all kinds and widths, loops of compare-and-swap, a lock, and what libcu++ makes of them. */
#include "check.h"

#include <cuda/atomic>

struct numbers {
    int sum, least, most, bits_and, bits_or, bits_xor;
    unsigned up, down, swapped_sum;
    unsigned long long wide, wide_most;
    float real;
    double precise, product;
    unsigned short narrow;
};

__device__ double multiply(double *address, double by) {
    unsigned long long *bits = (unsigned long long *)address, old = *(volatile unsigned long long *)bits, assumed;
    do {
        assumed = old;
        old = atomicCAS(bits, assumed, (unsigned long long)__double_as_longlong(__longlong_as_double((long long)assumed) * by));
    } while (assumed != old);
    return __longlong_as_double((long long)old);
}

__global__ void work(numbers *to, unsigned *slot) {
    int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    atomicAdd(&to->sum, i);
    atomicSub(&to->sum, 1);
    atomicMin(&to->least, -i);
    atomicMax(&to->most, i * 3);
    atomicAnd(&to->bits_and, ~(1 << (i % 32)) | (i % 2));
    atomicOr(&to->bits_or, 1 << (i % 16));
    atomicXor(&to->bits_xor, i);
    atomicInc(&to->up, 9);
    atomicDec(&to->down, 6);
    atomicAdd(&to->swapped_sum, atomicExch(slot, (unsigned)i + 1));
    atomicAdd(&to->wide, 1ull << 33);
    atomicMax(&to->wide_most, (unsigned long long)i << 34);
    atomicAdd(&to->real, 0.25f);
    atomicAdd(&to->precise, 0.125);
    multiply(&to->product, i % 2 ? 2.0 : 0.5);
    unsigned short old = *(volatile unsigned short *)&to->narrow, assumed;
    do {
        assumed = old;
        old = atomicCAS(&to->narrow, assumed, (unsigned short)(assumed + 3));
    } while (assumed != old);
    atomicAdd_block(&to->sum, 2);
    atomicAdd_system(&to->sum, -2);
}

__device__ cuda::atomic<int, cuda::thread_scope_device> turn{0};
__device__ int guarded;

/* A lock of one thread a block: what it guards is no atomic. */
__global__ void locked(cuda::std::atomic<int> *counter) {
    if (threadIdx.x == 0) {
        while (turn.exchange(1, cuda::memory_order_acquire) == 1)
            ;
        guarded += (int)blockIdx.x;
        turn.store(0, cuda::memory_order_release);
    }
    counter->fetch_add(1, cuda::std::memory_order_relaxed);
    cuda::atomic_ref<int, cuda::thread_scope_device> last(((int *)counter)[1]);
    last.fetch_max((int)threadIdx.x);
}

int main() {
    const int blocks = 6, threads = 64, n = blocks * threads;
    numbers host = {0, 0, 0, -1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0};
    unsigned last = 0;
    int counter[2], sum = 0;
    numbers *device = to_device(&host, 1);
    unsigned *slot = to_device<unsigned>(nullptr, 1);
    work<<<blocks, threads>>>(device, slot);
    MUST(cudaGetLastError());
    to_host(&host, device, 1);
    to_host(&last, slot, 1);
    numbers want = {n * (n - 1) / 2 - n, 1 - n, 3 * (n - 1), -1, 0xffff, 0, 0, 0, 0, (unsigned long long)n << 33,
                (unsigned long long)(n - 1) << 34, n * 0.25f, n * 0.125, 1, (unsigned short)(3 * n)};
    unsigned up = 0, down = 0;
    for (int i = 0; i < n; i++) {
        want.bits_and &= ~(1 << (i % 32)) | (i % 2);
        want.bits_xor ^= i;
        up = up >= 9 ? 0 : up + 1;
        down = down == 0 || down > 6 ? 6 : down - 1;
    }
    right("sums", host.sum == want.sum && host.wide == want.wide && host.real == want.real && host.precise == want.precise);
    right("least and most", host.least == want.least && host.most == want.most && host.wide_most == want.wide_most);
    right("bits", host.bits_and == want.bits_and && host.bits_or == want.bits_or && host.bits_xor == want.bits_xor);
    right("up and down", host.up == up && host.down == down);
    right("each exchanged once", host.swapped_sum + last == (unsigned)(n * (n + 1) / 2));
    right("by compare and swap", host.product == want.product && host.narrow == want.narrow);
    printf("%d %d %d %#x %#x %d %u %u %g %g %u\n", host.sum, host.least, host.most, (unsigned)host.bits_and, (unsigned)host.bits_or,
           host.bits_xor, host.up, host.down, host.real, host.precise, host.narrow);

    int *counters = to_device<int>(nullptr, 2);
    locked<<<blocks, threads>>>((cuda::std::atomic<int> *)counters);
    MUST(cudaDeviceSynchronize());
    to_host(counter, counters, 2);
    MUST(cudaMemcpyFromSymbol(&sum, guarded, sizeof sum));
    printf("guarded %d, counted %d, last %d\n", sum, counter[0], counter[1]);
    right("the lock held", sum == blocks * (blocks - 1) / 2 && counter[0] == n && counter[1] == threads - 1);
    MUST(cudaFree(device));
    MUST(cudaFree(slot));
    MUST(cudaFree(counters));
    return 0;
}
