/* What an own pool holds is what its driver says, at one moment; what was the highest stays so. */
#include "library_test.h"
#include "run_threads.h"

#include <stdatomic.h>

EACH_TEST(open_device, close_device);

static uint64_t number(gpumem_resource *pool, gpumem_pool_attribute which) {
    uint64_t value = 0;
    OK(gpumem_pool_get_attribute(pool, which, &value));
    return value;
}

static gpumem_stats library_stats(void) {
    gpumem_stats stats = {.size = sizeof stats};
    OK(gpumem_library_get_stats(library, &stats));
    return stats;
}

TEST(the_highest_commitment_does_not_fall_after_a_trim) {
    gpumem_resource *pool = new_own_pool();
    gpumem_buffer *a = NEW_BUFFER(pool, 100 * MIB), *b = NEW_BUFFER(pool, 102 * MIB);
    uint64_t high = number(pool, GPUMEM_POOL_RESERVED_HIGH);
    assert_int_equal(stats_of(pool).committed_bytes, high);
    assert_int_equal(device_stats().committed_high, high);
    assert_int_equal(library_stats().committed_high, high);
    DESTROY(a, b);
    synchronize(NULL);
    for (int reset = 0; reset < 2; reset++) {
        OK(gpumem_resource_trim(pool, 0));
        assert_int_equal(stats_of(pool).committed_bytes, 0);
        assert_int_equal(stats_of(pool).committed_high, high);
        assert_int_equal(device_stats().committed_high, high);
        assert_int_equal(library_stats().committed_high, high);
        OK(gpumem_pool_set_attribute(pool, GPUMEM_POOL_RESERVED_HIGH, 0)); /* the driver's alone */
    }
    OK(gpumem_resource_destroy(pool));
    assert_int_equal(device_stats().committed_high, high);
}

/* Between two looks nobody has asked: the driver knows. */
TEST(the_highest_commitment_of_a_pool_includes_what_nobody_saw) {
    gpumem_resource *pool = new_own_pool();
    OK(gpumem_buffer_free(NEW_BUFFER(pool, 200 * MIB), NULL));
    synchronize(NULL);
    OK(gpumem_resource_trim(pool, 0));
    assert_in_range(stats_of(pool).committed_high, 200 * MIB, 224 * MIB);
    assert_int_equal(stats_of(pool).committed_bytes, 0);
    OK(gpumem_resource_destroy(pool));
}

#define THREADS 3

static void *churn(void *data) {
    for (int i = 0; i < 3000; i++) {
        gpumem_buffer *buffer;
        if (gpumem_buffer_allocate(*(gpumem_resource **)data, 24 * MIB, NULL, &buffer) == GPUMEM_OK)
            OK(gpumem_buffer_free(buffer, NULL));
    }
    return NULL;
}

static void *watch(void *data) {
    gpumem_resource *pool = *(gpumem_resource **)data;
    for (int i = 0; i < 1000; i++) {
        gpumem_stats stats = stats_of(pool);
        assert_true(stats.committed_bytes <= 32 * MIB && stats.committed_high <= 32 * MIB);
        assert_true(stats.cached_bytes + stats.deferred_bytes <= stats.committed_bytes);
    }
    return NULL;
}

static void *churn_or_watch(void *data) {
    static atomic_int watchers;
    return atomic_fetch_add(&watchers, 1) % (THREADS + 1) == 0 ? watch(data) : churn(data);
}

TEST(a_pool_in_use_by_threads_never_shows_more_than_it_may_hold) {
    gpumem_resource *pool = NEW_POOL(.maximum_bytes = 25 * MIB), *pools[THREADS + 1];
    for (size_t i = 0; i < COUNT(pools); i++)
        pools[i] = pool;
    run_threads(COUNT(pools), churn_or_watch, pools, sizeof pools[0]);
    OK(gpumem_resource_destroy(pool));
}

/* ---- Below a cache --------------------------------------------------------------------------- */

static void check_segments(gpumem_resource *below, gpumem_resource *cache) {
    gpumem_caching_info info = caching_info_of(cache);
    gpumem_stats stats = stats_of(below);
    assert_int_equal(stats.allocations, info.segments);
    assert_int_equal(stats.in_use_bytes, info.segment_bytes);
    assert_true(stats.committed_bytes >= stats.in_use_bytes + stats.cached_bytes);
}

/* The pool has handed out segments; the cache's buffers are the cache's, and the device's. */
TEST(what_is_below_a_cache_counts_its_segments) {
    gpumem_resource *pool = new_own_pool(), *limited = NEW_LIMIT(pool, GIB);
    gpumem_resource *cache = NEW_CACHING(limited), *outer = NEW_CACHING(cache);
    gpumem_buffer *own = NEW_BUFFER(limited, MIB), *many[100];
    for (size_t i = 0; i < COUNT(many); i++)
        many[i] = NEW_BUFFER(i % 2 ? cache : outer, 1000 + i * 1000);
    gpumem_caching_info info = caching_info_of(cache);
    assert_true(info.segments > 0);
    gpumem_stats below = stats_of(pool), all = device_stats();
    assert_int_equal(below.allocations, info.segments + 1);
    assert_int_equal(below.in_use_bytes, info.segment_bytes + MIB);
    assert_int_equal(stats_of(limited).in_use_bytes, below.in_use_bytes);
    assert_int_equal(below.allocations_total, info.segments + 1);
    assert_int_equal(all.allocations, COUNT(many) + 1);
    assert_int_equal(all.in_use_bytes, MIB + stats_of(cache).in_use_bytes -
                                           caching_info_of(outer).segment_bytes +
                                           stats_of(outer).in_use_bytes);
    assert_int_equal(all.allocations_total, COUNT(many) + 1);
    DESTROY_EACH(many, COUNT(many));
    OK(gpumem_buffer_free(own, NULL));
    check_segments(pool, cache);
    assert_int_equal(device_stats().allocations, 0);
    assert_int_equal(device_stats().in_use_bytes, 0);
    OK(gpumem_device_trim(device, 1));
    check_segments(pool, cache);
    assert_int_equal(stats_of(pool).allocations, 0);
    DESTROY(outer, cache, limited, pool);
}
