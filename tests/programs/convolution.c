/*
 * A filter through a texture and a surface, with each address mode, and an image resized by the
 * device's linear filter. All numbers are multiples of 1/256, so that no sum is rounded.
 */
#include "base/program.h"

#include <math.h>

#define WIDTH  131
#define HEIGHT 77

static float image[HEIGHT][WIDTH], weights[25];

static CUarray array_new(void) {
    CUarray array;
    CUDA_ARRAY3D_DESCRIPTOR kind = {.Width = WIDTH,
                                    .Height = HEIGHT,
                                    .Format = CU_AD_FORMAT_FLOAT,
                                    .NumChannels = 1,
                                    .Flags = CUDA_ARRAY3D_SURFACE_LDST};
    OK(cu.cuArray3DCreate_v2(&array, &kind));
    return array;
}

static void copy(CUarray to_array, void *to, CUarray from_array, const void *from) {
    CUDA_MEMCPY2D copy = {.srcMemoryType = from_array ? CU_MEMORYTYPE_ARRAY : CU_MEMORYTYPE_HOST,
                          .srcArray = from_array,
                          .srcHost = from,
                          .srcPitch = sizeof image[0],
                          .dstMemoryType = to_array ? CU_MEMORYTYPE_ARRAY : CU_MEMORYTYPE_HOST,
                          .dstArray = to_array,
                          .dstHost = to,
                          .dstPitch = sizeof image[0],
                          .WidthInBytes = sizeof image[0],
                          .Height = HEIGHT};
    OK(cu.cuMemcpy2D_v2(&copy));
}

static CUtexObject texture_of(CUarray array, CUaddress_mode edge, CUfilter_mode filter) {
    CUtexObject texture;
    CUDA_RESOURCE_DESC resource = {.resType = CU_RESOURCE_TYPE_ARRAY, .res.array.hArray = array};
    CUDA_TEXTURE_DESC how = {.addressMode = {edge, edge, edge}, .filterMode = filter};
    OK(cu.cuTexObjectCreate(&texture, &resource, &how, NULL));
    return texture;
}

static CUsurfObject surface_of(CUarray array) {
    CUsurfObject surface;
    CUDA_RESOURCE_DESC resource = {.resType = CU_RESOURCE_TYPE_ARRAY, .res.array.hArray = array};
    OK(cu.cuSurfObjectCreate(&surface, &resource));
    return surface;
}

static float texel(int x, int y, CUaddress_mode edge) {
    if (edge == CU_TR_ADDRESS_MODE_BORDER && (x < 0 || y < 0 || x >= WIDTH || y >= HEIGHT))
        return 0;
    x = x < 0 ? 0 : x < WIDTH ? x : WIDTH - 1;
    y = y < 0 ? 0 : y < HEIGHT ? y : HEIGHT - 1;
    return image[y][x];
}

static const struct shape shape = {
    .blocks = (WIDTH + 31) / 32, .threads = 32, .blocks_y = (HEIGHT + 7) / 8, .threads_y = 8};

static void filter(CUarray source, CUarray results[2], CUaddress_mode edge, const char *what) {
    static float want[HEIGHT][WIDTH], got[HEIGHT][WIDTH];
    unsigned width = WIDTH, height = HEIGHT;
    CUtexObject texture = texture_of(source, edge, CU_TR_FILTER_MODE_POINT);
    CUsurfObject first = surface_of(results[0]), second = surface_of(results[1]);
    LAUNCH("convolve", shape, &texture, &first, &width, &height);
    LAUNCH("flip", shape, &first, &second, &width, &height);
    copy(NULL, got, results[1], NULL);
    for (int y = 0; y < HEIGHT; y++)
        for (int x = 0; x < WIDTH; x++) {
            float sum = 0;
            for (int j = -2; j <= 2; j++)
                for (int i = -2; i <= 2; i++)
                    sum = fmaf(weights[(j + 2) * 5 + i + 2], texel(x + i, y + j, edge), sum);
            want[y][WIDTH - 1 - x] = sum;
        }
    expect_equal(what, got, want, sizeof got);
    checksum(what, got, sizeof got);
    OK(cu.cuTexObjectDestroy(texture));
    OK(cu.cuSurfObjectDestroy(first));
    OK(cu.cuSurfObjectDestroy(second));
}

/* As the device filters: the fractions of the coordinates, in 256ths, weight the four nearest
 * texels, by whole 256ths again. */
static float filtered(float x, float y) {
    float left = floorf(x - 0.5f), top = floorf(y - 0.5f);
    float wx = (x - 0.5f - left) * 256, wy = (y - 0.5f - top) * 256;
    float both = floorf((wx * wy + 128) / 256);
    int i = (int)left, j = (int)top;
    float sum = texel(i, j, CU_TR_ADDRESS_MODE_CLAMP) * (256 - wx - wy + both) +
                texel(i + 1, j, CU_TR_ADDRESS_MODE_CLAMP) * (wx - both) +
                texel(i, j + 1, CU_TR_ADDRESS_MODE_CLAMP) * (wy - both) +
                texel(i + 1, j + 1, CU_TR_ADDRESS_MODE_CLAMP) * both;
    return sum / 256;
}

static void resize(CUarray source) {
    float step = 0.40625f; /* 104 / 256 */
    unsigned width = 317, height = 185;
    size_t bytes = width * height * sizeof(float);
    float *want = host_new(bytes), *got = host_new(bytes);
    CUdeviceptr out = device_new(bytes);
    CUtexObject texture = texture_of(source, CU_TR_ADDRESS_MODE_CLAMP, CU_TR_FILTER_MODE_LINEAR);
    LAUNCH("resize", SHAPE((width + 31) / 32, 32, (height + 7) / 8, 8), &texture, &out, &width,
           &height, &step);
    device_read(got, out, bytes);
    for (unsigned y = 0; y < height; y++)
        for (unsigned x = 0; x < width; x++)
            want[y * width + x] = filtered((float)x * step, (float)y * step);
    expect_equal("resized", got, want, bytes);
    checksum("resized", got, bytes);
    OK(cu.cuTexObjectDestroy(texture));
}

PROGRAM("convolution") {
    CUdeviceptr constant;
    size_t size;
    for (unsigned i = 0; i < WIDTH * HEIGHT; i++)
        image[i / WIDTH][i % WIDTH] = (float)(random_bits() % 256);
    for (unsigned i = 0; i < COUNT(weights); i++)
        weights[i] = ((float)(random_bits() % 33) - 16) / 256;
    OK(cu.cuModuleGetGlobal_v2(&constant, &size, program_module, "weights"));
    expect(size == sizeof weights, "weights: %zu bytes", size);
    device_write(constant, weights, sizeof weights);
    CUarray source = array_new(), results[2] = {array_new(), array_new()};
    copy(source, NULL, NULL, image);
    filter(source, results, CU_TR_ADDRESS_MODE_CLAMP, "clamped");
    filter(source, results, CU_TR_ADDRESS_MODE_BORDER, "with a border of zeros");
    resize(source);
    OK(cu.cuArrayDestroy(source));
    OK(cu.cuArrayDestroy(results[0]));
    OK(cu.cuArrayDestroy(results[1]));
}
