/* Arrays, textures and surfaces: written by copies and by kernels, sampled by kernels. */
#include <cstdio>

static void say(const char *what, cudaError_t error) {
    printf("%s: %s\n", what, cudaGetErrorName(error));
}

__global__ void sample(cudaTextureObject_t texture, float *out) {
    out[threadIdx.x] = tex2D<float>(texture, threadIdx.x + 0.5f, 1.5f);
}

__global__ void paint(cudaSurfaceObject_t surface) {
    surf2Dwrite((float)threadIdx.x * 10, surface, (int)threadIdx.x * 4, 2);
}

int main() {
    float host[16], back[4] = {}, *out;
    cudaArray_t array, none;
    cudaTextureObject_t texture;
    cudaSurfaceObject_t surface;
    cudaChannelFormatDesc desc = cudaCreateChannelDesc<float>(), got, bad = {7, 0, 0, 0, cudaChannelFormatKindFloat};
    cudaExtent extent;
    unsigned flags;
    for (int i = 0; i < 16; i++)
        host[i] = (float)i;
    say("malloc array", cudaMallocArray(&array, &desc, 4, 4, cudaArraySurfaceLoadStore));
    say("no such channels", cudaMallocArray(&none, &bad, 4, 4));
    say("info", cudaArrayGetInfo(&got, &extent, &flags, array));
    printf("%d %d %d of kind %d, %zu x %zu, flags %u\n", got.x, got.y, got.z, (int)got.f, extent.width, extent.height, flags);
    say("copy", cudaMemcpy2DToArray(array, 0, 0, host, 16, 16, 4, cudaMemcpyHostToDevice));
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = array;
    cudaTextureDesc sampling = {};
    sampling.addressMode[0] = sampling.addressMode[1] = cudaAddressModeClamp;
    sampling.filterMode = cudaFilterModePoint;
    say("texture", cudaCreateTextureObject(&texture, &resource, &sampling, nullptr));
    say("surface", cudaCreateSurfaceObject(&surface, &resource));
    say("malloc", cudaMalloc(&out, sizeof back));
    sample<<<1, 4>>>(texture, out);
    say("sample", cudaMemcpy(back, out, sizeof back, cudaMemcpyDeviceToHost));
    printf("%g %g %g %g\n", back[0], back[1], back[2], back[3]);
    paint<<<1, 4>>>(surface);
    say("paint", cudaMemcpy2DFromArray(back, 16, array, 0, 2, 16, 1, cudaMemcpyDeviceToHost));
    printf("%g %g %g %g\n", back[0], back[1], back[2], back[3]);
    say("texture desc", cudaGetTextureObjectTextureDesc(&sampling, texture));
    printf("address mode %d\n", (int)sampling.addressMode[0]);
    say("destroy", cudaDestroyTextureObject(texture));
    say("destroy", cudaDestroySurfaceObject(surface));
    say("free array", cudaFreeArray(array));
    say("free", cudaFree(out));
    return 0;
}
