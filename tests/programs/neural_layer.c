/* A network of three layers with 8-bit weights, for many samples. */
#include "base/program.h"

#define SAMPLES 16u
#define WIDEST  256u

static const unsigned sizes[] = {256, 160, 64, 16};
static signed char weights[WIDEST][WIDEST];
static int32_t bias[WIDEST];

static void layer(const unsigned char *in, unsigned char *out, unsigned inputs, unsigned outputs,
                  unsigned shift) {
    for (unsigned o = 0; o < outputs; o++) {
        int32_t sum = bias[o];
        for (unsigned i = 0; i < inputs; i++)
            sum += (int32_t)in[i] * ((signed char *)weights)[o * inputs + i];
        sum = sum < 0 ? -((-sum - 1) >> shift) - 1 : sum >> shift;
        out[o] = (unsigned char)(sum < 0 ? 0 : sum > 127 ? 127 : sum);
    }
}

PROGRAM("neural_layer") {
    unsigned samples = SAMPLES * program_scale(10), shift = 8;
    unsigned char *host[2] = {host_new(samples * WIDEST), host_new(samples * WIDEST)};
    unsigned char *got = host_new(samples * WIDEST);
    for (unsigned i = 0; i < samples * sizes[0]; i++)
        host[0][i] = random_bits() % 128;
    CUdeviceptr device[2] = {device_copy(host[0], samples * WIDEST), device_new(samples * WIDEST)};
    for (unsigned l = 0; l + 1 < COUNT(sizes); l++) {
        unsigned inputs = sizes[l], outputs = sizes[l + 1], words = inputs / 4;
        for (unsigned i = 0; i < inputs * outputs; i++)
            ((signed char *)weights)[i] = (signed char)((int)(random_bits() % 256) - 128);
        for (unsigned i = 0; i < outputs; i++)
            bias[i] = (int32_t)(random_bits() % 20000) - 5000;
        CUdeviceptr w = device_copy(weights, inputs * outputs);
        CUdeviceptr b = device_copy(bias, outputs * sizeof *bias);
        LAUNCH("layer", SHAPE(samples * outputs / 4, 128), &device[l % 2], &w, &b,
               &device[1 - l % 2], &words, &outputs, &shift);
        for (unsigned i = 0; i < samples; i++)
            layer(host[l % 2] + i * inputs, host[1 - l % 2] + i * outputs, inputs, outputs, shift);
        device_read(got, device[1 - l % 2], samples * outputs);
        expect_equal("layer", got, host[1 - l % 2], samples * outputs);
        checksum("layer", got, samples * outputs);
    }
}
