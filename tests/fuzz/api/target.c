/*
 * Sequences of driver calls on softgpu. Whatever a program asks, softgpu answers it without a
 * crash, a hang or a sanitizer's report, and when all is given back its state is as it was.
 *
 * An input is: the schedule, perhaps an injected fault, then calls, each a chapter, a function and
 * its arguments.
 */
#include "world.h"

#include <gpumem/softgpu.h>

const softgpu_control *softgpu_get_control(int version);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void choose_schedule(const softgpu_control *soft) {
    unsigned pick = byte();
    soft->schedule_set((softgpu_schedule)(pick % 3), pick / 3);
    pick = byte();
    if (pick < 0xc0)
        return;
    softgpu_fault_mode mode = pick & 1 ? SOFTGPU_FAULT_BEFORE : SOFTGPU_FAULT_AFTER;
    soft->fault_arm("*", pick & 2 ? 0 : 1u + byte(), CUDA_ERROR_OUT_OF_MEMORY, mode);
}

/* Few calls do anything without a context. */
static void begin_in_context(void) {
    unsigned pick = byte();
    CUcontext context = NULL;
    if (pick >= 0xf0)
        return;
    cuDevicePrimaryCtxRetain(&context, (CUdevice)(pick & 1));
    cuCtxPushCurrent_v2(context);
    remember(CONTEXTS, (uintptr_t)context);
    if (pick & 2) {
        CUstream stream = NULL;
        cuStreamCreate(&stream, pick >> 2 & 1);
        remember(STREAMS, (uintptr_t)stream);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    world.input = (struct input){data, data + size};
    world_start();
    begin_in_context();
    if (target.begin)
        target.begin();
    choose_schedule(softgpu_get_control(SOFTGPU_CONTROL_VERSION));
    for (unsigned i = 0; i < CALLS && world.input.at < world.input.end; i++) {
        unsigned pick = byte();
        const struct calls *chapter = target.chapters[pick % target.count];
        enter_call();
        chapter->list[byte() % chapter->count]();
        leave_call();
    }
    world_end();
    return 0;
}
