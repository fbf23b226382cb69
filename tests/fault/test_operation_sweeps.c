/*
 * Sweeps over what the others leave out, so that none of the public operations is without one:
 * plain copies in each form, streams and events, questions, uses, ends of objects, closing.
 */
#include "library_sweeps.h"

#include <gpumem/dlpack_abi.h>
#include <gpumem/managed.h>
#include <gpumem/virtual.h>
#include <gpumem/vmm.h>

static gpumem_resource *memory;
static gpumem_buffer *a, *b, *made; /* 2 MiB each */
static CUstream stream;
static unsigned char host[4096];

/* ---- Copies ---------------------------------------------------------------------------------- */

static const gpumem_rows rows = {.width = 16, .count = 4, .to_pitch = 32, .from_pitch = 64};

static int copy_from_the_host(void *user) {
    memset(host, 0x21, sizeof host);
    TRY(gpumem_buffer_write(a, 0, host, sizeof host, stream));
    TRY(write_now(a, 0, host, sizeof host, stream));
    return (int)gpumem_buffer_write_2d(a, KIB, host, &rows, stream);
}

static int copy_to_the_host(void *user) {
    gpumem_status status = gpumem_buffer_read(a, 0, host, sizeof host, stream);
    AND_THEN(status, read_now(a, 0, host, sizeof host, stream));
    AND_THEN(status, gpumem_buffer_read_2d(a, KIB, host, &rows, stream));
    if (status == GPUMEM_OK)
        assert_int_equal(host[sizeof host - 1], 0x21);
    return (int)status;
}

static int copy_between_buffers(void *user) {
    gpumem_status status = gpumem_buffer_copy(b, 0, a, 0, MIB, stream);
    return (int)(status != GPUMEM_OK ? status : fill_now(b, 0, KIB, 1, stream));
}

static int fill_and_copy_many(void *user) {
    const gpumem_buffer_copy_item items[] = {{b, 0, a, 0, KIB}, {b, KIB, a, 0, KIB}};
    const uint16_t pattern = 0x0102;
    TRY(gpumem_buffer_fill_pattern(b, 0, KIB, &pattern, sizeof pattern, stream));
    TRY(gpumem_buffer_copy_2d(b, 0, a, 0, &rows, stream));
    return (int)gpumem_buffer_copy_batch(items, COUNT(items), stream, NULL);
}

TEST(plain_copies_are_all_or_nothing) {
    sweep_act("copy from the host", copy_from_the_host, NULL, NULL);
    sweep_act("copy to the host", copy_to_the_host, NULL, NULL);
    sweep_act("copy between buffers", copy_between_buffers, NULL, NULL);
    sweep_act("copy between addresses", fill_and_copy_many, NULL, NULL);
}

/* ---- Streams and events ---------------------------------------------------------------------- */

static CUstream one_stream;
static CUevent events[2];

/* What could not be ended is ended in a second try; what had its effect is gone already. */
static void end_stream(void *user) {
    settle(user);
    if (one_stream)
        (void)gpumem_stream_destroy(device, one_stream);
    one_stream = NULL;
    settle(user);
}

static int make_and_end_stream(void *user) {
    one_stream = NULL;
    int result = (int)gpumem_stream_create(device, NULL, &one_stream);
    if (!result)
        result = (int)gpumem_stream_destroy(device, one_stream);
    if (!result)
        one_stream = NULL;
    return result;
}

static void end_events(void *user) {
    settle(user);
    for (size_t i = 0; i < COUNT(events); i++) {
        if (events[i])
            (void)gpumem_event_destroy(device, events[i]);
        events[i] = NULL;
    }
    settle(user);
}

static int make_and_end_event(void *user) {
    events[0] = NULL;
    int result = (int)gpumem_event_create(device, NULL, &events[0]);
    if (!result)
        result = (int)gpumem_event_destroy(device, events[0]);
    if (!result)
        events[0] = NULL;
    return result;
}

static int time_events(void *user) {
    float milliseconds = -1;
    bool done = 0;
    events[0] = events[1] = NULL;
    gpumem_status status = GPUMEM_OK;
    for (size_t i = 0; i < COUNT(events) && status == GPUMEM_OK; i++) {
        status = gpumem_event_create(device, GPUMEM_EVENT_OPTIONS(.timing = 1), &events[i]);
        AND_THEN(status, gpumem_event_record(device, events[i], stream));
    }
    AND_THEN(status, gpumem_stream_wait_event(device, NULL, events[0]));
    AND_THEN(status, gpumem_stream_synchronize(device, stream));
    AND_THEN(status, gpumem_event_synchronize(device, events[1]));
    AND_THEN(status, gpumem_stream_query(device, stream, &done));
    AND_THEN(status, gpumem_event_query(device, events[0], &done));
    AND_THEN(status, gpumem_event_elapsed(device, events[0], events[1], &milliseconds));
    return (int)status;
}

