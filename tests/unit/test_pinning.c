/* Pinned memory in a control group with little room: refused before it is touched, by every
 * resource; and readers of files make do. The group is planted files. */
#include "library_test.h"
#include "planted_files.h"

#include "base/host_memory.h"
#include "load/pump.h"
#include "memory/host/pinning.h"

#include <pthread.h>
#include <stdatomic.h>

static gpumem_resource *resource;

/* So much can be given; 32 MiB of the group are kept besides. */
static void leave(size_t mib) {
    char text[32];
    snprintf(text, sizeof text, "%zu\n", (1000 - 32 - mib) * MIB);
    plant("/sys/fs/cgroup/a/memory.current", text);
}

static int setup(void **state) {
    if (planted_make() != 0 || open_device(state) != 0)
        return -1;
    plant("/proc/meminfo", "MemTotal: 67108864 kB\nMemAvailable: 67108864 kB\n");
    plant("/proc/self/cgroup", "0::/a\n");
    plant("/sys/fs/cgroup/a/memory.max", "1048576000\n"); /* 1000 MiB */
    leave(100);
    gm_host_memory_set_root(planted_root);
    return 0;
}

static int teardown(void **state) {
    gm_host_memory_set_root("");
    return close_device(state) | planted_remove();
}

EACH_TEST(setup, teardown);

static gpumem_status take(size_t mib, gpumem_buffer **buffer) {
    return gpumem_buffer_allocate(resource, mib * MIB, NULL, buffer);
}

static uint64_t pinning_calls(void) {
    return soft->call_count("cuMemHostAlloc") + soft->call_count("cuMemHostRegister_v2") +
           soft->call_count("cuMemAllocFromPoolAsync") + soft->call_count("cuMemCreate");
}

static void refuses_what_the_group_has_not(void) {
    gpumem_buffer *buffer = NULL, *more = NULL;
    leave(100);
    uint64_t before = pinning_calls();
    FAILS(OUT_OF_HOST_MEMORY, take(400, &buffer));
    SAYS("control group can give 104857600 of its limit of 1048576000");
    assert_null(buffer);
    assert_int_equal(pinning_calls(), before);
    OK(take(90, &buffer));
    leave(10);
    FAILS(OUT_OF_HOST_MEMORY, take(20, &more));
    DESTROY(buffer, resource);
}

TEST(slabs_beyond_the_cgroup_limit_are_refused) {
    static const gpumem_pinned_method methods[] = {GPUMEM_PINNED_REGISTERED,
                                                   GPUMEM_PINNED_ALLOCATED};
    for (size_t i = 0; i < COUNT(methods); i++) {
        resource = NEW_PINNED(.method = methods[i], .slab_bytes = 2 * MIB);
        refuses_what_the_group_has_not();
    }
}

TEST(host_pool_memory_beyond_the_cgroup_limit_is_refused) {
    resource = NEW_PINNED(.method = GPUMEM_PINNED_POOL);
    refuses_what_the_group_has_not();
}

TEST(virtual_host_memory_beyond_the_cgroup_limit_is_refused) {
    resource = NEW_VIRTUAL(.location = GPUMEM_LOCATION_HOST);
    refuses_what_the_group_has_not();
}

/* Growth takes more than it needs where it can, and what it needs where it cannot. */
TEST(virtual_host_memory_grows_by_less_near_the_cgroup_limit) {
    resource = NEW_VIRTUAL(.location = GPUMEM_LOCATION_HOST);
    gpumem_buffer *buffer = NEW_BUFFER_WITH(resource, 80 * MIB, .capacity = 400 * MIB);
    leave(4);
    OK(gpumem_buffer_grow(buffer, 82 * MIB, NULL));
    FAILS(OUT_OF_HOST_MEMORY, gpumem_buffer_grow(buffer, 182 * MIB, NULL));
    DESTROY(buffer, resource);
}

TEST(device_memory_ignores_the_cgroup_limit) {
    gpumem_buffer *buffer = NULL;
    leave(0);
    resource = NEW_VIRTUAL();
    OK(take(16, &buffer));
    DESTROY(buffer, resource);
}

TEST(memory_kept_by_a_pool_is_not_counted_again) {
    gpumem_buffer *buffer = NULL;
    resource = NEW_PINNED(.method = GPUMEM_PINNED_POOL, .pool = GPUMEM_POOL_OWN);
    OK(take(64, &buffer));
    OK(gpumem_buffer_free(buffer, NULL));
    synchronize(NULL);
    leave(0);
    OK(take(64, &buffer));
    OK(gpumem_buffer_free(buffer, NULL));
    synchronize(NULL);
    OK(gpumem_resource_destroy(resource));
}

/* ---- Two threads, one rest ------------------------------------------------------------------- */

