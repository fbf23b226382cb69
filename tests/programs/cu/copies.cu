/* Rectangles and boxes between host, pitched memory and arrays, with offsets, at once and in streams. */
#include "check.h"

#include <cstring>

const size_t width = 24, height = 10, depth = 6; // of bytes, rows, slices

struct volume {
    unsigned char byte[depth][height][width];
};

static volume numbered(int seed) {
    volume made;
    for (size_t i = 0; i < sizeof made; i++)
        ((unsigned char *)&made)[i] = (unsigned char)((i * 7 + (size_t)seed * 13) % 251);
    return made;
}

static void compare(const char *what, const volume &got, const volume &want) {
    right(what, memcmp(&got, &want, sizeof got) == 0);
}

static cudaPitchedPtr host(volume &of) {
    return make_cudaPitchedPtr(&of, width, width, height);
}

/* What a 3D copy does, on the host. */
static void on_host(volume &to, cudaPos at, const volume &from, cudaPos begin, cudaExtent extent) {
    for (size_t z = 0; z < extent.depth; z++)
        for (size_t y = 0; y < extent.height; y++)
            memcpy(&to.byte[at.z + z][at.y + y][at.x], &from.byte[begin.z + z][begin.y + y][begin.x], extent.width);
}

static void boxes(cudaStream_t stream) {
    volume first = numbered(1), second = numbered(2), want = second, got;
    const cudaExtent whole = make_cudaExtent(width, height, depth), part = make_cudaExtent(9, 4, 3);
    const cudaPos from = make_cudaPos(5, 2, 1), to = make_cudaPos(11, 5, 2);
    cudaPitchedPtr a, b;
    cudaMemcpy3DParms copy = {};
    MUST(cudaMalloc3D(&a, whole));
    MUST(cudaMalloc3D(&b, whole));
    copy.srcPtr = host(first);
    copy.dstPtr = a;
    copy.extent = whole;
    copy.kind = cudaMemcpyHostToDevice;
    MUST(cudaMemcpy3D(&copy));
    copy.srcPtr = host(second);
    copy.dstPtr = b;
    MUST(cudaMemcpy3DAsync(&copy, stream));
    copy.srcPtr = a;
    copy.srcPos = from;
    copy.dstPos = to;
    copy.extent = part;
    copy.kind = cudaMemcpyDeviceToDevice;
    MUST(cudaMemcpy3DAsync(&copy, stream));
    on_host(want, to, first, from, part);
    cudaMemcpy3DParms back = {};
    back.srcPtr = b;
    back.dstPtr = host(got);
    back.extent = whole;
    back.kind = cudaMemcpyDefault;
    MUST(cudaMemcpy3DAsync(&back, stream));
    MUST(cudaStreamSynchronize(stream));
    compare("a box of a box", got, want);

    cudaPitchedPtr inner = b; // a set of a part: from the second row of the first slice on
    inner.ptr = (char *)b.ptr + b.pitch + 3;
    MUST(cudaMemset3DAsync(inner, 0xEE, make_cudaExtent(4, 5, 2), stream));
    MUST(cudaMemcpy3DAsync(&back, stream));
    MUST(cudaStreamSynchronize(stream));
    for (size_t z = 0; z < 2; z++)
        for (size_t y = 0; y < 5; y++)
            memset(&want.byte[z][y + 1][3], 0xEE, 4);
    compare("a part set", got, want);
    MUST(cudaFree(a.ptr));
    MUST(cudaFree(b.ptr));
}