TEST(stream_and_event_calls_are_all_or_nothing) {
    SWEEP(.name = "make and end a stream", .act = make_and_end_stream, .recover = end_stream,
          .undo = end_stream, .may_succeed = true);
    SWEEP(.name = "make and end an event", .act = make_and_end_event, .recover = end_events,
          .undo = end_events, .may_succeed = true);
    SWEEP(.name = "record, ask, wait and time", .act = time_events, .recover = end_events,
          .undo = end_events, .may_succeed = true);
}

/* ---- Questions ------------------------------------------------------------------------------- */

static int ask_about_the_device(void *user) {
    gpumem_device_info info = {.size = sizeof info};
    uint64_t left, all;
    size_t granularity;
    bool can;
    TRY(gpumem_device_get_info(library, 0, &info));
    TRY(gpumem_device_get_memory(device, &left, &all));
    TRY(gpumem_device_can_access_peer(device, 1, &can));
    return (int)gpumem_physical_granularity(device, NULL, GPUMEM_GRANULARITY_MINIMUM, &granularity);
}

static int open_by_uuid(void *user) {
    static gpumem_device_info info;
    gpumem_device *again = NULL;
    if (info.size == 0) {
        info.size = sizeof info;
        OK(gpumem_device_get_info(library, 1, &info));
    }
    int result = (int)gpumem_device_open_uuid(library, info.uuid, &again);
    if (!result)
        OK(gpumem_device_close(again));
    return result;
}

/* Through a device that was not asked before, since answers are remembered. What cannot be asked is
 * a 'no', with a reason. */
static int ask_for_capabilities(void *user) {
    gpumem_device *asked = NULL;
    gpumem_status status = gpumem_device_open(library, 1, &asked);
    for (int i = 0; i < GPUMEM_CAPABILITY_COUNT && status == GPUMEM_OK; i++) {
        gpumem_capability_report report = {.size = sizeof report};
        status = gpumem_device_get_capability(asked, (gpumem_capability)i, &report);
        assert_true(status != GPUMEM_OK || report.supported || report.reason[0]);
    }
    if (asked)
        OK(gpumem_device_close(asked));
    return (int)status;
}

static int count_what_is_held(void *user) {
    gpumem_stats stats = {.size = sizeof stats};
    gpumem_status status = gpumem_resource_get_stats(memory, &stats);
    AND_THEN(status, gpumem_device_get_stats(device, &stats));
    return (int)(status != GPUMEM_OK ? status : gpumem_library_get_stats(library, &stats));
}

TEST(failed_queries_leak_nothing) {
    gpumem_resource *pool, *own = memory;
    sweep_act("ask about the device", ask_about_the_device, NULL, NULL);
    sweep_act("open a device by its UUID", open_by_uuid, NULL, NULL);
    sweep_act("ask for capabilities", ask_for_capabilities, NULL, NULL);
    /* Of a pool of one's own the driver is asked. */
    pool = NEW_POOL(.pool = GPUMEM_POOL_OWN);
    memory = pool;
    sweep_act("statistics", count_what_is_held, NULL, NULL);
    memory = own;
    OK(gpumem_resource_destroy(pool));
}

/* ---- Buffers --------------------------------------------------------------------------------- */

static int use_and_free(void *user) {
    gpumem_buffer *buffer;
    gpumem_status status = gpumem_buffer_allocate(memory, KIB, NULL, &buffer);
    if (status != GPUMEM_OK)
        return (int)status;
    status = gpumem_buffer_use(buffer, stream);
    OK(gpumem_buffer_free(buffer, NULL));
    return (int)status;
}

/* Who lets go last ends it. */
static int free_what_is_held(void *user) {
    gpumem_buffer *buffer;
    gpumem_export *exported = NULL;
    gpumem_status status = gpumem_buffer_allocate(memory, KIB, NULL, &buffer);
    if (status != GPUMEM_OK)
        return (int)status;
    OK(gpumem_buffer_hold(buffer));
    OK(gpumem_buffer_free(buffer, stream));
    OK(gpumem_buffer_release(buffer));
    status = gpumem_buffer_allocate(memory, KIB, NULL, &buffer);
    if (status != GPUMEM_OK)
        return (int)status;
    status = gpumem_export_create(buffer, &exported);
    OK(gpumem_buffer_free(buffer, stream));
    OK(gpumem_export_destroy(exported));
    return (int)status;
}

