/* Memory that callers know by its address and size alone. */
#include "library_test.h"

#include <pthread.h>

ALL_TESTS(open_device, close_device);

static CUdeviceptr allocate(gpumem_resource *resource, size_t bytes, CUstream stream) {
    CUdeviceptr pointer = MADE(CUdeviceptr, gpumem_resource_allocate, resource, bytes,
                               GPUMEM_BUFFER_OPTIONS(.stream = stream));
    assert_int_not_equal(pointer, 0);
    return pointer;
}

TEST(every_resource_allocates_and_frees_by_address) {
    gpumem_resource *resources[6];
    resources[0] = NEW_POOL();
    resources[1] = NEW_PINNED(.method = GPUMEM_PINNED_POOL);
    resources[2] = NEW_PINNED();
    resources[3] = NEW_VIRTUAL();
    gpumem_resource *pool = NEW_POOL();
    resources[4] = NEW_LIMIT(pool, GIB);
    resources[5] = NEW_CACHING(pool);
    for (size_t i = 0; i < COUNT(resources); i++) {
        CUdeviceptr p = allocate(resources[i], 4096, NULL), q = allocate(resources[i], 100, NULL);
        unsigned char back = 0;
        OK(fill_bytes(device, p, 4096, 0x19, NULL));
        OK(copy_bytes(device, q, p + 4000, 96, NULL));
        OK(copy_bytes(device, (CUdeviceptr)(uintptr_t)&back, q + 95, 1, NULL));
        synchronize(NULL);
        assert_int_equal(back, 0x19);
        FAILS(BUSY, gpumem_resource_destroy(resources[i]));
        FAILS(INVALID_ARGUMENT, gpumem_resource_deallocate(resources[i], p, 4095, NULL));
        SAYS("with 4096 bytes, not 4095");
        FAILS(INVALID_ARGUMENT, gpumem_resource_deallocate(resources[i], p + 16, 4096, NULL));
        SAYS("was not allocated from this");
        OK(gpumem_resource_deallocate(resources[i], p, 4096, NULL));
        FAILS(INVALID_ARGUMENT, gpumem_resource_deallocate(resources[i], p, 4096, NULL));
        SAYS("or was freed");
        OK(gpumem_resource_deallocate(resources[i], q, 100, GPUMEM_STREAM_NONE));
        OK(gpumem_resource_deallocate(resources[i], 0, 100, NULL));
        OK(gpumem_resource_destroy(resources[i]));
    }
    OK(gpumem_resource_destroy(pool));
}

TEST(memory_known_by_address_is_found_used_and_freed_without_its_size) {
    gpumem_resource *resource = NEW_VIRTUAL(), *other = NEW_VIRTUAL();
    CUdeviceptr p = allocate(resource, 4096, NULL);
    gpumem_buffer *buffer = NULL;
    OK(gpumem_resource_find(resource, p, &buffer));
    assert_int_equal(gpumem_buffer_pointer(buffer), p);
    assert_int_equal(gpumem_buffer_size(buffer), 4096);
    FAILS_SAYING(INVALID_ARGUMENT, "not allocated", gpumem_resource_find(resource, p + 1, &buffer));
    FAILS(INVALID_ARGUMENT, gpumem_resource_find(other, p, &buffer));
    FAILS(INVALID_ARGUMENT, gpumem_resource_find(resource, p, NULL));
    FAILS(INVALID_ARGUMENT, gpumem_resource_use(resource, p + 1, NULL));
    struct gate gate = gate_with_stream();
    OK(gpumem_resource_use(resource, p, gate.stream));
    OK(gpumem_resource_deallocate(resource, p, 0, NULL));
    assert_int_equal(device_stats().deferred_frees, 1); /* for the stream that was named */
    FAILS(INVALID_ARGUMENT, gpumem_resource_deallocate(resource, p, 0, NULL));
    gate_drain(&gate);
    DESTROY(resource, other);
    gate_remove(&gate);
}

/* Without a stream in the stream of the allocation; with one in that one's. */
TEST(freeing_by_address_uses_the_allocations_stream_by_default) {
    uint64_t reserved = 0;
    gpumem_resource *pool = NEW_POOL(.pool = GPUMEM_POOL_OWN);
    for (int named = 0; named < 2; named++) {
        struct gate gate = gate_with_stream();
        CUdeviceptr p = allocate(pool, MIB, named ? NULL : gate.stream);
        OK(gpumem_resource_deallocate(pool, p, MIB, named ? gate.stream : NULL));
        OK(gpumem_resource_trim(pool, 0));
        OK(gpumem_pool_get_attribute(pool, GPUMEM_POOL_RESERVED_CURRENT, &reserved));
        assert_true(reserved >= MIB); /* the stream has not got there */
        gate_drain(&gate);
        OK(gpumem_resource_trim(pool, 0));
        OK(gpumem_pool_get_attribute(pool, GPUMEM_POOL_RESERVED_CURRENT, &reserved));
        assert_int_equal(reserved, 0);
        gate_remove(&gate);
    }
    OK(gpumem_resource_destroy(pool));
}

#define THREADS 8
#define ROUNDS  3000
#define KEPT    150

/* Many addresses at a time, freed in another order than they came, by several threads. */
static void *churn(void *argument) {
    gpumem_resource *pool = argument;
    CUdeviceptr kept[KEPT] = {0};
    unsigned seed = (unsigned)(uintptr_t)&kept;
    for (int i = 0; i < ROUNDS; i++) {
        size_t at = (size_t)rand_r(&seed) % KEPT, bytes = 256 * (at + 1);
        CUdeviceptr had = kept[at];
        gpumem_status status = had ? gpumem_resource_deallocate(pool, had, bytes, NULL)
                                   : gpumem_resource_allocate(pool, bytes, NULL, &kept[at]);
        if (status != GPUMEM_OK)
            return argument;
        if (had)
            kept[at] = 0;
    }
    for (size_t at = 0; at < KEPT; at++)
        if (kept[at] &&
            gpumem_resource_deallocate(pool, kept[at], 256 * (at + 1), NULL) != GPUMEM_OK)
            return argument;
    return NULL;
}

TEST(threads_allocate_and_free_by_address) {
    pthread_t threads[THREADS];
    gpumem_resource *pool = NEW_POOL(.pool = GPUMEM_POOL_OWN);
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, churn, pool), 0);
    for (size_t i = 0; i < THREADS; i++) {
        void *failed = NULL;
        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
    OK(gpumem_resource_destroy(pool)); /* BUSY if an address had been lost */
}
