/* Sixteen threads on one mapped resource, by each method: allocating, writing, reading, growing and
 * freeing, through buffers, parts of them and views for the CPU. */
#include "vulkan_test.h"

#include <pthread.h>

EACH_TEST(start_with_icd, NULL);

#define THREADS 16
#define ROUNDS  8

struct group {
    gpumem_resource *mapped, *small, *plain;
    bool grows;
};

struct worker {
    struct group *group;
    pthread_t thread;
    unsigned number;
};

static unsigned char value(const struct worker *w, int round, size_t i) {
    return (unsigned char)(w->number * 31 + (unsigned)round * 7 + i / 61);
}

static void check_bytes(const struct worker *w, int round, const unsigned char *bytes, size_t at,
                        size_t count) {
    for (size_t i = 0; i < count; i++)
        if (bytes[i] != value(w, round, at + i))
            fail_msg("thread %u reads %d at %zu, not %d", w->number, bytes[i], at + i,
                     value(w, round, at + i));
}

/* By the library's write, and back by the device; by the device, and back by the library's read. */
static void both_ways(const struct worker *w, gpumem_buffer *buffer, size_t at, size_t count,
                      int round) {
    unsigned char bytes[3000], back[3000];
    for (size_t i = 0; i < count; i++)
        bytes[i] = value(w, round, at + i);
    OK(gpumem_mapped_write(buffer, at, bytes, count));
    OK(read_now(buffer, at, back, count, NULL));
    check_bytes(w, round, back, at, count);
    for (size_t i = 0; i < count; i++)
        bytes[i] = value(w, round + 1, at + i);
    OK(write_now(buffer, at, bytes, count, NULL));
    OK(gpumem_mapped_read(buffer, at, back, count));
    check_bytes(w, round + 1, back, at, count);
}

static void one_that_grows(const struct worker *w, int round) {
    gpumem_buffer *buffer = NEW_BUFFER(w->group->mapped, 2 * MIB);
    both_ways(w, buffer, w->number, 3000, round);
    if (w->group->grows) {
        OK(gpumem_buffer_grow(buffer, 6 * MIB, NULL));
        both_ways(w, buffer, 6 * MIB - 3000, 3000, round);
    }
    gpumem_buffer *part = NEW_VIEW(buffer, 4096, 4096);
    both_ways(w, part, 100, 500, round);
    OK(gpumem_buffer_free(part, NULL));
    if (w->group->grows) {
        OK(gpumem_buffer_shrink(buffer, 2 * MIB, NULL));
        both_ways(w, buffer, 2 * MIB - 100, 100, round);
    }
    OK(gpumem_buffer_free(buffer, NULL));
}

/* Of slabs: the neighbours are other threads'. */
static void small_ones(const struct worker *w, int round) {
    gpumem_buffer *buffers[6];
    for (size_t i = 0; i < COUNT(buffers); i++) {
        buffers[i] = NEW_BUFFER(w->group->small, 40 + 13 * i);
        both_ways(w, buffers[i], 0, 40 + 13 * i, round);
    }
    unsigned char back[200];
    for (size_t i = 0; i < COUNT(buffers); i++) {
        OK(gpumem_mapped_read(buffers[i], 0, back, 40 + 13 * i));
        check_bytes(w, round + 1, back, 0, 40 + 13 * i);
        OK(gpumem_buffer_free(buffers[i], NULL));
    }
}

static void one_with_a_view(const struct worker *w, int round) {
    unsigned char back[3000];
    gpumem_buffer *buffer = NEW_BUFFER(w->group->plain, 2 * MIB);
    gpumem_buffer *view = MADE(gpumem_buffer *, gpumem_buffer_host_view, buffer, NULL);
    OK(gpumem_buffer_grow(buffer, 4 * MIB, NULL));
    unsigned char *host = gpumem_buffer_host_pointer(view);
    size_t at = 2 * MIB - 1500;
    for (size_t i = 0; i < sizeof back; i++)
        host[at + i] = value(w, round, i);
    OK(gpumem_mapped_flush(view, at, sizeof back));
    OK(read_now(buffer, at, back, sizeof back, NULL));
    check_bytes(w, round, back, 0, sizeof back);
    FAILS(BUSY, gpumem_buffer_shrink(buffer, 2 * MIB, NULL));
    DESTROY(view, buffer);
}

static void *work(void *argument) {
    const struct worker *w = argument;
    for (int round = 0; round < ROUNDS; round++) {
        one_that_grows(w, round);
        small_ones(w, round);
        if (w->group->plain && round % 4 == 0)
            one_with_a_view(w, round);
    }
    return NULL;
}

static void run(gpumem_mapped_method method, bool views) {
    struct group group = {.grows = method != GPUMEM_MAPPED_VULKAN_EXPORT};
    struct worker workers[THREADS];
    group.mapped =
        NEW_MAPPED(.method = method, .method_strict = 1, .capacity = group.grows ? 8 * MIB : 0,
                   .maximum_chunk_bytes = 2 * MIB);
    group.small = NEW_CACHING(group.mapped);
    if (views)
        group.plain = NEW_VIRTUAL(.capacity = 8 * MIB, .maximum_chunk_bytes = 2 * MIB);
    for (unsigned i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){.group = &group, .number = i};
        assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(workers[i].thread, NULL);
    DESTROY(group.small, group.mapped);
    if (group.plain)
        OK(gpumem_resource_destroy(group.plain));
    const gpumem_stats stats = device_stats();
    MEMBERS(stats, (allocations, 0), (committed_bytes, 0), (quarantined, 0));
    assert_nothing_left();
}

TEST_IS(sixteen_threads_use_mapped_descriptors, run(GPUMEM_MAPPED_DESCRIPTOR, false));
TEST_IS(sixteen_threads_use_imported_memory, run(GPUMEM_MAPPED_VULKAN_IMPORT, true));

TEST(sixteen_threads_use_non_coherent_imported_memory) {
    setenv("VULKAN_ICD_COHERENT", "no", 1);
    setenv("VULKAN_ICD_ATOM", "256", 1);
    run(GPUMEM_MAPPED_VULKAN_IMPORT, true);
}

TEST(sixteen_threads_use_non_coherent_exported_memory) {
    setenv("VULKAN_ICD_COHERENT", "no", 1);
    run(GPUMEM_MAPPED_VULKAN_EXPORT, false);
}

static int begin(void **state) {
    return open_device(state) != 0 ? -1 : find_icd(state);
}

ALL_TESTS(begin, close_device);
