/* Streams with priorities and flags: a job is spread over four, joined by events, and polled until it is done. */
#include "check.h"

__global__ void square(const int *in, int *out, int count) {
    for (int i = (int)(blockIdx.x * blockDim.x + threadIdx.x); i < count; i += (int)(gridDim.x * blockDim.x))
        out[i] = in[i] * in[i];
}

__global__ void sum(const int *in, int count, long long *total) {
    long long mine = 0;
    for (int i = (int)threadIdx.x; i < count; i += (int)blockDim.x)
        mine += in[i];
    atomicAdd((unsigned long long *)total, (unsigned long long)mine);
}

static void kinds() {
    int least, greatest, priority;
    unsigned flags;
    unsigned long long first, second;
    cudaStream_t low, high;
    MUST(cudaDeviceGetStreamPriorityRange(&least, &greatest));
    MUST(cudaStreamCreateWithPriority(&low, cudaStreamDefault, least));
    MUST(cudaStreamCreateWithPriority(&high, cudaStreamNonBlocking, greatest - 100));
    MUST(cudaStreamGetPriority(low, &priority));
    right("the least priority", priority == least);
    MUST(cudaStreamGetPriority(high, &priority));
    right("one beyond the greatest is the greatest", priority == greatest);
    MUST(cudaStreamGetFlags(high, &flags));
    printf("flags %u\n", flags);
    MUST(cudaStreamGetFlags(low, &flags));
    printf("flags %u\n", flags);
    MUST(cudaStreamGetId(low, &first));
    MUST(cudaStreamGetId(high, &second));
    right("ids differ", first != second);
    MUST(cudaStreamDestroy(low));
    MUST(cudaStreamDestroy(high));
    say("flags that there are not", cudaStreamCreateWithFlags(&low, 77));
    say("which is the last error", cudaGetLastError());
}

int main() {
    const int streams = 4, part = 5000, count = streams * part;
    static int values[count], squares[count];
    cudaStream_t stream[streams], last;
    cudaEvent_t done;
    long long total = 0, wanted = 0;
    kinds();
    for (int i = 0; i < count; i++) {
        values[i] = i % 1000 - 500;
        wanted += values[i] * values[i];
    }
    int *in = to_device(values, count), *out = to_device<int>(nullptr, count);
    long long *sums = to_device<long long>(nullptr, 1);
    MUST(cudaStreamCreateWithFlags(&last, cudaStreamNonBlocking));
    MUST(cudaEventCreateWithFlags(&done, cudaEventDisableTiming));
    for (int s = 0; s < streams; s++) {
        MUST(cudaStreamCreateWithPriority(&stream[s], cudaStreamNonBlocking, -s));
        square<<<8, 64, 0, stream[s]>>>(in + s * part, out + s * part, part);
        MUST(cudaEventRecord(done, stream[s]));
        MUST(cudaStreamWaitEvent(last, done, 0)); // what was recorded just now: the event may be used again
    }
    sum<<<1, 256, 0, last>>>(out, count, sums);
    MUST(cudaMemcpyAsync(&total, sums, sizeof total, cudaMemcpyDeviceToHost, last));
    cudaError_t state;
    while ((state = cudaStreamQuery(last)) == cudaErrorNotReady)
        ;
    MUST(state);
    cudaGetLastError();
    printf("total %lld\n", total);
    right("the sum of squares", total == wanted);
    to_host(squares, out, count);
    for (int i = 0; i < count; i++)
        values[i] *= values[i];
    same("squares", squares, values, count);
    for (int s = 0; s < streams; s++)
        MUST(cudaStreamDestroy(stream[s]));
    MUST(cudaStreamDestroy(last));
    MUST(cudaEventDestroy(done));
    MUST(cudaFree(in));
    MUST(cudaFree(out));
    MUST(cudaFree(sums));
    return 0;
}
