// An interpreter of small programs, whose operations are functions of a table: each thread runs a
// program of its own, so that lanes call different functions at once.
#include "device.cuh"

#define STACK 16

struct machine {
    u32 stack[STACK], depth, memory[8];
};

typedef void operation(machine *, u32);

static DEVICE void push(machine *m, u32 value) {
    m->stack[m->depth++ % STACK] = value;
}
static DEVICE u32 pop(machine *m) {
    return m->stack[--m->depth % STACK];
}
static DEVICE void constant(machine *m, u32 value) {
    push(m, value);
}
static DEVICE void add(machine *m, u32) {
    u32 b = pop(m);
    push(m, pop(m) + b);
}
static DEVICE void multiply(machine *m, u32) {
    u32 b = pop(m);
    push(m, pop(m) * b);
}
static DEVICE void divide(machine *m, u32) {
    u32 b = pop(m) | 1;
    push(m, pop(m) / b);
}
static DEVICE void load(machine *m, u32 at) {
    push(m, m->memory[at % 8]);
}
static DEVICE void store(machine *m, u32 at) {
    m->memory[at % 8] = pop(m);
}
static DEVICE void turn(machine *m, u32 by) {
    u32 value = pop(m);
    push(m, __builtin_rotateleft32(value, by & 31));
}
static DEVICE void twice(machine *m, u32) {
    u32 value = pop(m);
    push(m, value);
    push(m, value);
}

KERNEL run(const u32 *programs, u32 length, u32 *out) {
    SHARED operation *operations[8];
    if (thread() == 0) {
        operations[0] = constant;
        operations[1] = add;
        operations[2] = multiply;
        operations[3] = divide;
        operations[4] = load;
        operations[5] = store;
        operations[6] = turn;
        operations[7] = twice;
    }
    sync();
    machine m = {};
    for (u32 i = 0; i < 8; i++)
        m.memory[i] = index() * 8 + i;
    m.depth = 1000;
    const u32 *program = programs + index() * length;
    for (u32 i = 0; i < length; i++)
        operations[program[i] & 7](&m, program[i] >> 3);
    u32 sum = 0;
    for (u32 i = 0; i < STACK; i++)
        sum = sum * 31 + m.stack[i];
    for (u32 i = 0; i < 8; i++)
        sum = sum * 31 + m.memory[i];
    out[index()] = sum;
}
