/* Streams, events, host functions, stream memory operations. */
#include "world.h"

#include <stdlib.h>

static void stream_create(void) {
    CUstream made = NULL;
    if (byte() & 1)
        cuStreamCreate(maybe(&made), draw_flags() & 3);
    else
        cuStreamCreateWithPriority(maybe(&made), byte() & 1, (int)byte() - 8);
    remember(STREAMS, (uintptr_t)made);
}

static void stream_destroy(void) {
    cuStreamDestroy_v2(STREAM());
}

static void stream_query(void) {
    cuStreamQuery(STREAM());
}

static void stream_synchronize(void) {
    if (byte() & 1)
        cuStreamSynchronize(STREAM());
    else
        cuStreamSynchronize_ptsz(STREAM());
}

static void stream_wait_event(void) {
    cuStreamWaitEvent(STREAM(), EVENT(), draw_flags() & 3);
}

static void stream_questions(void) {
    unsigned flags;
    unsigned long long id;
    int priority;
    CUcontext context;
    CUdevice device;
    CUstreamCaptureStatus status;
    cuStreamGetFlags(STREAM(), maybe(&flags));
    cuStreamGetId(STREAM(), maybe(&id));
    cuStreamGetPriority(STREAM(), maybe(&priority));
    cuStreamGetCtx(STREAM(), maybe(&context));
    cuStreamGetDevice(STREAM(), maybe(&device));
    cuStreamIsCapturing(STREAM(), maybe(&status));
}

static void stream_attributes(void) {
    CUstreamAttrValue value = {0};
    draw_bytes(&world.input, &value, 16);
    CUstreamAttrID attribute = (CUstreamAttrID)(byte() % 16);
    switch (byte() % 3) {
    case 0:
        cuStreamGetAttribute(STREAM(), attribute, maybe(&value));
        break;
    case 1:
        cuStreamSetAttribute(STREAM(), attribute, maybe(&value));
        break;
    default:
        cuStreamCopyAttributes(STREAM(), STREAM());
        break;
    }
}

static void event_create(void) {
    CUevent made = NULL;
    cuEventCreate(maybe(&made), draw_flags());
    remember(EVENTS, (uintptr_t)made);
}

static void event_destroy(void) {
    cuEventDestroy_v2(EVENT());
}

static void event_record(void) {
    if (byte() & 1)
        cuEventRecord(EVENT(), STREAM());
    else
        cuEventRecordWithFlags(EVENT(), STREAM(), draw_flags() & 3);
}

static void event_query(void) {
    cuEventQuery(EVENT());
}

static void event_synchronize(void) {
    cuEventSynchronize(EVENT());
}

static void event_elapsed(void) {
    float milliseconds;
    cuEventElapsedTime_v2(maybe(&milliseconds), EVENT(), EVENT());
}

/* A call from here is refused with the error that documentation names, and must not deadlock. */
static void CUDA_CB host_function(void *argument) {
    CUdeviceptr made;
    if (cuMemAlloc_v2(&made, 4096) == CUDA_SUCCESS)
        abort();
    ++*(volatile unsigned char *)argument;
    *(volatile unsigned char *)argument &= 0x7f;
}

static void CUDA_CB callback(CUstream stream, CUresult status, void *argument) {
    (void)stream;
    (void)status;
    host_function(argument);
}

static void launch_host_function(void) {
    size_t room;
    void *argument = draw_host(&room);
    if (byte() & 1)
        cuLaunchHostFunc(STREAM(), byte() < 0xf8 ? host_function : NULL, argument);
    else
        cuStreamAddCallback(STREAM(), byte() < 0xf8 ? callback : NULL, argument,
                            byte() < 0xf0 ? 0 : byte());
}

static void wait_value(void) {
    bool wide = byte() & 1;
    struct wait wait = draw_wait(wide ? 8 : 4);
    if (wide)
        cuStreamWaitValue64_v2(STREAM(), wait.address, wait.value, wait.flags);
    else
        cuStreamWaitValue32_v2(STREAM(), wait.address, (cuuint32_t)wait.value, wait.flags);
}

static CUdeviceptr write_address(uint64_t *value) {
    unsigned pick = byte();
    *value = draw_pattern();
    if (pick < 0x80)
        return (CUdeviceptr)(uintptr_t)&gates[pick % FLAGS];
    return draw_any_address();
}

static void write_value(void) {
    uint64_t value;
    CUdeviceptr address = write_address(&value);
    if (byte() & 1)
        cuStreamWriteValue64_v2(STREAM(), address, value, byte() < 0xf0 ? 0 : byte());
    else
        cuStreamWriteValue32_v2(STREAM(), address, (cuuint32_t)value, byte() < 0xf0 ? 0 : byte());
}

CUstreamBatchMemOpParams draw_memory_operation(void) {
    static const CUstreamBatchMemOpType types[] = {
        CU_STREAM_MEM_OP_WAIT_VALUE_32, CU_STREAM_MEM_OP_WRITE_VALUE_32,
        CU_STREAM_MEM_OP_WAIT_VALUE_64, CU_STREAM_MEM_OP_WRITE_VALUE_64,
        CU_STREAM_MEM_OP_BARRIER,       CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES,
    };
    CUstreamBatchMemOpParams entry = {0};
    unsigned pick = byte();
    entry.operation = pick < 0xf8 ? types[pick % 6] : (CUstreamBatchMemOpType)0x77;
    bool wide = entry.operation == CU_STREAM_MEM_OP_WAIT_VALUE_64;
    if (wide || entry.operation == CU_STREAM_MEM_OP_WAIT_VALUE_32) {
        struct wait wait = draw_wait(wide ? 8 : 4);
        entry.waitValue.address = wait.address;
        entry.waitValue.value64 = wait.value;
        entry.waitValue.flags = wait.flags;
    } else {
        uint64_t value;
        entry.writeValue.address = write_address(&value);
        entry.writeValue.value64 = value;
        entry.writeValue.flags = byte() < 0xf0 ? 0 : byte();
    }
    return entry;
}

static void batch(void) {
    CUstreamBatchMemOpParams entries[6];
    for (unsigned i = 0; i < 6; i++)
        entries[i] = draw_memory_operation();
    cuStreamBatchMemOp_v2(STREAM(), byte() % 7, maybe(entries), byte() < 0xf0 ? 0 : byte());
}

static const call_fn list[] = {
    stream_create,     stream_create,      stream_destroy,
    stream_query,      stream_synchronize, stream_wait_event,
    stream_questions,  stream_attributes,  event_create,
    event_destroy,     event_record,       event_query,
    event_synchronize, event_elapsed,      launch_host_function,
    wait_value,        write_value,        batch,
};
const struct calls stream_calls = {list, sizeof list / sizeof list[0]};
