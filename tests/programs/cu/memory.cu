/* Memory of every kind: what pointers are, pitches, boxes, pools, pinned and managed memory, peers. */
// findings: double-free
#include <cstdio>
#include <cstring>

static void say(const char *what, cudaError_t error) {
    printf("%s: %s\n", what, cudaGetErrorName(error));
    cudaGetLastError();
}

static void kind(const char *what, const void *pointer) {
    cudaPointerAttributes attributes;
    cudaError_t error = cudaPointerGetAttributes(&attributes, pointer);
    printf("%s is %d of device %d (%s)\n", what, (int)attributes.type, attributes.device, cudaGetErrorName(error));
}

static void boxes() {
    cudaExtent extent = make_cudaExtent(10, 4, 3);
    cudaPitchedPtr device;
    unsigned char host[120], back[120];
    for (int i = 0; i < 120; i++)
        host[i] = (unsigned char)i;
    say("malloc 3D", cudaMalloc3D(&device, extent));
    say("memset 3D", cudaMemset3D(device, 7, extent));
    cudaMemcpy3DParms copy = {};
    copy.srcPtr = make_cudaPitchedPtr(host, 10, 10, 4);
    copy.dstPtr = device;
    copy.dstPos = make_cudaPos(0, 1, 1);
    copy.extent = make_cudaExtent(10, 3, 2);
    copy.kind = cudaMemcpyHostToDevice;
    say("copy 3D", cudaMemcpy3D(&copy));
    copy = cudaMemcpy3DParms{};
    copy.srcPtr = device;
    copy.dstPtr = make_cudaPitchedPtr(back, 10, 10, 4);
    copy.extent = extent;
    copy.kind = cudaMemcpyDeviceToHost;
    say("copy 3D back", cudaMemcpy3D(&copy));
    printf("%d %d %d %d\n", back[0], back[49], back[50], back[119]);
    say("free", cudaFree(device.ptr));
}

static void rectangles() {
    char *device, host[64], back[64] = {};
    size_t pitch;
    memset(host, 5, sizeof host);
    say("malloc pitch", cudaMallocPitch((void **)&device, &pitch, 8, 8));
    printf("pitch is large enough: %d\n", pitch >= 8);
    say("memset 2D", cudaMemset2D(device, pitch, 1, 8, 8));
    say("copy 2D", cudaMemcpy2D(device + 2, pitch, host, 4, 4, 8, cudaMemcpyHostToDevice));
    say("copy 2D back", cudaMemcpy2D(back, 8, device, pitch, 8, 8, cudaMemcpyDefault));
    printf("%d %d %d %d\n", back[0], back[2], back[5], back[6]);
    say("a pitch too small", cudaMemcpy2D(device, 2, host, 4, 4, 8, cudaMemcpyHostToDevice));
    say("a direction that there is not", cudaMemcpy2D(device, pitch, host, 4, 4, 8, (cudaMemcpyKind)9));
    say("free", cudaFree(device));
}

static void pools() {
    int device = -1;
    cudaMemPool_t pool, made;
    cudaStream_t stream;
    int *memory, value = 0;
    cudaMemPoolProps props = {};
    unsigned long long threshold = 1 << 20, got = 0;
    say("device", cudaGetDevice(&device));
    say("default pool", cudaDeviceGetDefaultMemPool(&pool, device));
    say("set", cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold));
    say("get", cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &got));
    printf("threshold %llu\n", got);
    say("stream", cudaStreamCreate(&stream));
    say("malloc", cudaMallocAsync(&memory, sizeof value, stream));
    say("memset", cudaMemsetAsync(memory, 1, sizeof value, stream));
    say("copy", cudaMemcpyAsync(&value, memory, sizeof value, cudaMemcpyDeviceToHost, stream));
    say("free", cudaFreeAsync(memory, stream));
    say("synchronize", cudaStreamSynchronize(stream));
    printf("%#x\n", value);
    props.allocType = cudaMemAllocationTypePinned;
    props.location.type = cudaMemLocationTypeDevice;
    say("a pool", cudaMemPoolCreate(&made, &props));
    say("malloc from it", cudaMallocFromPoolAsync((void **)&memory, 64, made, stream));
    say("free", cudaFreeAsync(memory, stream));
    say("trim", cudaMemPoolTrimTo(made, 0));
    say("destroy", cudaMemPoolDestroy(made));
    say("destroy", cudaStreamDestroy(stream));
}

int main() {
    void *device, *pinned, *managed, *mapped = nullptr, *none = &device;
    static char plain[4096];
    size_t free_bytes = 0, total = 0;
    say("malloc", cudaMalloc(&device, 100));
    say("malloc host", cudaMallocHost(&pinned, 100));
    say("malloc managed", cudaMallocManaged(&managed, 100));
    kind("device memory", device);
    kind("pinned memory", pinned);
    kind("managed memory", managed);
    kind("the program's own", plain);
    kind("nothing", nullptr);
    say("malloc of nothing", cudaMalloc(&none, 0));
    printf("gives %s\n", none ? "an address" : "NULL");
    say("malloc without a place", cudaMalloc((void **)nullptr, 1));
    say("malloc of too much", cudaMalloc(&none, (size_t)1 << 60));
    say("host register", cudaHostRegister(plain, sizeof plain, cudaHostRegisterMapped));
    say("device pointer", cudaHostGetDevicePointer(&mapped, plain, 0));
    kind("registered memory", plain);
    say("host unregister", cudaHostUnregister(plain));
    say("again", cudaHostUnregister(plain));
    say("memory", cudaMemGetInfo(&free_bytes, &total));
    printf("some is free: %d\n", free_bytes > 0 && free_bytes <= total);
    say("direction", cudaMemcpy(device, plain, 1, (cudaMemcpyKind)7));
    say("host to host", cudaMemcpy(plain, plain + 100, 100, cudaMemcpyHostToHost));
    boxes();
    rectangles();
    pools();
    say("free", cudaFree(device));
    say("free", cudaFree(managed));
    say("free host", cudaFreeHost(pinned));
    say("free of another's", cudaFree(plain));
    say("reset", cudaDeviceReset());
    say("malloc after the reset", cudaMalloc(&device, 100));
    say("free", cudaFree(device));
    return 0;
}
