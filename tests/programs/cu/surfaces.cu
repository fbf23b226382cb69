/* Surfaces of one, two and three dimensions and of layers: read and written by kernels, beyond their borders as asked. */
#include "check.h"

#include <cstring>

const int width = 16, height = 8, depth = 4;

__global__ void invert(cudaSurfaceObject_t in, cudaSurfaceObject_t out) {
    int x = (int)threadIdx.x, y = (int)threadIdx.y;
    uchar4 value = surf2Dread<uchar4>(in, x * 4, y);
    value = make_uchar4(value.w, value.z, (unsigned char)(255 - value.y), value.x);
    surf2Dwrite(value, out, x * 4, height - 1 - y);
}

__global__ void edges(cudaSurfaceObject_t surface, int *out) {
    int x = (int)threadIdx.x - 2;
    out[threadIdx.x] = surf1Dread<int>(surface, x * 4, cudaBoundaryModeZero);
    out[threadIdx.x + blockDim.x] = surf1Dread<int>(surface, x * 4, cudaBoundaryModeClamp);
    surf1Dwrite(x * 100, surface, x * 4, cudaBoundaryModeZero); // not written where there is nothing
}

__global__ void box(cudaSurfaceObject_t surface) {
    float2 value = make_float2((float)threadIdx.x + (float)threadIdx.y * 10, (float)threadIdx.z + 0.5f);
    surf3Dwrite(value, surface, (int)(threadIdx.x * sizeof value), (int)threadIdx.y, (int)threadIdx.z);
}

__global__ void layers(cudaSurfaceObject_t surface) {
    short value = surf2DLayeredread<short>(surface, (int)threadIdx.x * 2, (int)threadIdx.y, (int)threadIdx.z);
    value = (short)(value * 2 + (int)threadIdx.z);
    surf2DLayeredwrite(value, surface, (int)threadIdx.x * 2, (int)threadIdx.y, (int)threadIdx.z);
}

static cudaSurfaceObject_t surface_of(cudaArray_t array) {
    cudaResourceDesc resource = {};
    cudaSurfaceObject_t surface;
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = array;
    MUST(cudaCreateSurfaceObject(&surface, &resource));
    return surface;
}

static void planes() {
    uchar4 in[height][width], out[height][width];
    cudaArray_t from, to;
    cudaChannelFormatDesc desc = cudaCreateChannelDesc<uchar4>();
    int wrong = 0;
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++)
            in[y][x] = make_uchar4((unsigned char)x, (unsigned char)(y * 20), (unsigned char)(x * y), 255);
    MUST(cudaMallocArray(&from, &desc, width, height, cudaArraySurfaceLoadStore));
    MUST(cudaMallocArray(&to, &desc, width, height, cudaArraySurfaceLoadStore));
    MUST(cudaMemcpy2DToArray(from, 0, 0, in, sizeof in[0], sizeof in[0], height, cudaMemcpyHostToDevice));
    cudaSurfaceObject_t first = surface_of(from), second = surface_of(to);
    invert<<<1, dim3(width, height)>>>(first, second);
    MUST(cudaMemcpy2DFromArray(out, sizeof out[0], to, 0, 0, sizeof out[0], height, cudaMemcpyDeviceToHost));
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++) {
            uchar4 a = in[y][x], b = out[height - 1 - y][x];
            wrong += b.x != a.w || b.y != a.z || b.z != 255 - a.y || b.w != a.x;
        }
    right("a plane of bytes", wrong == 0);
    MUST(cudaDestroySurfaceObject(first));
    MUST(cudaDestroySurfaceObject(second));
    MUST(cudaFreeArray(from));
    MUST(cudaFreeArray(to));
}

static void borders() {
    const int count = 20;
    int in[width], got[2 * count], want[2 * count], *out = to_device<int>(nullptr, 2 * count);
    cudaArray_t array;
    cudaChannelFormatDesc desc = cudaCreateChannelDesc<int>();
    for (int i = 0; i < width; i++)
        in[i] = i * i + 1;
    MUST(cudaMallocArray(&array, &desc, width, 0, cudaArraySurfaceLoadStore));
    MUST(cudaMemcpy2DToArray(array, 0, 0, in, sizeof in, sizeof in, 1, cudaMemcpyHostToDevice));
    cudaSurfaceObject_t surface = surface_of(array);
    edges<<<1, count>>>(surface, out);
    to_host(got, out, 2 * count);
    for (int i = 0; i < count; i++) {
        int x = i - 2, inside = x < 0 ? 0 : x < width ? x : width - 1;
        want[i] = x == inside ? in[x] : 0;
        want[i + count] = in[inside];
    }
    same("beyond the border", got, want, 2 * count);
    MUST(cudaMemcpy2DFromArray(got, sizeof in, array, 0, 0, sizeof in, 1, cudaMemcpyDeviceToHost));
    for (int i = 0; i < width; i++)
        want[i] = i * 100;
    same("written", got, want, width);
    MUST(cudaDestroySurfaceObject(surface));
    MUST(cudaFreeArray(array));
    MUST(cudaFree(out));
}

template <typename T> static void volume(const char *what, unsigned flags, void (*kernel)(cudaSurfaceObject_t), T (*wanted)(int, int, int)) {
    static T got[depth][height][width];
    cudaChannelFormatDesc desc = cudaCreateChannelDesc<T>();
    cudaMemcpy3DParms copy = {};
    int wrong = 0;
    for (int z = 0; z < depth; z++)
        for (int y = 0; y < height; y++)
            for (int x = 0; x < width; x++)
                got[z][y][x] = T{};
    MUST(cudaMalloc3DArray(&copy.dstArray, &desc, make_cudaExtent(width, height, depth), flags | cudaArraySurfaceLoadStore));
    copy.srcPtr = make_cudaPitchedPtr(got, width * sizeof(T), width, height);
    copy.extent = make_cudaExtent(width, height, depth);
    copy.kind = cudaMemcpyHostToDevice;
    MUST(cudaMemcpy3D(&copy));
    cudaSurfaceObject_t surface = surface_of(copy.dstArray);
    for (int i = 0; i < 2; i++)
        kernel<<<1, dim3(width, height, depth)>>>(surface);
    cudaMemcpy3DParms back = {};
    back.srcArray = copy.dstArray;
    back.dstPtr = copy.srcPtr;
    back.extent = copy.extent;
    back.kind = cudaMemcpyDeviceToHost;
    MUST(cudaMemcpy3D(&back));
    for (int z = 0; z < depth; z++)
        for (int y = 0; y < height; y++)
            for (int x = 0; x < width; x++) {
                T want = wanted(x, y, z);
                wrong += memcmp(&got[z][y][x], &want, sizeof want) != 0;
            }
    right(what, wrong == 0);
    MUST(cudaDestroySurfaceObject(surface));
    MUST(cudaFreeArray(copy.dstArray));
}

int main() {
    planes();
    borders();
    volume<float2>("a box", 0, box, [](int x, int y, int z) { return make_float2((float)x + (float)y * 10, (float)z + 0.5f); });
    volume<short>("layers", cudaArrayLayered, layers, [](int, int, int z) { return (short)(z * 3); });
    return 0;
}
