/* A library whose constructor registers the fat binary IMAGE, as nvcc's constructors do, and which
 * launches a kernel of it. Tests compile it; the names are the runtime's. */
struct {
    unsigned magic, version;
    const void *image, *parts;
} wrapper __attribute__((section(".nvFatBinSegment")));
asm(".section .nv_fatbin,\"a\"\n.globl fatbin\nfatbin: .incbin \"" IMAGE "\"\n.previous");
extern const char fatbin[] __attribute__((visibility("hidden")));
typedef struct {
    unsigned x, y, z;
} dim3;
void **__cudaRegisterFatBinary(void *),
    __cudaRegisterFunction(void **, const void *, const char *, const char *, int, void *, void *,
                           void *, void *, void *);
void __cudaUnregisterFatBinary(void **);
int cudaLaunchKernel(const void *, dim3, dim3, void **, unsigned long, void *);
static char stub;
static void **handle;
__attribute__((constructor)) static void begin(void) {
    wrapper.magic = 0x466243b1, wrapper.version = 1, wrapper.image = fatbin;
    handle = __cudaRegisterFatBinary(&wrapper);
    __cudaRegisterFunction(handle, &stub, "small", "small", -1, 0, 0, 0, 0, 0);
}
__attribute__((destructor)) static void end(void) {
    __cudaUnregisterFatBinary(handle);
}
int launch(void *to) {
    int n = 3;
    void *arguments[] = {&to, &n};
    dim3 one = {1, 1, 1};
    return cudaLaunchKernel(&stub, one, one, arguments, 0, 0);
}
