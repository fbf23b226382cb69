/* Managed memory: written by turns, moved ahead of its use, advised, attached to a stream, and asked where it lies. */
// runtime: 13
#include "check.h"

struct node {
    int value;
    node *next;
};

__global__ void walk(node *first, int *sum) {
    *sum = 0;
    for (node *at = first; at; at = at->next) {
        *sum += at->value;
        at->value *= 2;
    }
}

__global__ void add(int *values, int count, int what) {
    for (int i = (int)threadIdx.x; i < count; i += (int)blockDim.x)
        values[i] += what;
}

int main() {
    const int count = 5000;
    int *values, *sum, *attached, concurrent = 0, readmostly = -1, place = -9, want[count];
    node *list;
    cudaStream_t stream;
    cudaMemLocation device = {}, host = {};
    device.type = cudaMemLocationTypeDevice;
    host.type = cudaMemLocationTypeHost;
    MUST(cudaDeviceGetAttribute(&concurrent, cudaDevAttrConcurrentManagedAccess, 0));
    printf("concurrent: %d\n", concurrent);
    MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    MUST(cudaMallocManaged(&values, count * sizeof *values));
    MUST(cudaMallocManaged(&sum, sizeof *sum, cudaMemAttachGlobal));
    MUST(cudaMallocManaged(&list, 10 * sizeof *list));
    for (int i = 0; i < 10; i++)
        list[i] = {i * i, i < 9 ? &list[i + 1] : nullptr};
    for (int round = 1; round <= 2; round++) {
        walk<<<1, 1>>>(list, sum);
        MUST(cudaDeviceSynchronize());
        printf("sum %d, last %d\n", *sum, list[9].value);
        right("the sum", *sum == 285 * round);
    }

    for (int i = 0; i < count; i++)
        values[i] = i;
    MUST(cudaMemAdvise(values, count * sizeof *values, cudaMemAdviseSetReadMostly, device));
    MUST(cudaMemRangeGetAttribute(&readmostly, sizeof readmostly, cudaMemRangeAttributeReadMostly, values, count * sizeof *values));
    printf("read mostly: %d\n", readmostly);
    MUST(cudaMemAdvise(values, count * sizeof *values, cudaMemAdviseUnsetReadMostly, device));
    MUST(cudaMemAdvise(values, count * sizeof *values, cudaMemAdviseSetPreferredLocation, device));
    MUST(cudaMemRangeGetAttribute(&place, sizeof place, cudaMemRangeAttributePreferredLocation, values, count * sizeof *values));
    printf("preferred on %d\n", place);
    MUST(cudaMemAdvise(values, count * sizeof *values, cudaMemAdviseSetAccessedBy, host));
    MUST(cudaMemPrefetchAsync(values, count * sizeof *values, device, 0, stream));
    add<<<1, 256, 0, stream>>>(values, count, 100);
    MUST(cudaMemPrefetchAsync(values, count * sizeof *values, host, 0, stream));
    MUST(cudaStreamSynchronize(stream));
    MUST(cudaMemRangeGetAttribute(&place, sizeof place, cudaMemRangeAttributeLastPrefetchLocation, values, count * sizeof *values));
    printf("last moved to %d\n", place);
    for (int i = 0; i < count; i++)
        want[i] = i + 100;
    same("values", values, want, count);

    MUST(cudaMallocManaged(&attached, sizeof *attached, cudaMemAttachHost));
    *attached = 5;
    MUST(cudaStreamAttachMemAsync(stream, attached, 0, cudaMemAttachSingle));
    MUST(cudaStreamSynchronize(stream));
    add<<<1, 1, 0, stream>>>(attached, 1, 6);
    MUST(cudaStreamSynchronize(stream));
    printf("attached: %d\n", *attached);
    cudaPointerAttributes attributes;
    MUST(cudaPointerGetAttributes(&attributes, values));
    printf("kind %d, one address for both: %d\n", (int)attributes.type, attributes.devicePointer == attributes.hostPointer);
    MUST(cudaFree(attached));
    say("nothing", cudaMallocManaged(&attached, 0));
    say("flags that there are not", cudaMallocManaged(&attached, 4, 99));
    cudaGetLastError();
    MUST(cudaStreamDestroy(stream));
    MUST(cudaFree(values));
    MUST(cudaFree(sum));
    MUST(cudaFree(list));
    return 0;
}
