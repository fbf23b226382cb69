/* Streams that wait for each other by events, and a chain of programmatic launches. */
#include "base/program.h"

#define COUNT_OF 4099u
#define THREADS  128u
#define STREAMS  4u
#define CHAIN    24u

static const unsigned count = COUNT_OF;
static const size_t bytes = COUNT_OF * sizeof(uint32_t);

static struct shape shape_on(CUstream stream) {
    return SHAPE((COUNT_OF + THREADS - 1) / THREADS, THREADS, .stream = stream);
}

/* In each round every stream mixes what its neighbour had in the round before. */
static void by_events(CUstream *streams, unsigned rounds) {
    static uint32_t host[2][STREAMS][COUNT_OF], got[COUNT_OF];
    CUdeviceptr values[2][STREAMS];
    CUevent done[STREAMS];
    for (unsigned i = 0; i < STREAMS; i++) {
        unsigned seed = 2 * i + 3;
        OK(cu.cuEventCreate(&done[i], CU_EVENT_DISABLE_TIMING));
        values[0][i] = device_new(bytes);
        values[1][i] = device_new(bytes);
        LAUNCH("fill", shape_on(streams[i]), &values[0][i], (void *)&count, &seed);
        OK(cu.cuEventRecord(done[i], streams[i]));
        for (unsigned j = 0; j < COUNT_OF; j++)
            host[0][i][j] = (j + 1) * seed;
    }
    for (unsigned round = 0; round < rounds; round++) {
        unsigned from = round % 2, to = 1 - from;
        for (unsigned i = 0; i < STREAMS; i++)
            for (unsigned j = 0; j < STREAMS; j++)
                OK(cu.cuStreamWaitEvent(streams[i], done[j], 0));
        for (unsigned i = 0; i < STREAMS; i++) {
            unsigned other = (i + 1) % STREAMS;
            OK(cu.cuMemcpyDtoDAsync_v2(values[to][i], values[from][i], bytes, streams[i]));
            LAUNCH("mix", shape_on(streams[i]), &values[to][i], &values[from][other],
                   (void *)&count);
            OK(cu.cuEventRecord(done[i], streams[i]));
            for (unsigned j = 0; j < COUNT_OF; j++)
                host[to][i][j] = host[from][i][j] * 31 + host[from][other][COUNT_OF - 1 - j];
        }
    }
    for (unsigned i = 0; i < STREAMS; i++) {
        OK(cu.cuStreamSynchronize(streams[i]));
        device_read(got, values[rounds % 2][i], bytes);
        expect_equal("mixed", got, host[rounds % 2][i], bytes);
        OK(cu.cuEventDestroy_v2(done[i]));
    }
    checksum("mixed", got, bytes);
}

static void chain(CUstream stream) {
    static uint32_t host[COUNT_OF], got[COUNT_OF], marks[CHAIN], marked[CHAIN];
    CUdeviceptr values = device_new(bytes), words = device_new(sizeof marks);
    CUlaunchAttribute early = {.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
                               .value.programmaticStreamSerializationAllowed = 1};
    for (unsigned step = 0; step < CHAIN; step++) {
        LAUNCH_WITH(early, "link_of_chain", shape_on(stream), &values, &words, (void *)&count,
                    &step);
        marks[step] = step + 1;
        for (unsigned i = 0; i < COUNT_OF; i++)
            host[i] = host[i] * 5 + step;
    }
    OK(cu.cuStreamSynchronize(stream));
    device_read(got, values, bytes);
    device_read(marked, words, sizeof marked);
    expect_equal("chain", got, host, bytes);
    expect_equal("marks", marked, marks, sizeof marks);
    checksum("chain", got, bytes);
}

PROGRAM("streams") {
    CUstream streams[STREAMS];
    for (unsigned i = 0; i < STREAMS; i++)
        OK(cu.cuStreamCreate(&streams[i], CU_STREAM_NON_BLOCKING));
    by_events(streams, 10 * program_scale(50));
    chain(streams[0]);
    for (unsigned i = 0; i < STREAMS; i++)
        OK(cu.cuStreamDestroy_v2(streams[i]));
}
