/* Programmatic dependent launches: each kernel may begin before the one ahead of it has ended, and waits for its results. */
// architecture: 90
#include "check.h"

__global__ void step(const int *in, int *out, int count, int add) {
    int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    int own = add * i; // what needs nothing of the kernel before
    cudaGridDependencySynchronize();
    if (i < count)
        out[i] = in[i] * 3 + own;
    cudaTriggerProgrammaticLaunchCompletion();
}

int main() {
    const int count = 3000, steps = 8;
    static int values[count], got[count];
    cudaStream_t stream;
    cudaEvent_t event;
    for (int i = 0; i < count; i++)
        values[i] = i % 17;
    int *buffer[2] = {to_device(values, count), to_device<int>(nullptr, count)};
    MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    MUST(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    cudaLaunchAttribute attributes[2] = {};
    attributes[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attributes[0].val.programmaticStreamSerializationAllowed = 1;
    attributes[1].id = cudaLaunchAttributePriority;
    attributes[1].val.priority = 0;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3((count + 127) / 128);
    config.blockDim = dim3(128);
    config.stream = stream;
    config.attrs = attributes;
    config.numAttrs = 2;
    auto run = [&](int number) {
        MUST(cudaLaunchKernelEx(&config, step, (const int *)buffer[number % 2], buffer[(number + 1) % 2], count, number));
    };
    for (int number = 0; number < steps; number++)
        run(number);
    MUST(cudaMemcpyAsync(got, buffer[steps % 2], sizeof got, cudaMemcpyDeviceToHost, stream));
    MUST(cudaStreamSynchronize(stream));
    for (int number = 0; number < steps; number++)
        for (int i = 0; i < count; i++)
            values[i] = values[i] * 3 + number * i;
    same("eight steps", got, values, count);

    cudaGraph_t graph; // the same as a graph, whose edges are programmatic ones
    cudaGraphExec_t exec;
    size_t nodes = 0;
    MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    for (int number = 0; number < 4; number++)
        run(number);
    MUST(cudaStreamEndCapture(stream, &graph));
    MUST(cudaGraphGetNodes(graph, nullptr, &nodes));
    MUST(cudaGraphInstantiate(&exec, graph, 0));
    MUST(cudaGraphLaunch(exec, stream));
    MUST(cudaMemcpyAsync(got, buffer[0], sizeof got, cudaMemcpyDeviceToHost, stream));
    MUST(cudaStreamSynchronize(stream));
    for (int number = 0; number < 4; number++)
        for (int i = 0; i < count; i++)
            values[i] = values[i] * 3 + number * i;
    printf("%zu nodes; ", nodes);
    same("four more, in a graph", got, values, count);
    MUST(cudaGraphExecDestroy(exec));
    MUST(cudaGraphDestroy(graph));
    MUST(cudaEventDestroy(event));
    MUST(cudaStreamDestroy(stream));
    MUST(cudaFree(buffer[0]));
    MUST(cudaFree(buffer[1]));
    return 0;
}
