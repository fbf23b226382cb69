/* Fourier transforms: of known waves, forward and back, and a convolution through spectra. */
#include "base/program.h"

#define SIZE 1024u

struct complex {
    float re, im;
};

static struct complex factors[SIZE / 2];
static double cosines[SIZE], sines[SIZE];

/* By series, so that the results do not depend on a library's sine. */
static void make_factors(void) {
    for (unsigned i = 0; i < SIZE; i++) {
        double angle = 6.283185307179586476925 * ((double)i / SIZE), term = 1;
        if (i > SIZE / 2)
            angle -= 6.283185307179586476925;
        for (int n = 1; n < 60; n++) {
            if (n % 2)
                cosines[i] += n % 4 == 1 ? term : -term;
            else
                sines[i] += n % 4 == 2 ? term : -term;
            term = term * angle / n;
        }
    }
    for (unsigned i = 0; i < SIZE / 2; i++)
        factors[i] = (struct complex){(float)cosines[i], (float)-sines[i]};
}

/* One coefficient of the spectrum, by the definition of the discrete transform. */
static void defined(const struct complex *in, unsigned at, double *re, double *im) {
    *re = *im = 0;
    for (unsigned i = 0; i < SIZE; i++) {
        double c = cosines[i * at % SIZE], s = -sines[i * at % SIZE];
        *re += (double)in[i].re * c - (double)in[i].im * s;
        *im += (double)in[i].re * s + (double)in[i].im * c;
    }
}

static void transforms(unsigned count, struct complex *in, CUdeviceptr table) {
    size_t bytes = count * SIZE * sizeof *in;
    struct complex *got = host_new(bytes);
    double *want = host_new(SIZE * 2 * sizeof *want),
           *back = host_new(count * SIZE * 2 * sizeof *back);
    unsigned forward = 0, inverse = 1;
    CUdeviceptr values = device_copy(in, bytes);
    LAUNCH("transform", SHAPE(count, 256), &values, &table, &forward);
    device_read(got, values, bytes);
    for (unsigned i = 0; i < SIZE; i++)
        defined(in, i, &want[2 * i], &want[2 * i + 1]);
    expect_near("spectrum", &got[0].re, want, SIZE * 2, 2e-5);
    checksum("spectra", got, bytes);
    LAUNCH("transform", SHAPE(count, 256), &values, &table, &inverse);
    device_read(got, values, bytes);
    for (unsigned i = 0; i < count * SIZE; i++) {
        back[2 * i] = (double)in[i].re;
        back[2 * i + 1] = (double)in[i].im;
    }
    expect_near("there and back", &got[0].re, back, count * SIZE * 2, 1e-6);
    checksum("there and back", got, bytes);
}

static void convolution(const struct complex *in, CUdeviceptr table) {
    struct complex kernel[SIZE], got[SIZE];
    static double want[SIZE * 2];
    unsigned forward = 0, inverse = 1;
    memset(kernel, 0, sizeof kernel);
    for (unsigned i = 0; i < 5; i++)
        kernel[i].re = (float)(i + 1) * 0.125f;
    for (unsigned i = 0; i < SIZE; i++)
        for (unsigned j = 0; j < 5; j++) {
            want[2 * i] += (double)kernel[j].re * (double)in[(i - j) % SIZE].re;
            want[2 * i + 1] += (double)kernel[j].re * (double)in[(i - j) % SIZE].im;
        }
    CUdeviceptr a = device_copy(in, sizeof got), b = device_copy(kernel, sizeof kernel);
    LAUNCH("transform", SHAPE(1, 128), &a, &table, &forward);
    LAUNCH("transform", SHAPE(1, 128), &b, &table, &forward);
    LAUNCH("products", SHAPE(SIZE / 128, 128), &a, &b);
    LAUNCH("transform", SHAPE(1, 128), &a, &table, &inverse);
    device_read(got, a, sizeof got);
    expect_near("convolution", &got[0].re, want, SIZE * 2, 3e-6);
    checksum("convolution", got, sizeof got);
}

PROGRAM("fft") {
    make_factors();
    unsigned count = 16 * program_scale(16);
    struct complex *in = host_new(count * SIZE * sizeof *in);
    for (unsigned i = 0; i < count * SIZE; i++)
        in[i] = (struct complex){random_float() - 0.5f, random_float() - 0.5f};
    CUdeviceptr table = device_copy(factors, sizeof factors);
    transforms(count, in, table);
    convolution(in, table);
}
