/* Events: what orders two streams, what a query says, and which events have a time. */
#include "check.h"

#include <atomic>

/* Holds a stream until the host lets it go. */
static void CUDART_CB hold(void *gate) {
    while (!((std::atomic<int> *)gate)->load())
        ;
}

__global__ void add(int *value, int what) {
    *value += what;
}

__global__ void twice(int *value) {
    *value *= 2;
}

int main() {
    std::atomic<int> gate{0};
    cudaStream_t first, second;
    cudaEvent_t before, after, plain, blocking;
    int host = 0, *value = to_device<int>(nullptr, 1);
    float ms = -1;
    MUST(cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking));
    MUST(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking));
    MUST(cudaEventCreate(&before));
    MUST(cudaEventCreateWithFlags(&after, cudaEventDefault));
    MUST(cudaEventCreateWithFlags(&plain, cudaEventDisableTiming));
    MUST(cudaEventCreateWithFlags(&blocking, cudaEventBlockingSync));
    say("an event that was never recorded is done", cudaEventQuery(before));
    say("it can be waited for", cudaStreamWaitEvent(first, plain, 0));
    say("between events that were never recorded", cudaEventElapsedTime(&ms, before, after));
    cudaGetLastError();

    MUST(cudaEventRecord(before, first));
    MUST(cudaLaunchHostFunc(first, hold, &gate));
    add<<<1, 1, 0, first>>>(value, 5);
    MUST(cudaEventRecord(after, first));
    MUST(cudaStreamWaitEvent(second, after, 0));
    twice<<<1, 1, 0, second>>>(value);
    MUST(cudaEventRecord(plain, second));
    MUST(cudaEventRecordWithFlags(blocking, second, cudaEventRecordDefault));
    say("the stream is held", cudaStreamQuery(first));
    say("so is the other", cudaStreamQuery(second));
    say("and the event", cudaEventQuery(plain));
    say("time to an event that is not done", cudaEventElapsedTime(&ms, before, after));
    cudaGetLastError();
    gate = 1;
    say("synchronize", cudaEventSynchronize(blocking));
    say("now it is done", cudaEventQuery(plain));
    say("time", cudaEventElapsedTime(&ms, before, after));
    right("it is not negative", ms >= 0);
    say("time of an event without one", cudaEventElapsedTime(&ms, before, plain));
    say("which is the last error", cudaGetLastError());
    to_host(&host, value, 1);
    printf("value %d\n", host);
    right("5, then twice", host == 10);

    say("timing between processes", cudaEventCreateWithFlags(&before, cudaEventInterprocess));
    say("flags that there are not", cudaEventCreateWithFlags(&before, 1000));
    say("record in no event", cudaEventRecord(nullptr, first));
    cudaGetLastError();
    for (cudaEvent_t event : {after, plain, blocking})
        MUST(cudaEventDestroy(event));
    MUST(cudaStreamDestroy(first));
    MUST(cudaStreamDestroy(second));
    MUST(cudaFree(value));
    return 0;
}
