/* Mappings of one reservation in random order, held against a model; and threads that map, unmap
 * ranges and give access in the same reservation. */
#include "library_test.h"

#include <pthread.h>
#include <stdatomic.h>

#define PAGE  (2 * MIB)
#define PAGES 24

static gpumem_reservation *range;
static gpumem_physical *memory[4]; /* of 1 to 3 pages */

static int begin(void **state) {
    if (open_device(state) != 0)
        return -1;
    OK(gpumem_reservation_create(device, PAGES * PAGE, NULL, &range));
    for (size_t i = 1; i < 4; i++)
        OK(gpumem_physical_create(device, i * PAGE, NULL, &memory[i]));
    return 0;
}

AFTER(close_device) {
    OK(gpumem_reservation_destroy(range));
    for (size_t i = 1; i < 4; i++)
        OK(gpumem_physical_destroy(memory[i]));
}

EACH_TEST(begin, after);

static unsigned next_random(unsigned *seed) {
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 8;
}

/* ---- A model --------------------------------------------------------------------------------- */

struct place {
    gpumem_mapping *object; /* of the mapping whose first page this is; also when unmapped */
    int owner;              /* first page of what is mapped here, or -1 */
    size_t pages;           /* of the object */
    gpumem_access access;   /* of the page, when it is mapped */
};

static struct place model[PAGES];

/* Is everything in the range whole? And without holes? */
static int whole(size_t at, size_t pages, int *holes) {
    *holes = 0;
    for (size_t i = at; i < at + pages; i++) {
        int owner = model[i].owner;
        if (owner < 0)
            *holes = 1;
        else if ((size_t)owner < at || (size_t)owner + model[owner].pages > at + pages)
            return 0;
    }
    return 1;
}

static void try_map(size_t at, size_t pages) {
    if (model[at].object)
        return;
    int free_place = at + pages <= PAGES;
    for (size_t i = at; i < at + pages && i < PAGES; i++)
        free_place = free_place && model[i].owner < 0;
    gpumem_mapping *made;
    gpumem_status status = gpumem_mapping_create(range, at * PAGE, memory[pages], &made);
    assert_int_equal(status, free_place ? GPUMEM_OK : GPUMEM_ERROR_INVALID_ARGUMENT);
    if (status != GPUMEM_OK)
        return;
    model[at].object = made;
    model[at].pages = pages;
    for (size_t i = at; i < at + pages; i++) {
        model[i].owner = (int)at;
        model[i].access = GPUMEM_ACCESS_NONE;
    }
}

static void try_unmap(size_t at, size_t pages) {
    int holes, fits = whole(at, pages, &holes);
    gpumem_status status = gpumem_reservation_unmap(range, at * PAGE, pages * PAGE);
    assert_int_equal(status, fits ? GPUMEM_OK : GPUMEM_ERROR_INVALID_ARGUMENT);
    for (size_t i = at; i < at + pages && status == GPUMEM_OK; i++)
        model[i].owner = -1;
}

static void try_access(size_t at, size_t pages, gpumem_access access) {
    int holes, fits = whole(at, pages, &holes) && !holes;
    gpumem_status status = gpumem_reservation_set_access(range, at * PAGE, pages * PAGE, 0, access);
    assert_int_equal(status, fits ? GPUMEM_OK : GPUMEM_ERROR_INVALID_ARGUMENT);
    for (size_t i = at; i < at + pages && status == GPUMEM_OK; i++)
        model[i].access = access;
}

static void destroy_at(size_t at) {
    struct place *place = &model[at];
    if (!place->object)
        return;
    OK(gpumem_mapping_destroy(place->object));
    place->object = NULL;
    for (size_t i = at; i < at + place->pages; i++)
        if (model[i].owner == (int)at)
            model[i].owner = -1;
}

