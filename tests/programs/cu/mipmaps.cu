/* A pyramid of arrays: each level made from the one above it by a kernel, then sampled by level. */
#include "check.h"

const int size = 16, levels = 5;

__global__ void reduce(cudaSurfaceObject_t from, cudaSurfaceObject_t to) {
    int x = (int)threadIdx.x, y = (int)threadIdx.y;
    float sum = 0;
    for (int i = 0; i < 4; i++)
        sum += surf2Dread<float>(from, (2 * x + i % 2) * 4, 2 * y + i / 2);
    surf2Dwrite(sum / 4, to, x * 4, y);
}

__global__ void sample(cudaTextureObject_t texture, float level, float *out) {
    float x = ((float)threadIdx.x + 0.5f) / (float)blockDim.x, y = ((float)threadIdx.y + 0.5f) / (float)blockDim.y;
    out[threadIdx.y * blockDim.x + threadIdx.x] = tex2DLod<float>(texture, x, y, level);
}

static cudaSurfaceObject_t surface_of(cudaMipmappedArray_t pyramid, unsigned level, cudaArray_t *array) {
    cudaResourceDesc resource = {};
    cudaSurfaceObject_t surface;
    MUST(cudaGetMipmappedArrayLevel(array, pyramid, level));
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = *array;
    MUST(cudaCreateSurfaceObject(&surface, &resource));
    return surface;
}

int main() {
    static float host[levels][size * size], got[size * size];
    cudaMipmappedArray_t pyramid;
    cudaArray_t array;
    cudaChannelFormatDesc desc = cudaCreateChannelDesc<float>();
    float *out = to_device<float>(nullptr, size * size);
    for (int i = 0; i < size * size; i++)
        host[0][i] = (float)((i * 29) % 256);
    MUST(cudaMallocMipmappedArray(&pyramid, &desc, make_cudaExtent(size, size, 0), levels, cudaArraySurfaceLoadStore));
    MUST(cudaGetMipmappedArrayLevel(&array, pyramid, 0));
    MUST(cudaMemcpy2DToArray(array, 0, 0, host[0], size * 4, size * 4, size, cudaMemcpyHostToDevice));
    for (int level = 1; level < levels; level++) {
        int now = size >> level;
        cudaExtent extent;
        cudaSurfaceObject_t from = surface_of(pyramid, (unsigned)level - 1, &array), to = surface_of(pyramid, (unsigned)level, &array);
        reduce<<<1, dim3((unsigned)now, (unsigned)now)>>>(from, to);
        MUST(cudaDeviceSynchronize());
        MUST(cudaArrayGetInfo(nullptr, &extent, nullptr, array));
        printf("level %d: %zu x %zu\n", level, extent.width, extent.height);
        for (int y = 0; y < now; y++)
            for (int x = 0; x < now; x++) {
                const float *above = &host[level - 1][4 * y * now + 2 * x];
                host[level][y * now + x] = (above[0] + above[1] + above[2 * now] + above[2 * now + 1]) / 4;
            }
        MUST(cudaMemcpy2DFromArray(got, (size_t)now * 4, array, 0, 0, (size_t)now * 4, (size_t)now, cudaMemcpyDeviceToHost));
        same("copied", got, host[level], (size_t)(now * now));
        MUST(cudaDestroySurfaceObject(from));
        MUST(cudaDestroySurfaceObject(to));
    }
    cudaResourceDesc resource = {};
    cudaTextureDesc sampling = {};
    cudaTextureObject_t texture;
    resource.resType = cudaResourceTypeMipmappedArray;
    resource.res.mipmap.mipmap = pyramid;
    sampling.normalizedCoords = 1;
    sampling.addressMode[0] = sampling.addressMode[1] = cudaAddressModeClamp;
    sampling.maxMipmapLevelClamp = levels - 1;
    MUST(cudaCreateTextureObject(&texture, &resource, &sampling, nullptr));
    for (int level = 0; level < levels; level++) {
        unsigned now = (unsigned)size >> level;
        sample<<<1, dim3(now, now)>>>(texture, (float)level, out);
        to_host(got, out, now * now);
        same("sampled", got, host[level], now * now);
    }
    MUST(cudaDestroyTextureObject(texture));
    say("a level that there is not", cudaGetMipmappedArrayLevel(&array, pyramid, levels));
    cudaGetLastError();
    MUST(cudaFreeMipmappedArray(pyramid));
    MUST(cudaFree(out));
    return 0;
}
