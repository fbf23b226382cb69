/* Whole or nothing, for memory that the program has already, and for pinning ahead of need. */
#include "library_sweeps.h"

#include <stdatomic.h>
#include <sys/mman.h>

ALL_TESTS(begin_sweeps, end_sweeps);

#define ROOM ((size_t)512 << 20)

/* Each act has memory of its own: what the driver would not unpin stays pinned. */
static unsigned char *memory;
static size_t used;

static int register_and_free(void *user) {
    gpumem_buffer *buffer = NULL;
    gpumem_status status = gpumem_buffer_register(device, memory + used, MIB, NULL, &buffer);
    used += MIB;
    AND_THEN(status, gpumem_buffer_free(buffer, NULL));
    return (int)status;
}

TEST(registering_host_memory_is_all_or_nothing) {
    memory = mmap(NULL, ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(memory, MAP_FAILED);
    sweep_act("register and free", register_and_free, NULL, NULL);
    assert_true(used <= ROOM);
}

static int ask(void *user) {
    gpumem_pinned_info info = {.size = sizeof info};
    return (int)gpumem_pinned_get_info(user, &info);
}

TEST(a_failed_query_of_pinned_settings_leaks_nothing) {
    gpumem_resource *pinned = NEW_PINNED();
    sweep_act("what a pinned resource has settled on", ask, NULL, pinned);
    OK(gpumem_resource_destroy(pinned));
}

/* ---- Ahead of need, in a thread of the library ----------------------------------------------- */

static atomic_int warned;

static void hear(void *user, gpumem_log_level level, const char *text) {
    if (strstr(text, "pinning ahead ended"))
        atomic_store(&warned, 1);
}

/* Waits for what was asked for, or for the word that it does not come, without a driver call; and
 * by the resource's end for the thread. */
static int warm_up(void *user) {
    gpumem_resource *pinned = NULL;
    gpumem_status status = gpumem_pinned_resource_create(
        device, GPUMEM_PINNED_OPTIONS(.slab_bytes = 2 * MIB), &pinned);
    if (status != GPUMEM_OK)
        return (int)status;
    const uint64_t wanted = device_stats().pinned_bytes + 2 * MIB;
    atomic_store(&warned, 0);
    status = gpumem_pinned_warm_up(pinned, 2 * MIB);
    while (status == GPUMEM_OK && !atomic_load(&warned) && device_stats().pinned_bytes < wanted)
        usleep(100);
    if (status == GPUMEM_OK && atomic_load(&warned))
        status = GPUMEM_ERROR_DRIVER;
    gpumem_status ended = gpumem_resource_destroy(pinned);
    return (int)(status == GPUMEM_OK ? ended : status);
}

TEST(warming_up_pinned_memory_is_all_or_nothing) {
    gpumem_set_log(hear, NULL, GPUMEM_LOG_WARNING);
    sweep_act("pinned warm-up", warm_up, NULL, NULL);
    gpumem_set_log(NULL, NULL, GPUMEM_LOG_WARNING);
}
