/* Much at once: a thousand streams, a million queued operations (fewer under ThreadSanitizer, which
 * takes a minute for them). Memory comes back. */
#include "harness.h"

#include <malloc.h>

#define STREAMS    1000
#define PER_STREAM 20

#ifdef GPUMEM_SANITIZE_thread
#define OPERATIONS 100000
#else
#define OPERATIONS 1000000
#endif

/* A sanitizer's allocator answers no such questions, and keeps what is freed. */
#if defined(GPUMEM_SANITIZE_address) || defined(GPUMEM_SANITIZE_thread)
#define MEASURED 0
#else
#define MEASURED 1
#endif

/* What the process has from malloc, in bytes. */
static size_t heap(void) {
    struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
}

TEST(a_thousand_streams_run_concurrently) {
    CUstream *streams = calloc(STREAMS, sizeof *streams);
    CUevent *events = calloc(STREAMS, sizeof *events);
    unsigned char bytes[STREAMS];
    assert_true(streams && events);
    CUdeviceptr memory = new_memory(STREAMS);
    set_bytes(memory, 0, STREAMS);
    for (unsigned i = 0; i < STREAMS; i++) {
        OK_CU(cu.cuStreamCreate(&streams[i], i % 2 ? CU_STREAM_NON_BLOCKING : 0));
        events[i] = new_event();
    }
    /* Each stream sets its byte, and copies on what the stream before it has. */
    for (unsigned i = 0; i < STREAMS; i++) {
        for (unsigned k = 0; k < PER_STREAM; k++)
            OK_CU(cu.cuMemsetD8Async(memory + i, (unsigned char)(i + k), 1, streams[i]));
        if (i > 0)
            OK_CU(cu.cuStreamWaitEvent(streams[i], events[i - 1], 0));
        if (i % 10)
            OK_CU(cu.cuMemcpyDtoDAsync_v2(memory + i, memory + i - 1, 1, streams[i]));
        OK_CU(cu.cuEventRecord(events[i], streams[i]));
    }
    OK_CU(cu.cuCtxSynchronize());
    OK_CU(cu.cuMemcpyDtoH_v2(bytes, memory, STREAMS));
    for (unsigned i = 0; i < STREAMS; i++)
        assert_int_equal(bytes[i], (unsigned char)(i / 10 * 10 + PER_STREAM - 1));
    for (unsigned i = 0; i < STREAMS; i++)
        OK_CU(cu.cuStreamDestroy_v2(streams[i]));
    free(streams);
    free(events);
}

/* Pages that the process holds. */
static size_t resident(void) {
    char text[128] = "";
    size_t all = 0, held = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    assert_non_null(file);
    assert_non_null(fgets(text, sizeof text, file));
    fclose(file);
    assert_int_equal(sscanf(text, "%zu %zu", &all, &held), 2);
    return held;
}

/* Hardware has queues of some thousand entries, and blocks when they are full. */
static void queue_and_drain(CUstream *streams, unsigned count, CUdeviceptr memory) {
    struct gate gate = new_gate();
    size_t before = heap(), pages = resident();
    for (unsigned i = 0; i < count; i++)
        gate_hold(&gate, streams[i]);
    /* Each stream writes bytes of its own: what two of them wrote would be a race. */
    unsigned part = 4096 / count;
    for (unsigned i = 0; i < OPERATIONS; i++)
        OK_CU(cu.cuMemsetD8Async(memory + i % count * part + i / count % part, (unsigned char)i, 1,
                                 streams[i % count]));
    FAILS_CU(NOT_READY, cu.cuStreamQuery(streams[0]));
    size_t each = (heap() - before) / OPERATIONS;
    if (MEASURED) {
        print_message("%zu bytes for each queued operation\n", each);
        assert_in_range(each, 1, 400);
    }
    gate_release(&gate);
    OK_CU(cu.cuCtxSynchronize());
    size_t after = heap();
    malloc_trim(0);
    if (MEASURED) {
        assert_in_range(after, 0, before + 65536);
        assert_in_range(resident(), 0, pages + 4096);
    }
}

static void see_bytes(CUdeviceptr memory) {
    unsigned char bytes[4096];
    OK_CU(cu.cuMemcpyDtoH_v2(bytes, memory, sizeof bytes));
    for (unsigned i = 0; i < sizeof bytes; i++) {
        unsigned last = (OPERATIONS - 1 - i) / 4096 * 4096 + i;
        assert_int_equal(bytes[i], (unsigned char)last);
    }
}

TEST_WHERE(a_million_operations_run_in_one_stream, NEEDS_SOFTGPU("hardware's queues are shorter")) {
    CUdeviceptr memory = new_memory(4096);
    CUstream stream = new_stream();
    queue_and_drain(&stream, 1, memory);
    see_bytes(memory);
}

TEST(a_million_operations_run_in_a_thousand_streams) {
    NEEDS_SOFTGPU("hardware's queues are shorter");
    CUstream *streams = calloc(STREAMS, sizeof *streams);
    assert_non_null(streams);
    CUdeviceptr memory = new_memory(4096);
    for (unsigned i = 0; i < STREAMS; i++)
        OK_CU(cu.cuStreamCreate(&streams[i], i % 2 ? CU_STREAM_NON_BLOCKING : 0));
    queue_and_drain(streams, STREAMS, memory);
    for (unsigned i = 0; i < STREAMS; i++)
        OK_CU(cu.cuStreamDestroy_v2(streams[i]));
    free(streams);
}
