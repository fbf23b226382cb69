/* Captured work: forks and joins of streams, copies and host functions, launches again with other data, and what may not be
 * captured. */
#include "check.h"

__global__ void scale(const float *in, float *out, int count, float factor) {
    int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < count)
        out[i] = in[i] * factor;
}

__global__ void sum_up(const float *a, const float *b, float *out, int count) {
    int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < count)
        out[i] = a[i] + b[i];
}

static void CUDART_CB count_up(void *data) {
    ++*(int *)data;
}

/* What a library does, which knows nothing of the capture. */
static void pipeline(cudaStream_t stream, cudaStream_t aside, cudaEvent_t fork, cudaEvent_t join, float *buffer[3], int count,
                     float *in, float *out, int *calls) {
    unsigned blocks = (unsigned)(count + 127) / 128;
    MUST(cudaMemcpyAsync(buffer[0], in, (size_t)count * sizeof(float), cudaMemcpyHostToDevice, stream));
    MUST(cudaEventRecord(fork, stream));
    MUST(cudaStreamWaitEvent(aside, fork, 0));
    scale<<<blocks, 128, 0, stream>>>(buffer[0], buffer[1], count, 2);
    scale<<<blocks, 128, 0, aside>>>(buffer[0], buffer[2], count, 0.5f);
    MUST(cudaEventRecord(join, aside));
    MUST(cudaStreamWaitEvent(stream, join, 0));
    sum_up<<<blocks, 128, 0, stream>>>(buffer[1], buffer[2], buffer[0], count);
    MUST(cudaLaunchHostFunc(stream, count_up, calls));
    MUST(cudaMemcpyAsync(out, buffer[0], (size_t)count * sizeof(float), cudaMemcpyDeviceToHost, stream));
}

static void refused(cudaStream_t stream, cudaStream_t aside, cudaEvent_t event) {
    cudaGraph_t graph = nullptr;
    cudaStreamCaptureStatus status;
    MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    say("begin twice", cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    say("synchronize", cudaStreamSynchronize(stream));
    say("which ends it", cudaStreamIsCapturing(stream, &status));
    printf("status %d\n", (int)status);
    say("end", cudaStreamEndCapture(stream, &graph));
    right("there is no graph", graph == nullptr);
    cudaGetLastError();
    MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    MUST(cudaEventRecord(event, stream));
    MUST(cudaStreamWaitEvent(aside, event, 0));
    scale<<<1, 1, 0, aside>>>(nullptr, nullptr, 0, 0);
    say("a branch that is not joined", cudaStreamEndCapture(stream, &graph));
    say("end without begin", cudaStreamEndCapture(stream, &graph));
    cudaGetLastError();
}

int main() {
    const int count = 1000;
    float *in, *out, *buffer[3], want[count];
    int calls = 0;
    size_t nodes = 0, roots = 0;
    cudaStream_t stream, aside;
    cudaEvent_t fork, join;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    MUST(cudaStreamCreate(&stream));
    MUST(cudaStreamCreateWithFlags(&aside, cudaStreamNonBlocking));
    MUST(cudaEventCreateWithFlags(&fork, cudaEventDisableTiming));
    MUST(cudaEventCreateWithFlags(&join, cudaEventDisableTiming));
    MUST(cudaMallocHost(&in, count * sizeof *in));
    MUST(cudaMallocHost(&out, count * sizeof *out));
    for (float *&each : buffer)
        MUST(cudaMalloc(&each, count * sizeof *each));
    MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    pipeline(stream, aside, fork, join, buffer, count, in, out, &calls);
    MUST(cudaStreamEndCapture(stream, &graph));
    MUST(cudaGraphGetNodes(graph, nullptr, &nodes));
    MUST(cudaGraphGetRootNodes(graph, nullptr, &roots));
    printf("%zu nodes, %zu root; host functions called: %d\n", nodes, roots, calls);
    MUST(cudaGraphInstantiate(&exec, graph, 0));
    MUST(cudaGraphUpload(exec, stream));
    for (int round = 1; round <= 3; round++) {
        for (int i = 0; i < count; i++) {
            in[i] = (float)(i * round);
            want[i] = in[i] * 2 + in[i] * 0.5f;
        }
        MUST(cudaGraphLaunch(exec, stream));
        MUST(cudaStreamSynchronize(stream));
        same("replayed", out, want, count);
    }
    printf("host functions called: %d\n", calls);
    MUST(cudaGraphExecDestroy(exec));
    MUST(cudaGraphDestroy(graph));
    refused(stream, aside, fork);
    pipeline(stream, aside, fork, join, buffer, count, in, out, &calls); // and without a capture
    MUST(cudaStreamSynchronize(stream));
    same("uncaptured", out, want, count);
    MUST(cudaStreamDestroy(stream));
    MUST(cudaStreamDestroy(aside));
    MUST(cudaEventDestroy(fork));
    MUST(cudaEventDestroy(join));
    MUST(cudaFreeHost(in));
    MUST(cudaFreeHost(out));
    for (float *each : buffer)
        MUST(cudaFree(each));
    return 0;
}
