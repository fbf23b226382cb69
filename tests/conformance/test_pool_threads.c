/* Threads share a pool, each with a stream of its own. */
#include "pools.h"

#include <pthread.h>

#define THREADS 4
#define ROUNDS  200

static CUmemoryPool pool;

static CUresult one_round(CUstream stream, unsigned char mark, size_t size, int *wrong) {
    unsigned char back[64];
    CUdeviceptr p;
    CUresult result = cu.cuMemAllocFromPoolAsync(&p, size, pool, stream);
    if (result == CUDA_SUCCESS)
        result = cu.cuMemsetD8Async(p, mark, size, stream);
    if (result == CUDA_SUCCESS)
        result = cu.cuMemcpyDtoHAsync_v2(back, p + size - sizeof back, sizeof back, stream);
    if (result == CUDA_SUCCESS)
        result = cu.cuStreamSynchronize(stream);
    for (size_t i = 0; result == CUDA_SUCCESS && i < sizeof back; i++)
        *wrong += back[i] != mark;
    return result == CUDA_SUCCESS ? cu.cuMemFreeAsync(p, stream) : result;
}

static void *work(void *number) {
    unsigned char mark = (unsigned char)(1 + (uintptr_t)number);
    int wrong = 0;
    CUstream stream = NULL;
    CUresult result = cu.cuCtxSetCurrent(ctx);
    if (result == CUDA_SUCCESS)
        result = cu.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
    for (unsigned i = 0; result == CUDA_SUCCESS && i < ROUNDS; i++)
        result = one_round(stream, mark, 64u + 1000u * ((i * 7u + mark) % 97u), &wrong);
    if (stream)
        cu.cuStreamDestroy_v2(stream);
    return (void *)(uintptr_t)(result != CUDA_SUCCESS || wrong > 0);
}

TEST(threads_share_a_pool) {
    pthread_t threads[THREADS];
    pool = pool_make(CU_MEM_LOCATION_TYPE_DEVICE, CU_MEM_HANDLE_TYPE_NONE, 0);
    for (uintptr_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, work, (void *)i), 0);
    for (int i = 0; i < THREADS; i++) {
        void *failed = NULL;
        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
}
