/* Stream-ordered memory: what pools say they hold, reuse within and across streams, thresholds, access, and a pool's end. */
#include "check.h"

static unsigned long long attribute(cudaMemPool_t pool, cudaMemPoolAttr which) {
    unsigned long long value = 0;
    MUST(cudaMemPoolGetAttribute(pool, which, &value));
    return value;
}

__global__ void fill(int *memory, int count, int value) {
    for (int i = (int)(blockIdx.x * blockDim.x + threadIdx.x); i < count; i += (int)(gridDim.x * blockDim.x))
        memory[i] = value + i;
}

/* A job of temporary memory: allocated, written, read and freed in the stream. */
static void job(cudaMemPool_t pool, cudaStream_t stream, int count, int *host, int value) {
    int *memory;
    MUST(cudaMallocFromPoolAsync((void **)&memory, (size_t)count * sizeof *memory, pool, stream));
    fill<<<4, 64, 0, stream>>>(memory, count, value);
    MUST(cudaMemcpyAsync(host, memory, (size_t)count * sizeof *memory, cudaMemcpyDeviceToHost, stream));
    MUST(cudaFreeAsync(memory, stream));
}

int main() {
    const int count = 1 << 16;
    static int first[count], second[count];
    cudaMemPool_t pool, old;
    cudaMemPoolProps props = {};
    cudaMemAccessFlags access;
    cudaMemLocation here = {};
    cudaStream_t a, b;
    cudaEvent_t freed;
    int *one, *two, wrong = 0;
    unsigned long long threshold = ~0ull, zero = 0;
    here.type = cudaMemLocationTypeDevice;
    props.allocType = cudaMemAllocationTypePinned;
    props.location = here;
    MUST(cudaMemPoolCreate(&pool, &props));
    MUST(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
    MUST(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
    MUST(cudaEventCreateWithFlags(&freed, cudaEventDisableTiming));
    printf("threshold at first: %llu\n", attribute(pool, cudaMemPoolAttrReleaseThreshold));
    MUST(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold));
    for (int i = 0; i < 10; i++) {
        job(pool, a, count, first, i);
        job(pool, b, count, second, 100 * i);
    }
    MUST(cudaStreamSynchronize(a));
    MUST(cudaStreamSynchronize(b));
    for (int i = 0; i < count; i++)
        wrong += first[i] != 9 + i || second[i] != 900 + i;
    right("jobs in two streams", wrong == 0);
    right("nothing is in use", attribute(pool, cudaMemPoolAttrUsedMemCurrent) == 0);
    right("what was freed is kept", attribute(pool, cudaMemPoolAttrReservedMemCurrent) >= count * sizeof(int));
    unsigned long long high = attribute(pool, cudaMemPoolAttrUsedMemHigh);
    right("at most two at a time", high >= count * sizeof(int) && high <= 2 * count * sizeof(int));
    MUST(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrUsedMemHigh, &zero));
    printf("after its reset: %llu\n", attribute(pool, cudaMemPoolAttrUsedMemHigh));
    MUST(cudaMemPoolTrimTo(pool, 0));
    printf("after a trim: %llu\n", attribute(pool, cudaMemPoolAttrReservedMemCurrent));

    MUST(cudaMallocFromPoolAsync((void **)&one, count, pool, a)); // reused in the same stream, and behind an event
    MUST(cudaFreeAsync(one, a));
    MUST(cudaMallocFromPoolAsync((void **)&two, count, pool, a));
    MUST(cudaMemsetAsync(two, 1, count, a)); // a stream may get back what it freed
    MUST(cudaFreeAsync(two, a));
    MUST(cudaEventRecord(freed, a));
    MUST(cudaStreamWaitEvent(b, freed, 0));
    MUST(cudaMallocFromPoolAsync((void **)&one, count, pool, b));
    MUST(cudaMemsetAsync(one, 0, count, b)); // and one that waits for it may use the same
    MUST(cudaMemPoolGetAccess(&access, pool, &here));
    printf("access of its own device: %d\n", (int)access);

    MUST(cudaDeviceGetMemPool(&old, 0)); // the device's, which cudaMallocAsync takes from
    MUST(cudaDeviceSetMemPool(0, pool));
    MUST(cudaMallocAsync((void **)&two, 64, a));
    cudaPointerAttributes attributes;
    MUST(cudaPointerGetAttributes(&attributes, two));
    printf("memory of kind %d\n", (int)attributes.type);
    MUST(cudaFree(two)); // a free at once is allowed, too
    MUST(cudaDeviceSetMemPool(0, old));
    MUST(cudaMemPoolDestroy(pool)); // while one allocation is left
    MUST(cudaMemsetAsync(one, 1, count, b));
    MUST(cudaFreeAsync(one, b));
    MUST(cudaStreamSynchronize(b));
    say("too much", cudaMallocAsync((void **)&one, (size_t)1 << 50, a));
    say("nothing", cudaFreeAsync(nullptr, a));
    say("of nobody", cudaFreeAsync(&threshold, a));
    cudaGetLastError();
    MUST(cudaEventDestroy(freed));
    MUST(cudaStreamDestroy(a));
    MUST(cudaStreamDestroy(b));
    return 0;
}
