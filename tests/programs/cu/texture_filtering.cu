/* What a texture makes of its data: filters, addresses beyond the border, normalized coordinates and numbers, layers,
 * linear and pitched memory. Weights are multiples of 1/8, which the hardware's 8 bits hold exactly. */
#include "check.h"

#include <algorithm>
#include <cmath>

const int width = 8, height = 4, layers = 3;

__global__ void line(cudaTextureObject_t texture, const float *where, float *out, bool normalized) {
    int i = (int)threadIdx.x;
    out[i] = tex1D<float>(texture, normalized ? where[i] / width : where[i]);
}

__global__ void plane(cudaTextureObject_t texture, float *out) {
    float x = (float)threadIdx.x * 0.5f + 0.25f, y = (float)threadIdx.y * 0.5f + 0.25f;
    out[threadIdx.y * blockDim.x + threadIdx.x] = tex2D<float>(texture, x, y);
}

__global__ void layered(cudaTextureObject_t texture, float *out) {
    out[threadIdx.y * blockDim.x + threadIdx.x] = tex2DLayered<float>(texture, threadIdx.x + 0.5f, 1.5f, threadIdx.y);
}

__global__ void box(cudaTextureObject_t texture, float *out) {
    out[threadIdx.x] = tex3D<float>(texture, threadIdx.x + 0.5f, 1.5f, 2.0f);
}

__global__ void fetch(cudaTextureObject_t texture, int *out) {
    int4 value = tex1Dfetch<int4>(texture, (int)threadIdx.x);
    out[threadIdx.x] = value.x + 10 * value.y + 100 * value.z + 1000 * value.w;
}

static float at(const float *row, int i, cudaTextureAddressMode mode) {
    if (mode == cudaAddressModeWrap)
        return row[((i % width) + width) % width];
    if (mode == cudaAddressModeMirror) {
        int m = ((i % (2 * width)) + 2 * width) % (2 * width);
        return row[m < width ? m : 2 * width - 1 - m];
    }
    return i >= 0 && i < width ? row[i] : mode == cudaAddressModeBorder ? 0.0f : row[std::clamp(i, 0, width - 1)];
}

static cudaTextureObject_t texture_of(const cudaResourceDesc &resource, cudaTextureAddressMode mode, bool linear, bool normalized,
                                      cudaTextureReadMode read = cudaReadModeElementType) {
    cudaTextureDesc desc = {};
    cudaTextureObject_t texture;
    desc.addressMode[0] = mode;
    desc.addressMode[1] = desc.addressMode[2] = cudaAddressModeClamp; // a line lies in a plane, whose border would count
    desc.filterMode = linear ? cudaFilterModeLinear : cudaFilterModePoint;
    desc.normalizedCoords = normalized;
    desc.readMode = read;
    MUST(cudaCreateTextureObject(&texture, &resource, &desc, nullptr));
    return texture;
}

static cudaResourceDesc of_array(cudaArray_t array) {
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = array;
    return resource;
}

/* An array of that shape, with what `values` has. */
static cudaArray_t filled(const float *values, cudaExtent extent, unsigned flags) {
    cudaChannelFormatDesc desc = cudaCreateChannelDesc<float>();
    cudaMemcpy3DParms copy = {};
    MUST(cudaMalloc3DArray(&copy.dstArray, &desc, extent, flags));
    copy.extent = make_cudaExtent(extent.width, std::max<size_t>(extent.height, 1), std::max<size_t>(extent.depth, 1));
    copy.srcPtr = make_cudaPitchedPtr((void *)values, extent.width * sizeof *values, extent.width, copy.extent.height);
    copy.kind = cudaMemcpyHostToDevice;
    MUST(cudaMemcpy3D(&copy));
    return copy.dstArray;
}

static void lines(const float *values) {
    const int count = 24;
    float where[count], got[count], want[count], *out = to_device<float>(nullptr, count);
    for (int i = 0; i < count; i++)
        where[i] = (float)i * 0.875f - 6.0f;
    float *device_where = to_device(where, count);
    cudaArray_t array = filled(values, make_cudaExtent(width, 0, 0), 0);
    for (cudaTextureAddressMode mode : {cudaAddressModeClamp, cudaAddressModeBorder, cudaAddressModeWrap, cudaAddressModeMirror})
        for (bool linear : {false, true}) {
            bool normalized = mode == cudaAddressModeWrap || mode == cudaAddressModeMirror;
            cudaTextureObject_t texture = texture_of(of_array(array), mode, linear, normalized);
            line<<<1, count>>>(texture, device_where, out, normalized);
            to_host(got, out, count);
            for (int i = 0; i < count; i++) {
                float left = std::floor(where[i] - 0.5f), part = where[i] - 0.5f - left;
                want[i] = linear ? (1 - part) * at(values, (int)left, mode) + part * at(values, (int)left + 1, mode)
                                 : at(values, (int)std::floor(where[i]), mode);
            }
            printf("mode %d, %s; ", (int)mode, linear ? "linear" : "point");
            same("line", got, want, count);
            MUST(cudaDestroyTextureObject(texture));
        }
    MUST(cudaFreeArray(array));
    MUST(cudaFree(out));
    MUST(cudaFree(device_where));
}

