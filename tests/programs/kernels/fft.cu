// Fast Fourier transforms of 1,024 complex numbers a block, by radix 2 in shared memory; the factors
// come from the host. Forward, inverse, and products of spectra for convolutions.
#include "device.cuh"

#define SIZE 1024
#define BITS 10

struct complex {
    float re, im;
};

INLINE complex times(complex a, complex b) {
    return {fused(a.re, b.re, -(a.im * b.im)), fused(a.re, b.im, a.im * b.re)};
}

KERNEL transform(complex *values, const complex *factors, u32 inverse) {
    SHARED complex part[SIZE];
    complex *own = values + block() * SIZE;
    for (u32 i = thread(); i < SIZE; i += threads())
        part[__builtin_bitreverse32(i) >> (32 - BITS)] = own[i];
    for (u32 half = 1; half < SIZE; half *= 2) {
        sync();
        for (u32 i = thread(); i < SIZE / 2; i += threads()) {
            u32 within = i & (half - 1), low = 2 * i - within;
            complex factor = factors[within * (SIZE / 2 / half)];
            if (inverse)
                factor.im = -factor.im;
            complex a = part[low], b = times(part[low + half], factor);
            part[low] = {a.re + b.re, a.im + b.im};
            part[low + half] = {a.re - b.re, a.im - b.im};
        }
    }
    sync();
    float scale = inverse ? 1.0f / SIZE : 1.0f;
    for (u32 i = thread(); i < SIZE; i += threads())
        own[i] = {part[i].re * scale, part[i].im * scale};
}

KERNEL products(complex *a, const complex *b) {
    a[index()] = times(a[index()], b[index()]);
}
