/* printf in kernels; the expected text is that of the host's printf. */
#include "base/program.h"

#include <stdio.h>

#define THREADS 40u

PROGRAM("printing") {
    static const char name[] = "formats";
    uint32_t values[2 * THREADS];
    double number = 3.14159265358979;
    CUdeviceptr text = device_copy(name, sizeof name);
    fflush(stdout);
    LAUNCH("formats", SHAPE(1, 1), &text, &number);
    OK(cu.cuCtxSynchronize());
    for (unsigned i = 0; i < COUNT(values); i++)
        values[i] = random_bits() % 1000;
    CUdeviceptr device = device_copy(values, sizeof values), second = device + THREADS * 4;
    LAUNCH("in_turn", SHAPE(1, THREADS), &device);
    LAUNCH("in_turn", SHAPE(1, THREADS), &second);
    OK(cu.cuCtxSynchronize());
    fflush(stdout);
}