static void shapes(const float *values) {
    const int wide = 2 * width - 1, high = 2 * height - 1;
    float got[wide * high], want[wide * high], *out = to_device<float>(nullptr, wide * high), *pitched;
    size_t pitch;
    cudaResourceDesc resource = {};
    MUST(cudaMallocPitch((void **)&pitched, &pitch, width * sizeof(float), height));
    MUST(cudaMemcpy2D(pitched, pitch, values, width * sizeof(float), width * sizeof(float), height, cudaMemcpyHostToDevice));
    resource.resType = cudaResourceTypePitch2D;
    resource.res.pitch2D.devPtr = pitched;
    resource.res.pitch2D.desc = cudaCreateChannelDesc<float>();
    resource.res.pitch2D.width = width;
    resource.res.pitch2D.height = height;
    resource.res.pitch2D.pitchInBytes = pitch;
    cudaTextureObject_t texture = texture_of(resource, cudaAddressModeClamp, true, false);
    plane<<<1, dim3(wide, high)>>>(texture, out);
    to_host(got, out, wide * high);
    for (int y = 0; y < high; y++)
        for (int x = 0; x < wide; x++) {
            float fx = (float)x * 0.5f - 0.25f, fy = (float)y * 0.5f - 0.25f, left = std::floor(fx), top = std::floor(fy);
            float sum = 0;
            for (int dy = 0; dy < 2; dy++)
                for (int dx = 0; dx < 2; dx++)
                    sum += (dx ? fx - left : 1 - fx + left) * (dy ? fy - top : 1 - fy + top) *
                           values[std::clamp((int)top + dy, 0, height - 1) * width + std::clamp((int)left + dx, 0, width - 1)];
            want[y * wide + x] = sum;
        }
    same("pitched plane", got, want, wide * high);
    MUST(cudaDestroyTextureObject(texture));
    MUST(cudaFree(pitched));

    cudaArray_t array = filled(values, make_cudaExtent(width, 2, layers), cudaArrayLayered);
    texture = texture_of(of_array(array), cudaAddressModeClamp, false, false);
    layered<<<1, dim3(width, layers)>>>(texture, out);
    to_host(got, out, width * layers);
    for (int layer = 0; layer < layers; layer++)
        std::copy_n(values + layer * 2 * width + width, width, want + layer * width);
    same("layers", got, want, width * layers);
    MUST(cudaDestroyTextureObject(texture));
    MUST(cudaFreeArray(array));

    array = filled(values, make_cudaExtent(width, 2, layers), 0);
    texture = texture_of(of_array(array), cudaAddressModeClamp, true, false);
    box<<<1, width>>>(texture, out);
    to_host(got, out, width);
    for (int x = 0; x < width; x++) // half way between the second slice and the third
        want[x] = (values[3 * width + x] + values[5 * width + x]) / 2;
    same("box", got, want, width);
    MUST(cudaDestroyTextureObject(texture));
    MUST(cudaFreeArray(array));
    MUST(cudaFree(out));
}

static void memory() {
    int4 values[4] = {{1, 2, 3, 4}, {5, 6, 7, 8}, {-1, -2, -3, -4}, {0, 1, 0, 1}};
    int got[5], want[5] = {4321, 8765, -4321, 1010, 0}, *out = to_device<int>(nullptr, 5);
    cudaResourceDesc resource = {}, described;
    resource.resType = cudaResourceTypeLinear;
    resource.res.linear.devPtr = to_device(values, 4);
    resource.res.linear.desc = cudaCreateChannelDesc<int4>();
    resource.res.linear.sizeInBytes = sizeof values;
    cudaTextureObject_t texture = texture_of(resource, cudaAddressModeClamp, false, false);
    fetch<<<1, 5>>>(texture, out); // one beyond the end, which is 0
    to_host(got, out, 5);
    same("linear memory", got, want, 5);
    MUST(cudaGetTextureObjectResourceDesc(&described, texture));
    right("what it is of", described.resType == cudaResourceTypeLinear && described.res.linear.devPtr == resource.res.linear.devPtr);
    MUST(cudaDestroyTextureObject(texture));
    MUST(cudaFree(resource.res.linear.devPtr));
    MUST(cudaFree(out));
}

int main() {
    float values[width * 2 * layers];
    for (int i = 0; i < width * 2 * layers; i++)
        values[i] = (float)((i * 37 + 11) % 64);
    lines(values);
    shapes(values);
    memory();
    return 0;
}
