/* Memory that is at hand is handed out, and taken back, without a call of the driver: not even to
 * see which context is current. */
#include "library_test.h"

EACH_TEST(open_device, close_device);

#define PAIRS 50

static void pairs(gpumem_resource *resource, size_t bytes, size_t alignment, CUstream stream) {
    gpumem_buffer *buffers[PAIRS];
    for (size_t i = 0; i < PAIRS; i++) {
        OK(gpumem_buffer_free(
            NEW_BUFFER_WITH(resource, bytes, .stream = stream, .alignment = alignment), NULL));
        if (bytes <= MIB)
            buffers[i] = NEW_BUFFER_WITH(resource, bytes, .stream = stream);
    }
    if (bytes <= MIB)
        DESTROY_EACH(buffers, PAIRS);
}

static void check_no_call(const char *what, gpumem_resource *resource, size_t bytes,
                          size_t alignment, CUstream stream) {
    pairs(resource, bytes, alignment, stream);
    uint64_t before = soft->call_count(NULL);
    pairs(resource, bytes, alignment, stream);
    uint64_t made = soft->call_count(NULL) - before;
    if (made)
        fail_msg("%s: %llu driver calls for %d times %zu bytes at multiples of %zu", what,
                 (unsigned long long)made, PAIRS, bytes, alignment);
}

static void check_sizes(const char *what, gpumem_resource *resource, CUstream stream) {
    const size_t sizes[] = {100, MIB, 3 * MIB, 48 * MIB}, alignments[] = {1, 4096};
    for (size_t i = 0; i < COUNT(sizes) * COUNT(alignments); i++)
        check_no_call(what, resource, sizes[i / 2], alignments[i % 2], stream);
}

TEST(a_cache_makes_no_driver_call_while_it_has_memory) {
    gpumem_resource *pool = new_own_pool(), *pinned = NEW_PINNED();
    gpumem_resource *cache = NEW_CACHING(pool), *host_cache = NEW_CACHING(pinned);
    CUstream stream = NEW_STREAM();
    check_sizes("on the default stream", cache, NULL);
    check_sizes("on a stream", cache, stream);
    check_sizes("of pinned memory", host_cache, GPUMEM_STREAM_NONE);
    DESTROY(host_cache, cache, pinned, pool, stream);
}

static void ignore(void *user, gpumem_log_level level, const char *text) {
}

static int drop(void *user, const char *text, size_t bytes) {
    return 0;
}

static gpumem_failure_answer give_up(void *user, const gpumem_allocation_failure *failure) {
    return GPUMEM_FAILURE_GIVE_UP;
}

TEST(a_wrapper_makes_no_driver_call_of_its_own) {
    gpumem_resource *pool = new_own_pool(), *cache = NEW_CACHING(pool);
    const struct {
        const char *name;
        gpumem_resource *made;
    } wrappers[] = {
        {"limit", NEW_LIMIT(cache, 8192 * MIB)},
        {"logging", NEW_LOGGING(cache, .fn = ignore)},
        {"trace", NEW_TRACE(cache, .write = drop)},
        {"tracking", NEW_TRACKING(cache, .frames = 1)},
        {"alignment", NEW_ALIGNMENT(cache, .alignment = 256)},
        {"failure", NEW_FAILURE(cache, .fn = give_up)},
        {"fallback", NEW_FALLBACK(cache, pool)},
        {"caching", NEW_CACHING(cache)},
    };
    for (size_t i = 0; i < COUNT(wrappers); i++) {
        check_sizes(wrappers[i].name, wrappers[i].made, NULL);
        DESTROY(wrappers[i].made);
    }
    DESTROY(cache, pool);
}

TEST(freed_ranges_are_handed_out_again_without_a_driver_call) {
    gpumem_resource *kept = NEW_VIRTUAL(.cache_bytes = 256 * MIB, .location = GPUMEM_LOCATION_HOST);
    check_sizes("virtual", kept, GPUMEM_STREAM_NONE);
    DESTROY(kept);
}

TEST(pieces_of_pinned_slabs_are_handed_out_without_a_driver_call) {
    gpumem_resource *pinned = NEW_PINNED();
    check_sizes("pinned", pinned, GPUMEM_STREAM_NONE);
    DESTROY(pinned);
}

TEST(growing_within_memory_that_is_there_makes_no_driver_call) {
    gpumem_resource *grows = NEW_VIRTUAL(.minimum_chunk_bytes = 32 * MIB);
    gpumem_buffer *buffer = NEW_BUFFER_WITH(grows, MIB, .capacity = 64 * MIB);
    uint64_t before = soft->call_count(NULL);
    for (size_t mib = 2; mib <= 32; mib++)
        OK(gpumem_buffer_grow(buffer, mib * MIB, NULL));
    assert_int_equal(soft->call_count(NULL), before);
    DESTROY(buffer, grows);
}
