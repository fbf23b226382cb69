/*
 * The driver's calls beside the library: what they give, the device's context, and streams that
 * wait. `cu` is the table of them, `device` the library's, variables of whoever includes this.
 */
#ifndef TESTS_HELD_STREAMS_H
#define TESTS_HELD_STREAMS_H

#include "checks.h"
#include "gate.h"

/* What a function of the driver gives: through its first parameter, and through its last. It must
 * give something. */
#define MADE_CU(type, function, ...)                                                               \
    GIVEN_BY(type, #function, OK_CU(cu->function(&given_, __VA_ARGS__)))
#define GOT_CU(type, function, ...)                                                                \
    GIVEN_BY(type, #function, OK_CU(cu->function(__VA_ARGS__, &given_)))

/* ---- The device's context -------------------------------------------------------------------- */

static inline void use_context(void) {
    OK_CU(cu->cuCtxPushCurrent_v2(gpumem_device_context(device)));
}

static inline void leave_context(void) {
    CUcontext popped = NULL;
    OK_CU(cu->cuCtxPopCurrent_v2(&popped));
}

/* ---- Streams that wait ----------------------------------------------------------------------- */

/* A stream of the library's that waits until its gate is released. */
static inline struct gate gate_with_stream(void) {
    struct gate gate;
    use_context();
    gate_use(cu);
    gate_make(&gate);
    OK(gpumem_stream_create(device, NULL, &gate.stream));
    gate_hold(&gate, gate.stream);
    leave_context();
    return gate;
}

/* Releases it, and waits for the work after it. */
static inline void gate_drain(struct gate *gate) {
    gate_release(gate);
    OK(gpumem_stream_synchronize(device, gate->stream));
}

/* Frees it, and destroys its stream. */
static inline void gate_remove(struct gate *gate) {
    OK(gpumem_stream_destroy(device, gate->stream));
    use_context();
    gate_free(gate);
    leave_context();
}

static inline gpumem_status destroy_gate(gpumem_device *on, struct gate *gate) {
    gate_remove(gate);
    return GPUMEM_OK;
}

/* For DESTROY of objects.h. */
#define DESTROY_MORE struct gate * : destroy_gate,

#endif