static atomic_int first_holds, second_has;

static void *second_thread(void *unused) {
    gpumem_status status = gm_pinning_begin(60 * MIB);
    atomic_store(&second_has, atomic_load(&first_holds) ? -1 : status == GPUMEM_OK ? 1 : -2);
    if (status == GPUMEM_OK)
        gm_pinning_end(60 * MIB);
    return NULL;
}

TEST(the_remaining_memory_is_granted_only_once) {
    for (int turn = 0; turn < 50; turn++) {
        pthread_t thread;
        atomic_store(&first_holds, 1);
        OK(gm_pinning_begin(60 * MIB));
        assert_int_equal(pthread_create(&thread, NULL, second_thread, NULL), 0);
        /* What nobody's end could bring is refused at once. */
        FAILS(OUT_OF_HOST_MEMORY, gm_pinning_begin(101 * MIB));
        OK(gm_pinning_begin(30 * MIB));
        gm_pinning_end(30 * MIB);
        atomic_store(&first_holds, 0);
        gm_pinning_end(60 * MIB);
        pthread_join(thread, NULL);
        assert_int_equal(atomic_load(&second_has), 1);
    }
}

/* ---- Readers --------------------------------------------------------------------------------- */

static struct gm_pump fitted(size_t left_mib, size_t more_mib, unsigned threads, size_t fixed) {
    struct gm_pump pump = {.device = device};
    leave(left_mib);
    OK(gm_pump_configure(&pump, GPUMEM_LOAD_OPTIONS(.threads = threads), 900 * MIB, fixed));
    gm_pump_fit(&pump, more_mib * MIB);
    return pump;
}

TEST(file_readers_use_at_most_half_of_the_remaining_memory) {
    struct gm_pump pump = fitted(968, 0, 8, 0);
    MEMBERS(pump, (threads, 8), (chunk, 8 * MIB));
    pump = fitted(256, 0, 8, 0);
    assert_int_equal(pump.threads, 8);
    pump = fitted(255, 0, 8, 0);
    assert_int_equal(pump.threads, 7);
    pump = fitted(255, 155, 8, 0);
    assert_int_equal(pump.threads, 3);
    pump = fitted(32, 0, 8, 0);
    MEMBERS(pump, (threads, 1), (chunk, 8 * MIB));
    pump = fitted(31, 0, 8, 0);
    MEMBERS(pump, (threads, 1), (chunk, 7 * MIB + 768 * KIB));
    /* A checksum is made of chunks of one size. */
    pump = fitted(31, 0, 8, 8 * MIB);
    MEMBERS(pump, (threads, 1), (chunk, 8 * MIB));
    pump = fitted(100, 200, 8, 0);
    MEMBERS(pump, (threads, 1), (chunk, 64 * KIB));
}

TEST(memory_kept_by_the_callers_resource_serves_readers) {
    gpumem_buffer *buffer = NULL;
    resource = NEW_PINNED(.slab_bytes = 48 * MIB);
    OK(take(48, &buffer));
    OK(gpumem_buffer_free(buffer, NULL));
    struct gm_pump pump = {.device = device};
    leave(0);
    OK(gm_pump_configure(&pump, GPUMEM_LOAD_OPTIONS(.threads = 8, .pinned = resource), 900 * MIB,
                         0));
    gm_pump_fit(&pump, 0);
    assert_int_equal(pump.threads, 3);
    OK(gpumem_resource_destroy(resource));
}

TEST(a_file_is_loaded_with_little_remaining_memory) {
    char path[TEMPORARY_ROOM + 8];
    gpumem_buffer *buffer = NULL;
    gpumem_load_report report = {.size = sizeof report};
    uint64_t of_file = 0, of_buffer = 1;
    const gpumem_load_options options = {.size = sizeof options, .threads = 8};
    plant("/f", "begin");
    snprintf(path, sizeof path, "%s/f", planted_root);
    assert_int_equal(truncate(path, 40 * (off_t)MIB), 0);
    leave(80);
    resource = NEW_VIRTUAL();
    OK(gpumem_load_file(resource, path, &options, &buffer, &report));
    assert_int_equal(report.threads, 1); /* (80 - 40) / 2 */
    assert_int_equal(report.pinned_bytes, 16 * MIB);
    OK(gpumem_buffer_checksum(buffer, &options, &of_buffer));
    OK(gpumem_file_checksum(path, &options, &of_file));
    assert_true(of_file == of_buffer);
    OK(gpumem_buffer_free(buffer, NULL));
    leave(0);
    buffer = NULL;
    FAILS(OUT_OF_HOST_MEMORY, gpumem_load_file(resource, path, &options, &buffer, &report));
    assert_null(buffer);
    OK(gpumem_resource_destroy(resource));
}
