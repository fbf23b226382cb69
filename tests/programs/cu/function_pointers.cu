/* Functions chosen at run time: templates over functors, pointers in tables, virtual functions of objects that the device
 * makes, lambdas of the host. */
// flags: --extended-lambda
#include "check.h"

#include <new>

template <typename T, int Unroll, typename F> __global__ void map(T *values, int count, F function) {
    int from = (int)(blockIdx.x * blockDim.x + threadIdx.x) * Unroll;
#pragma unroll
    for (int i = 0; i < Unroll; i++)
        if (from + i < count)
            values[from + i] = function(values[from + i]);
}

struct polynomial {
    int coefficient[3];
    __host__ __device__ int operator()(int x) const {
        return coefficient[0] + x * (coefficient[1] + x * coefficient[2]);
    }
};

typedef int (*operation)(int, int);
__device__ int plus(int a, int b) { return a + b; }
__device__ int minus(int a, int b) { return a - b; }
__device__ int power(int a, int b) { return b <= 0 ? 1 : a * power(a, b - 1); } // by recursion
__device__ operation operations[] = {plus, minus, power};
__device__ operation chosen = minus;

__global__ void apply(const int *which, int *out, operation given) {
    int i = (int)threadIdx.x;
    out[i] = operations[which[i]](i, 3) * 1000 + given(i, 1);
}

struct shape {
    __device__ virtual int area() const = 0;
    __device__ virtual ~shape() {}
};
struct square : shape {
    int side;
    __device__ explicit square(int s) : side(s) {}
    __device__ int area() const override { return side * side; }
};
struct rectangle : square {
    int other;
    __device__ rectangle(int a, int b) : square(a), other(b) {}
    __device__ int area() const override { return side * other; }
};

__global__ void make(shape **shapes) {
    int i = (int)threadIdx.x;
    if (i % 2)
        shapes[i] = new square(i);
    else
        shapes[i] = new rectangle(i, i + 1);
}

__global__ void measure(shape **shapes, int *out) {
    out[threadIdx.x] = shapes[threadIdx.x]->area();
    delete shapes[threadIdx.x];
}

int main() {
    const int count = 100, few = 12;
    int values[count], want[count], which[few];
    for (int i = 0; i < count; i++)
        values[i] = i - 50;
    int *device = to_device(values, count);
    polynomial p = {{4, -3, 2}};
    map<int, 4><<<4, 32>>>(device, count, p);
    int shift = 7; // captured by value
    map<int, 2><<<2, 32>>>(device, count, [shift] __device__(int x) { return (x << 1) + shift; });
    map<int, 1><<<1, 128>>>(device, count, [=] __host__ __device__(int x) { return x % (shift + 100); });
    to_host(values, device, count);
    for (int i = 0; i < count; i++)
        want[i] = ((p(i - 50) << 1) + shift) % (shift + 100);
    same("mapped", values, want, count);

    operation given;
    for (int i = 0; i < few; i++) {
        which[i] = i % 3;
        int power = i * i * i, result[] = {i + 3, i - 3, power};
        want[i] = result[which[i]] * 1000 + (i - 1);
    }
    MUST(cudaMemcpyFromSymbol(&given, chosen, sizeof given));
    int *device_which = to_device(which, few);
    apply<<<1, few>>>(device_which, device, given);
    to_host(values, device, few);
    same("by pointer", values, want, few);

    shape **shapes = to_device<shape *>(nullptr, few);
    make<<<1, few>>>(shapes);
    measure<<<1, few>>>(shapes, device);
    to_host(values, device, few);
    for (int i = 0; i < few; i++)
        want[i] = i % 2 ? i * i : i * (i + 1);
    same("by virtual function", values, want, few);
    MUST(cudaFree(device));
    MUST(cudaFree(device_which));
    MUST(cudaFree(shapes));
    return 0;
}
