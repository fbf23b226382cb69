/* Where the caching resource places blocks: how much it takes for what is in use. */
#include "library_test.h"

ALL_TESTS(open_device, close_device);

#define STREAMS 9 /* 0 is the first step's */

/* `stream`: 0 to 8; a negative one frees what row -stream - 1 allocated. `times`: so many on
 * successive streams. */
struct step {
    size_t bytes;
    int stream, times;
};

struct scene {
    const char *name;
    struct step steps[8];
    uint64_t most; /* bytes committed at the end */
};

/* Of each, the sum of what is in use, and what its own kind of segment takes. */
static const struct scene scenes[] = {
    {"40 MiB leave a free 800 alone beside a free 40",
     {{40 * MIB, 0, 1},
      {800 * MIB, 0, 1},
      {0, -1, 1},
      {0, -2, 1},
      {40 * MIB, 0, 1},
      {800 * MIB, 0, 1}},
     840 * MIB},
    {"another stream takes the segment that fits best",
     {{80 * MIB, 0, 1},
      {1024 * MIB, 0, 1},
      {0, -1, 1},
      {0, -2, 1},
      {70 * MIB, 1, 1},
      {1024 * MIB, 0, 1}},
     1120 * MIB},
    {"small blocks of eight streams take no large segments",
     {{300 * MIB, 0, 8}, {0, -1, 8}, {4 * KIB, 1, 8}, {300 * MIB, 0, 8}},
     2416 * MIB},
};

static void run(const struct scene *scene, CUstream *streams) {
    gpumem_resource *upstream = NEW_VIRTUAL(.handle_type = GPUMEM_HANDLE_NONE);
    gpumem_resource *cache = NEW_CACHING_WITH(upstream, .idle_bytes = SIZE_MAX);
    gpumem_buffer *buffers[COUNT(scene->steps)][8] = {{NULL}};
    for (size_t i = 0; i < COUNT(scene->steps); i++) {
        const struct step *step = &scene->steps[i];
        for (int k = 0; k < step->times; k++) {
            if (step->stream >= 0) {
                int stream = step->stream + (step->stream ? k : 0);
                buffers[i][k] = allocate_on(cache, step->bytes, streams[stream]);
                continue;
            }
            OK(gpumem_buffer_free(buffers[-step->stream - 1][k], NULL));
            buffers[-step->stream - 1][k] = NULL;
        }
        synchronize(streams[0]);
    }
    if (stats_of(cache).committed_bytes > scene->most)
        fail_msg("%s: %llu bytes committed, not %llu", scene->name,
                 (unsigned long long)stats_of(cache).committed_bytes,
                 (unsigned long long)scene->most);
    for (size_t i = 0; i < COUNT(buffers); i++)
        DESTROY_EACH(buffers[i], COUNT(buffers[i]));
    DESTROY(cache, upstream);
}

TEST(memory_is_placed_where_it_fits_best) {
    CUstream streams[STREAMS];
    for (size_t i = 0; i < STREAMS; i++)
        streams[i] = NEW_STREAM();
    for (size_t i = 0; i < COUNT(scenes); i++)
        run(&scenes[i], streams);
    DESTROY_EACH(streams, STREAMS);
}

/* One small block in what was the largest one of a step: the rest is for others. */
TEST(what_is_reported_free_can_be_had_beside_a_small_block) {
    gpumem_resource *upstream = NEW_VIRTUAL(.handle_type = GPUMEM_HANDLE_NONE);
    gpumem_resource *cache = NEW_CACHING_WITH(upstream, .maximum_bytes = 1024 * MIB);
    DESTROY(allocate_on(cache, 1024 * MIB, NULL));
    gpumem_buffer *small = allocate_on(cache, 4096, NULL);
    gpumem_caching_info info = caching_info_of(cache);
    if (info.largest_free_bytes)
        DESTROY(allocate_on(cache, info.largest_free_bytes, NULL));
    DESTROY(allocate_on(cache, 1000 * MIB, NULL));
    DESTROY(small, cache, upstream);
}
