/* Whole or nothing, for memory that the program has already, and for pinning ahead of need. */
#include "library_sweeps.h"

#include <sys/mman.h>

#define ROOM ((size_t)512 << 20)

/* Each act has memory of its own: what the driver would not unpin stays pinned. */
static unsigned char *memory;
static size_t used;

static int register_and_free(void *user) {
    gpumem_buffer *buffer = NULL;
    (void)user;
    gpumem_status status = gpumem_buffer_register(device, memory + used, MIB, NULL, &buffer);
    used += MIB;
    if (status == GPUMEM_OK)
        status = gpumem_buffer_free(buffer, NULL);
    return (int)status;
}

static void registering(void **state) {
    (void)state;
    memory = mmap(NULL, ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(memory, MAP_FAILED);
    sweep_act("register and free", register_and_free, NULL, NULL);
    assert_true(used <= ROOM);
}

/* In a thread of the library, whose calls come or not before the end: no sweep, which counts them.
 */
static int warm_up(void *user) {
    gpumem_resource *pinned = NULL;
    (void)user;
    gpumem_status status = gpumem_pinned_resource_create(
        device, GPUMEM_PINNED_OPTIONS(.slab_bytes = 2 * MIB), &pinned);
    if (status != GPUMEM_OK)
        return (int)status;
    status = gpumem_pinned_warm_up(pinned, 2 * MIB);
    gpumem_status ended = gpumem_resource_destroy(pinned);
    return (int)(status == GPUMEM_OK ? ended : status);
}

static int ask(void *user) {
    gpumem_pinned_info info = {.size = sizeof info};
    return (int)gpumem_pinned_get_info(user, &info);
}

static void what_is_known(void **state) {
    (void)state;
    gpumem_resource *pinned;
    OK(gpumem_pinned_resource_create(device, NULL, &pinned));
    sweep_act("what a pinned resource has settled on", ask, NULL, pinned);
    OK(gpumem_resource_destroy(pinned));
}

static void warming_up(void **state) {
    (void)state;
    assert_int_equal(warm_up(NULL), GPUMEM_OK);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(registering),
        cmocka_unit_test(what_is_known),
        cmocka_unit_test(warming_up),
    };
    return cmocka_run_group_tests(tests, begin_sweeps, end_sweeps);
}
