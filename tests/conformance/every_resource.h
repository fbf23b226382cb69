/*
 * The program of one device: each property of each kind of resource is a test. Header only, as
 * library.h is; the programs differ in the device.
 */
#ifndef CONFORMANCE_EVERY_RESOURCE_H
#define CONFORMANCE_EVERY_RESOURCE_H

#include "resource_properties.h"

struct case_of {
    const struct kind *kind;
    const struct property *property;
    char name[96];
};

static struct case_of cases[COUNT(kinds) * COUNT(properties)];
static int ordinal; /* of the device */

static inline void end_stack(struct stack *stack) {
    while (stack->count)
        OK(gpumem_resource_destroy(stack->resources[--stack->count]));
}

/* What a driver makes of its own with the first of a kind, and keeps, is there before it counts. */
static inline void make_each_once(void) {
    for (size_t i = 0; i < COUNT(kinds); i++) {
        struct stack stack = {.count = 0};
        (void)kinds[i].make(&stack, kinds[i].which);
        end_stack(&stack);
    }
}

/* A driver's table takes long to fill, so one library serves all. */
static inline int open_once(void) {
    if (library)
        return 0;
    gpumem_open_options options = {.size = sizeof options, .driver = driver_info(driver).path};
    OK(gpumem_open(&options, &library));
    if (ordinal < device_count)
        OK(gpumem_device_open(library, ordinal, &device));
    check_rows();
    if (device)
        make_each_once();
    return 0;
}

static inline int begin_case(void **state) {
    return open_once() == 0 ? test_begin(state) : -1;
}

static inline void begin_scene(struct scene *s) {
    OK_CU(cu.cuCtxSetCurrent(gpumem_device_context(device)));
    OK(gpumem_stream_create(device, NULL, &s->stream));
    OK(gpumem_stream_create(device, NULL, &s->other));
    void *seen = MADE_CU(void *, cuMemHostAlloc, SEEN, CU_MEMHOSTALLOC_PORTABLE);
    s->seen = seen;
    s->is.size = sizeof s->is;
    s->resource = top_of(&s->stack);
    OK(gpumem_resource_get_properties(s->resource, &s->is));
}

/* Frees that waited are there before anything that they used ends. */
static inline void end_scene(struct scene *s) {
    OK(gpumem_stream_synchronize(device, s->stream));
    OK(gpumem_stream_synchronize(device, s->other));
    OK(gpumem_device_trim(device, 1));
    end_stack(&s->stack);
    DESTROY(s->stream, s->other);
    OK_CU(cu.cuMemFreeHost(s->seen));
    OK_CU(cu.cuCtxSynchronize()); /* where the driver's own pools give back what they do not keep */
}

static inline void run_case(void **state) {
    const struct case_of *one = *state;
    if (!device)
        SKIP("there is no device %d", ordinal);
    NEEDS_DEVICES(one->property->devices);
    struct scene scene = {.kind = one->kind, .before = device_stats()};
    if (one->kind->make(&scene.stack, one->kind->which) != GPUMEM_OK) {
        char reason[192];
        snprintf(reason, sizeof reason, "%s", gpumem_last_error()->message);
        end_stack(&scene.stack);
        assert_true(strlen(reason) >= 10);
        SKIP("no such resource here: %s", reason);
    }
    begin_scene(&scene);
    one->property->check(&scene);
    end_scene(&scene);
}

TEST_WITH(all_memory_is_released_at_the_end, NULL, NULL) {
    open_once();
    if (device) {
        MEMBERS(device_stats(), (quarantined, 0), (committed_bytes, 0));
        OK(gpumem_device_close(device));
    }
    OK(gpumem_close(library));
}

/* A test for each property of each kind; ordinals above 0 are other devices. */
static inline int add_every_resource(int on_device) {
    static struct test_case tests[COUNT(cases)];
    size_t count = 0;
    ordinal = on_device;
    for (size_t i = 0; i < COUNT(kinds); i++)
        for (size_t j = 0; j < COUNT(properties); j++, count++) {
            struct case_of *one = &cases[count];
            one->kind = &kinds[i];
            one->property = &properties[j];
            snprintf(one->name, sizeof one->name, "%s: %s", kinds[i].name, properties[j].name);
            tests[count] = (struct test_case){.name = one->name,
                                              .file = __BASE_FILE__,
                                              .place = (int)count - (int)COUNT(cases),
                                              .run = run_case,
                                              .setup = begin_case,
                                              .teardown = test_end,
                                              .own_fixtures = true,
                                              .state = one};
            test_add(&tests[count]);
        }
    return 0;
}

#endif
