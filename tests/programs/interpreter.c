/* Functions called through a table, different ones in the lanes of a warp. */
#include "base/program.h"

#define BLOCKS  6u
#define THREADS 64u
#define LENGTH  60u
#define STACK   16u

static uint32_t stack[STACK], memory[8], depth;

static void push(uint32_t value) {
    stack[depth++ % STACK] = value;
}

static uint32_t pop(void) {
    return stack[--depth % STACK];
}

static void operate(uint32_t code) {
    uint32_t kind = code & 7, value = code >> 3, by = value & 31, b = 0;
    if (kind && kind != 4)
        b = pop();
    switch (kind) {
    case 0:
        push(value);
        break;
    case 1:
        push(pop() + b);
        break;
    case 2:
        push(pop() * b);
        break;
    case 3:
        push(pop() / (b | 1));
        break;
    case 4:
        push(memory[value % 8]);
        break;
    case 5:
        memory[value % 8] = b;
        break;
    case 6:
        push(by ? b << by | b >> (32 - by) : b);
        break;
    default:
        push(b);
        push(b);
    }
}

static uint32_t run(const uint32_t *program, unsigned length, uint32_t number) {
    uint32_t sum = 0;
    depth = 1000;
    for (uint32_t i = 0; i < STACK; i++)
        stack[i] = 0;
    for (uint32_t i = 0; i < 8; i++)
        memory[i] = number * 8 + i;
    for (unsigned i = 0; i < length; i++)
        operate(program[i]);
    for (uint32_t i = 0; i < STACK; i++)
        sum = sum * 31 + stack[i];
    for (uint32_t i = 0; i < 8; i++)
        sum = sum * 31 + memory[i];
    return sum;
}

PROGRAM("interpreter") {
    static uint32_t want[BLOCKS * THREADS], got[BLOCKS * THREADS];
    unsigned length = LENGTH * program_scale(20), all = BLOCKS * THREADS * length;
    uint32_t *programs = host_new(all * sizeof *programs);
    for (unsigned i = 0; i < all; i++)
        programs[i] = random_bits();
    for (unsigned i = 0; i < BLOCKS * THREADS; i++)
        want[i] = run(programs + i * length, length, i);
    CUdeviceptr from = device_copy(programs, all * sizeof *programs), out = device_new(sizeof got);
    LAUNCH("run", SHAPE(BLOCKS, THREADS), &from, &length, &out);
    device_read(got, out, sizeof got);
    expect_equal("machines", got, want, sizeof got);
    checksum("machines", got, sizeof got);
}