static void arrays(cudaStream_t stream) {
    volume first = numbered(3), got = {}, want = {};
    const cudaExtent elements = make_cudaExtent(width / 4, height, depth);
    cudaChannelFormatDesc desc = cudaCreateChannelDesc<uchar4>();
    cudaArray_t a, b;
    cudaMemcpy3DParms copy = {};
    MUST(cudaMalloc3DArray(&a, &desc, elements));
    MUST(cudaMalloc3DArray(&b, &desc, elements));
    copy.srcPtr = host(first);
    copy.dstArray = a;
    copy.extent = elements; // in elements, where an array takes part
    copy.kind = cudaMemcpyHostToDevice;
    MUST(cudaMemcpy3D(&copy));
    cudaMemcpy3DParms across = {};
    across.srcArray = a;
    across.srcPos = make_cudaPos(1, 1, 1);
    across.dstArray = b;
    across.dstPos = make_cudaPos(2, 3, 0);
    across.extent = make_cudaExtent(4, 6, 4);
    across.kind = cudaMemcpyDeviceToDevice;
    MUST(cudaMemcpy3DAsync(&across, stream));
    cudaMemcpy3DParms back = {};
    back.srcArray = b;
    back.srcPos = across.dstPos;
    back.dstPtr = host(got);
    back.extent = across.extent;
    back.kind = cudaMemcpyDeviceToHost;
    MUST(cudaMemcpy3DAsync(&back, stream));
    MUST(cudaStreamSynchronize(stream));
    on_host(want, make_cudaPos(0, 0, 0), first, make_cudaPos(4, 1, 1), make_cudaExtent(16, 6, 4));
    compare("a box of arrays", got, want);
    MUST(cudaFreeArray(a));
    MUST(cudaFreeArray(b));
}

static void rectangles(cudaStream_t stream) {
    volume first = numbered(4), got = {}, want = {};
    cudaChannelFormatDesc desc = cudaCreateChannelDesc<unsigned char>();
    unsigned char *device;
    size_t pitch;
    cudaArray_t a, b;
    MUST(cudaMallocArray(&a, &desc, width, height));
    MUST(cudaMallocArray(&b, &desc, width, height));
    MUST(cudaMallocPitch((void **)&device, &pitch, width, height));
    MUST(cudaMemset2DAsync(device, pitch, 9, width, height, stream));
    MUST(cudaMemcpy2DAsync(device + 2 * pitch + 1, pitch, first.byte, width, 20, 7, cudaMemcpyHostToDevice, stream));
    MUST(cudaMemcpy2DToArrayAsync(a, 0, 0, device, pitch, width, height, cudaMemcpyDeviceToDevice, stream));
    MUST(cudaStreamSynchronize(stream));
    MUST(cudaMemcpy2DArrayToArray(b, 3, 1, a, 1, 2, 20, 7, cudaMemcpyDeviceToDevice));
    MUST(cudaMemcpy2DFromArrayAsync(got.byte, width, b, 3, 1, 20, 7, cudaMemcpyDeviceToHost, stream));
    MUST(cudaMemcpy2DAsync(got.byte[1], width, device, pitch, width, height, cudaMemcpyDeviceToHost, stream));
    MUST(cudaStreamSynchronize(stream));
    for (size_t y = 0; y < 7; y++)
        memcpy(want.byte[0][y], first.byte[0][y], 20);
    memset(want.byte[1], 9, width * height);
    for (size_t y = 0; y < 7; y++)
        memcpy(&want.byte[1][y + 2][1], first.byte[0][y], 20);
    compare("rectangles by way of arrays", got, want);
    say("wider than a pitch", cudaMemcpy2D(device, 8, first.byte, width, 9, 2, cudaMemcpyHostToDevice));
    cudaGetLastError();
    say("nothing", cudaMemcpy2D(device, pitch, first.byte, width, 0, 2, cudaMemcpyHostToDevice));
    MUST(cudaFreeArray(a));
    MUST(cudaFreeArray(b));
    MUST(cudaFree(device));
}

int main() {
    cudaStream_t stream;
    MUST(cudaStreamCreate(&stream));
    boxes(stream);
    arrays(stream);
    rectangles(stream);
    MUST(cudaStreamDestroy(stream));
    return 0;
}
