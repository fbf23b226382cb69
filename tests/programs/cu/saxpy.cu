/* <<<>>> with a constant, a global and a managed variable, symbols, and launches that are refused. */
#include <cstdio>

__constant__ float factor;
__device__ int calls;
__managed__ float total = 1.0f;

__global__ void saxpy(int n, const float *x, float *y) {
    int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < n)
        y[i] += factor * x[i];
    if (i == 0)
        calls++;
}

__global__ void add_up(int n, const float *y) {
    for (int i = 0; i < n; i++)
        total += y[i];
}

static void say(const char *what, cudaError_t error) {
    printf("%s: %s (%s)\n", what, cudaGetErrorName(error), cudaGetErrorString(error));
}

int main() {
    const int n = 1000;
    static float x[n], y[n];
    float *device_x, *device_y, two = 2.0f;
    int count = -1;
    size_t size = 0;
    void *address;
    for (int i = 0; i < n; i++) {
        x[i] = (float)i;
        y[i] = 1.0f;
    }
    say("malloc", cudaMalloc(&device_x, sizeof x));
    say("malloc", cudaMalloc(&device_y, sizeof y));
    say("copy", cudaMemcpy(device_x, x, sizeof x, cudaMemcpyHostToDevice));
    say("copy", cudaMemcpy(device_y, y, sizeof y, cudaMemcpyHostToDevice));
    say("to symbol", cudaMemcpyToSymbol(factor, &two, sizeof two));
    saxpy<<<(n + 255) / 256, 256>>>(n, device_x, device_y);
    say("launch", cudaGetLastError());
    add_up<<<1, 1>>>(n, device_y);
    say("launch", cudaGetLastError());
    say("synchronize", cudaDeviceSynchronize());
    say("copy", cudaMemcpy(y, device_y, sizeof y, cudaMemcpyDeviceToHost));
    printf("y[0] %g, y[999] %g, total %g\n", y[0], y[999], total);
    say("from symbol", cudaMemcpyFromSymbol(&count, calls, sizeof count));
    say("symbol size", cudaGetSymbolSize(&size, factor));
    say("symbol address", cudaGetSymbolAddress(&address, calls));
    printf("calls %d, size %zu, address %s\n", count, size, address ? "set" : "NULL");
    say("beyond a symbol", cudaMemcpyToSymbol(factor, &two, sizeof two, 4));
    saxpy<<<1, 4096>>>(n, device_x, device_y);
    say("a block too large, peek", cudaPeekAtLastError());
    say("a block too large", cudaGetLastError());
    say("afterwards", cudaGetLastError());
    say("free", cudaFree(device_x));
    say("free", cudaFree(device_y));
    say("free NULL", cudaFree(nullptr));
    return 0;
}