static int tensor_and_back(void *user) {
    DLManagedTensor *tensor = NULL;
    gpumem_status status =
        gpumem_buffer_to_dlpack_unversioned(a, GPUMEM_DLPACK_OPTIONS(.stream = stream), &tensor);
    if (status != GPUMEM_OK)
        return (int)status;
    status = gpumem_buffer_from_dlpack_unversioned(device, tensor, NULL, &made);
    if (status != GPUMEM_OK)
        tensor->deleter(tensor); /* it is still ours */
    else
        OK(gpumem_buffer_free(made, NULL));
    return (int)status;
}

static int give_to_peers(void *user) {
    return (int)gpumem_resource_set_access(memory, 1, GPUMEM_ACCESS_READ);
}

static void take_from_peers(void *user) {
    OK(gpumem_resource_set_access(memory, 1, GPUMEM_ACCESS_NONE));
    settle(user);
}

static int create_managed(void *user) {
    gpumem_resource *managed;
    int result = (int)gpumem_managed_resource_create(device, NULL, &managed);
    if (!result)
        OK(gpumem_resource_destroy(managed));
    return result;
}

/* The device's list of frees has one that waits for its stream. */
static int free_and_trim(void *user) {
    int result = use_and_free(user);
    return result ? result : (int)gpumem_device_trim(device, 1);
}

TEST(using_and_freeing_a_buffer_is_all_or_nothing) {
    sweep_act("use a buffer and free it", use_and_free, NULL, NULL);
    sweep_act("let go of what was freed", free_what_is_held, NULL, NULL);
    sweep_act("an old tensor and back", tensor_and_back, NULL, NULL);
    FAILS(INVALID_ARGUMENT, gpumem_buffer_release(a)); /* nobody holds it */
    sweep_act("give access to peers", give_to_peers, take_from_peers, NULL);
    sweep_act("create a managed resource", create_managed, NULL, NULL);
    sweep_act("free and trim", free_and_trim, NULL, NULL);
}

/* ---- Memory by hand -------------------------------------------------------------------------- */

static gpumem_reservation *range;
static gpumem_physical *physical;
static gpumem_mapping *mapping;

/* Ends what there is, as far as it goes: what is refused is counted as lost. */
static int end_all(void) {
    gpumem_status status = gpumem_mapping_destroy(mapping);
    if (status == GPUMEM_OK) {
        mapping = NULL;
        status = gpumem_physical_destroy(physical);
    }
    if (status == GPUMEM_OK) {
        physical = NULL;
        status = gpumem_reservation_destroy(range);
    }
    if (status == GPUMEM_OK)
        range = NULL;
    return (int)status;
}

static int map_ask_and_end(void *user) {
    gpumem_access access;
    gpumem_status status = gpumem_reservation_create(device, 4 * MIB, NULL, &range);
    AND_THEN(status, gpumem_physical_create(device, 2 * MIB, NULL, &physical));
    AND_THEN(status, gpumem_mapping_create(range, 0, physical, &mapping));
    AND_THEN(status, gpumem_mapping_get_access(mapping, 0, &access));
    int ended = end_all();
    return status != GPUMEM_OK ? (int)status : ended;
}

static void end_the_rest(void *user) {
    settle(user);
    (void)end_all();
    settle(user);
}

TEST_IS(low_level_memory_calls_are_all_or_nothing,
        SWEEP(.name = "map, ask and end", .act = map_ask_and_end, .recover = end_the_rest,
              .undo = end_the_rest, .may_succeed = true));

/* ---- The program ----------------------------------------------------------------------------- */

/* softgpu makes the file behind memory that is not shared with the first of it on a device, and
 * keeps it. */
static void make_device_memory_file(int ordinal) {
    gpumem_device *of = MADE(gpumem_device *, gpumem_device_open, library, ordinal);
    OK(gpumem_physical_create(
        of, 2 * MIB, GPUMEM_PHYSICAL_OPTIONS(.handle_type = GPUMEM_HANDLE_NONE), &physical));
    OK(gpumem_physical_destroy(physical));
    OK(gpumem_device_close(of));
    physical = NULL;
}

static int begin(void **state) {
    setenv("SOFTGPU_DEVICES", "2", 1);
    if (begin_sweeps(state) != 0)
        return -1;
    make_device_memory_file(0);
    make_device_memory_file(1);
    memory = NEW_VIRTUAL();
    a = NEW_BUFFER(memory, 2 * MIB);
    b = NEW_BUFFER(memory, 2 * MIB);
    stream = NEW_STREAM();
    made = NEW_VIEW(a, 0, 1); /* what the device makes once is made */
    OK(gpumem_buffer_free(made, NULL));
    return 0;
}

static int end(void **state) {
    DESTROY(a, b);
    settle(NULL);
    OK(gpumem_stream_destroy(device, stream));
    (void)gpumem_resource_destroy(memory);
    return end_sweeps(state);
}

ALL_TESTS(begin, end);
