/* Three files of relocatable code: functions, variables, constants and a table of functions of each other's files, templates
 * of a header, and a kernel that another file launches. */
#include "calls.h"
#include "check.h"

__constant__ settings common_settings = {2, 1};
__device__ int calls;

static __device__ int own(int value) { // another file has a function of the same name
    return value + 1000;
}

__global__ void work(int *values, int count) {
    int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < count)
        values[i] = own(filters[i % 2](adjust(i)));
}

int main() {
    const int count = 50;
    int got[count], want[count], called = 0, sum = 0, expected = 0;
    int *values = to_device<int>(nullptr, count), *out = to_device<int>(nullptr, 1);
    settings set = {5, -3};
    for (int round = 0; round < 2; round++) {
        settings now = round ? set : settings{2, 1};
        work<<<1, 64>>>(values, count);
        say("launch", cudaGetLastError());
        to_host(got, values, count);
        expected = 0;
        for (int i = 0; i < count; i++) {
            int adjusted = i * now.scale + now.offset;
            want[i] = (i % 2 ? adjusted * adjusted : -adjusted) + 1000;
            expected += want[i];
        }
        same("values", got, want, count);
        MUST(launch_other(values, count, out));
        to_host(&sum, out, 1);
        printf("sum %d\n", sum);
        right("the sum", sum == expected);
        MUST(cudaMemcpyToSymbol(common_settings, &set, sizeof set));
    }
    MUST(cudaMemcpyFromSymbol(&called, calls, sizeof called));
    printf("%d calls\n", called);
    right("one for each value", called == 2 * count);
    MUST(cudaFree(values));
    MUST(cudaFree(out));
    return 0;
}