static void check_all(void) {
    size_t mapped = 0;
    for (size_t i = 0; i < PAGES; i++) {
        if (!model[i].object)
            continue;
        int is_mapped = model[i].owner == (int)i;
        assert_int_equal(mapping_info(model[i].object).state,
                         is_mapped ? GPUMEM_MAPPING_MAPPED : GPUMEM_MAPPING_UNMAPPED);
        if (!is_mapped)
            continue;
        gpumem_access access = MADE(gpumem_access, gpumem_mapping_get_access, model[i].object, 0);
        assert_int_equal(access, model[i].access);
        mapped++;
    }
    assert_int_equal(device_stats().mappings, mapped);
}

/* An object whose pages were unmapped by a range: another may be mapped over them, and begin at
 * another page. */
TEST(random_mapping_steps_agree_with_a_model) {
    unsigned seed = 1;
    for (size_t i = 0; i < PAGES; i++)
        model[i] = (struct place){.owner = -1};
    for (int step = 0; step < 20000; step++) {
        size_t at = next_random(&seed) % PAGES;
        size_t pages = 1 + next_random(&seed) % (PAGES - at);
        switch (next_random(&seed) % 6) {
        case 0:
            try_unmap(at, pages);
            break;
        case 1:
            try_access(at, pages % 5 + 1 > PAGES - at ? 1 : pages % 5 + 1,
                       (gpumem_access)(next_random(&seed) % 3));
            break;
        case 2:
            destroy_at(at);
            break;
        default:
            try_map(at, 1 + next_random(&seed) % 3);
        }
        if (step % 8 == 0)
            check_all();
    }
    for (size_t i = 0; i < PAGES; i++)
        destroy_at(i);
    assert_int_equal(device_stats().mappings, 0);
}

/* ---- Threads --------------------------------------------------------------------------------- */

#define THREADS 4
#define ROUNDS  300

static atomic_int running;

/* Each has pages of its own; anything may be unmapped meanwhile. */
static void *map_and_destroy(void *argument) {
    size_t first = *(const size_t *)argument * (PAGES / THREADS);
    for (int round = 0; round < ROUNDS; round++) {
        gpumem_mapping *made[3];
        for (size_t i = 0; i < 3; i++)
            if (gpumem_mapping_create(range, (first + i) * PAGE, memory[1], &made[i]) != GPUMEM_OK)
                return argument;
        gpumem_status status = gpumem_reservation_set_access(range, first * PAGE, 3 * PAGE, 0,
                                                             GPUMEM_ACCESS_READ_WRITE);
        if (status != GPUMEM_OK && status != GPUMEM_ERROR_INVALID_ARGUMENT)
            return argument;
        status = mapping_set_access(made[1], 0, GPUMEM_ACCESS_READ);
        if (status == GPUMEM_ERROR_INVALID_ARGUMENT) {
            if (mapping_info(made[1]).state != GPUMEM_MAPPING_UNMAPPED)
                return argument;
        } else if (status != GPUMEM_OK) {
            return argument;
        }
        for (size_t i = 0; i < 3; i++)
            if (gpumem_mapping_destroy(made[i]) != GPUMEM_OK)
                return argument;
    }
    return NULL;
}

static void *unmap_all(void *argument) {
    while (atomic_load(&running))
        if (gpumem_reservation_unmap(range, 0, PAGES * PAGE) != GPUMEM_OK)
            return argument;
    return NULL;
}

TEST(threads_map_and_unmap_in_one_reservation) {
    pthread_t threads[THREADS], unmapper;
    size_t numbers[THREADS];
    void *failed = NULL;
    atomic_store(&running, 1);
    assert_int_equal(pthread_create(&unmapper, NULL, unmap_all, numbers), 0);
    for (size_t i = 0; i < THREADS; i++) {
        numbers[i] = i;
        assert_int_equal(pthread_create(&threads[i], NULL, map_and_destroy, &numbers[i]), 0);
    }
    for (size_t i = 0; i < THREADS; i++) {
        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
    atomic_store(&running, 0);
    pthread_join(unmapper, &failed);
    assert_null(failed);
    assert_int_equal(device_stats().mappings, 0);
}
