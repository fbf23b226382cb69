/* A kernel and the host that exchange requests and answers while the kernel runs. */
#include "base/program.h"

#define BLOCKS 3u

struct request {
    uint32_t number, count, values[62];
};
struct answer {
    uint32_t number, sum, product, block;
};

static void *mapped(size_t bytes, CUdeviceptr *device) {
    void *host;
    OK(cu.cuMemHostAlloc(&host, bytes, CU_MEMHOSTALLOC_DEVICEMAP));
    OK(cu.cuMemHostGetDevicePointer_v2(device, host, 0));
    for (size_t i = 0; i < bytes; i++)
        ((volatile char *)host)[i] = 0;
    return host;
}

static void ask(struct request *request, uint32_t number, uint32_t *sum, uint32_t *product) {
    *sum = 0;
    *product = 1;
    request->count = random_bits() % (COUNT(request->values) + 1);
    for (unsigned i = 0; i < request->count; i++) {
        request->values[i] = random_bits();
        *sum += request->values[i];
        *product *= request->values[i] | 1;
    }
    __atomic_store_n(&request->number, number, __ATOMIC_RELEASE);
}

PROGRAM("host_queue") {
    CUdeviceptr requests, answers;
    CUstream stream;
    uint32_t sum[BLOCKS], product[BLOCKS], right = 0;
    unsigned rounds = 60 * program_scale(20);
    struct request *request = mapped(BLOCKS * sizeof *request, &requests);
    struct answer *answer = mapped(BLOCKS * sizeof *answer, &answers);
    OK(cu.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    LAUNCH("serve", SHAPE(BLOCKS, 32, .stream = stream), &requests, &answers);
    for (uint32_t round = 1; round <= rounds; round++) {
        for (unsigned i = 0; i < BLOCKS; i++)
            ask(&request[i], round, &sum[i], &product[i]);
        for (unsigned i = 0; i < BLOCKS; i++) {
            while (__atomic_load_n(&answer[i].number, __ATOMIC_ACQUIRE) != round)
                (void)cu.cuStreamQuery(stream); /* under some schedules the kernel runs here */
            right +=
                answer[i].sum == sum[i] && answer[i].product == product[i] && answer[i].block == i;
        }
    }
    for (unsigned i = 0; i < BLOCKS; i++) {
        request[i].count = UINT32_MAX;
        __atomic_store_n(&request[i].number, rounds + 1, __ATOMIC_RELEASE);
    }
    OK(cu.cuStreamSynchronize(stream));
    expect(right == BLOCKS * rounds, "%u answers of %u are right", right, BLOCKS * rounds);
    OK(cu.cuStreamDestroy_v2(stream));
    OK(cu.cuMemFreeHost(request));
    OK(cu.cuMemFreeHost(answer));
}
