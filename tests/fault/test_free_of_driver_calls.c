/*
 * What promises to make no driver call makes none: each such operation is called, and the calls are
 * counted. There is nothing to sweep in them.
 */
#include "kinds.h"
#include "library_sweeps.h"

#include <gpumem/connect.h>
#include <gpumem/pool.h>
#include <gpumem/pool_interop.h>
#include <gpumem/vmm.h>
#include <gpumem/wrappers.h>
#include <pthread.h>

static gpumem_resource *memory, *pool;
static gpumem_buffer *buffer;

static uint64_t calls_before;

static void begin_count(void) {
    calls_before = soft->call_count(NULL);
}

static void end_count(const char *what, int line) {
    uint64_t made = soft->call_count(NULL) - calls_before;
    if (made == 0)
        return;
    print_error("%s makes %lu driver calls\n", what, (unsigned long)made);
    _fail(__FILE__, line);
}

/* Evaluates an expression, which must be true, and make no driver call. */
#define FREE(expression)                                                                           \
    do {                                                                                           \
        begin_count();                                                                             \
        int right_ = (expression) ? 1 : 0;                                                         \
        end_count(#expression, __LINE__);                                                          \
        assert_true(right_);                                                                       \
    } while (0)
#define FREE_OK(call) FREE((call) == GPUMEM_OK)

TEST(queries_without_an_object_make_no_driver_call) {
    FREE(gpumem_version() > 0);
    FREE(strlen(GPUMEM_VERSION_STRING) > 0);
    FREE(strcmp(gpumem_status_name(GPUMEM_OK), "GPUMEM_OK") == 0);
    FREE(strlen(gpumem_status_name(GPUMEM_ERROR_BUSY)) > 0);
    FREE(strlen(gpumem_access_name(GPUMEM_ACCESS_READ)) > 0);
    FREE(strlen(gpumem_handle_type_name(GPUMEM_HANDLE_POSIX_FD)) > 0);
    FREE(strlen(gpumem_location_name(GPUMEM_LOCATION_DEVICE)) > 0);
    FREE(strlen(gpumem_capability_name(GPUMEM_CAPABILITY_DMA_BUF)) > 0);
    FREE(gpumem_last_error() != NULL);
    FREE(gpumem_set_last_error(GPUMEM_ERROR_DATA, "planted") == GPUMEM_ERROR_DATA);
    FREE_OK(gpumem_set_last_error(GPUMEM_OK, "what is answered is what was given"));
}

TEST(library_and_device_queries_make_no_driver_call) {
    gpumem_library_info info = {.size = sizeof info};
    FREE_OK(gpumem_library_get_info(library, &info));
    assert_true(info.device_count > 0);
    FREE(gpumem_library_driver(library) != NULL);
    FREE(gpumem_device_ordinal(device) == 0);
    FREE(gpumem_device_handle(device) == 0);
    FREE(gpumem_device_context(device) != NULL);
    FREE(gpumem_device_library(device) == library);
}

TEST(buffer_queries_make_no_driver_call) {
    gpumem_buffer *view;
    gpumem_layout layout = {.size = sizeof layout};
    FREE(gpumem_buffer_pointer(buffer) != 0);
    FREE(gpumem_buffer_host_pointer(buffer) == NULL);
    FREE(gpumem_buffer_size(buffer) == 4 * MIB);
    FREE(gpumem_buffer_capacity(buffer) >= 4 * MIB);
    FREE(gpumem_buffer_committed(buffer) >= 4 * MIB);
    FREE(chunks_of(buffer) == 1);
    FREE(gpumem_buffer_device(buffer) == device);
    FREE(gpumem_buffer_resource(buffer) == memory);
    FREE_OK(gpumem_buffer_get_layout(buffer, &layout, NULL, 0));
    FREE_OK(gpumem_buffer_hold(buffer));
    FREE_OK(gpumem_buffer_release(buffer));
    FREE_OK(gpumem_buffer_view(buffer, 0, 1, &view));
    OK(gpumem_buffer_free(view, NULL));
}

static void hear_nothing(void *user, const gpumem_watch_event *event) {
}

TEST(watches_make_no_driver_call) {
    gpumem_watch *of_buffer, *of_resource;
    FREE_OK(gpumem_buffer_watch(buffer, hear_nothing, NULL, &of_buffer));
    FREE_OK(gpumem_resource_watch(memory, hear_nothing, NULL, &of_resource));
    FREE_OK(gpumem_watch_destroy(of_buffer));
    FREE_OK(gpumem_watch_destroy(of_resource));
}

TEST(export_queries_make_no_driver_call) {
    const void *description;
    size_t bytes;
    int fd;
    gpumem_export *exported = NEW_EXPORT(buffer);
    FREE(export_info(exported).bytes == 4 * MIB);
    FREE(export_info(exported).descriptor_count == 1);
    FREE_OK(export_description(exported, &description, &bytes));
    FREE_OK(export_descriptor(exported, 0, &fd));
    FREE_OK(gpumem_export_destroy(exported));
}

TEST(pool_queries_make_no_driver_call) {
    gpumem_pool_info info = {.size = sizeof info};
    gpumem_pool_share_handle handle = {.size = sizeof handle};
    gpumem_resource *mapped, *found;
    FREE_OK(gpumem_pool_get_info(pool, &info));
    OK(gpumem_pool_get_share_handle(pool, &handle));
    OK(gpumem_pool_from_share_handle(device, &handle, &mapped));
    FREE_OK(gpumem_pool_register(mapped, handle.uuid, NULL));
    FREE_OK(gpumem_pool_from_registry(library, handle.uuid, &found));
    assert_ptr_equal(found, mapped);
    OK(gpumem_resource_destroy(mapped));
}

TEST(low_level_memory_queries_make_no_driver_call) {
    gpumem_reservation *range;
    gpumem_physical *physical;
    gpumem_mapping *mapping;
    OK(gpumem_reservation_create(device, 4 * MIB, NULL, &range));
    OK(gpumem_physical_create(device, 2 * MIB, NULL, &physical));
    OK(gpumem_mapping_create(range, 2 * MIB, physical, &mapping));
    FREE(mapping_info(mapping).address == reservation_address(range) + 2 * MIB);
    FREE(mapping_info(mapping).bytes == 2 * MIB);
    FREE(mapping_info(mapping).state == GPUMEM_MAPPING_MAPPED);
    DESTROY(mapping, physical, range);
}

static int visit(void *user, const gpumem_tracked *tracked) {
    ++*(int *)user;
    return 0;
}

TEST(creating_a_wrapper_makes_no_driver_call) {
    gpumem_resource *made[WRAPPERS], *source = NULL;
    int seen = 0;
    for (unsigned i = 0; i < WRAPPERS; i++) {
        begin_count();
        OK(make_wrapper((enum wrapper)i, memory, pool, &made[i]));
        end_count(wrapper_names[i], __LINE__);
    }
    FREE_OK(gpumem_trace_note(made[WRAPPER_trace], "a note"));
    FREE_OK(gpumem_trace_flush(made[WRAPPER_trace]));
    FREE_OK(gpumem_tracking_visit(made[WRAPPER_tracking], visit, &seen));
    FREE_OK(gpumem_tracking_report(made[WRAPPER_tracking], GPUMEM_REPORT_TEXT, kinds_write_nowhere,
                                   NULL));
    gpumem_buffer *buffer_of = NEW_BUFFER(made[WRAPPER_fallback], KIB);
    FREE_OK(gpumem_fallback_get_source(buffer_of, &source));
    assert_ptr_equal(source, memory);
    DESTROY(buffer_of);
    for (size_t i = 0; i < COUNT(made); i++)
        OK(gpumem_resource_destroy(made[i])); /* frees that wait are worked off */
}

/* ---- One of the user's ----------------------------------------------------------------------- */

static gpumem_status refuse(void *user, const gpumem_request *request,
                            gpumem_allocation *allocation) {
    return gpumem_set_last_error(GPUMEM_ERROR_OUT_OF_MEMORY, "there is nothing");
}

static void take_back(void *user, const gpumem_allocation *allocation, CUstream stream) {
}

static void describe(void *user, gpumem_resource_properties *properties) {
    properties->device_accessible = 1;
}

TEST(resource_queries_make_no_driver_call) {
    gpumem_resource *own;
    gpumem_resource_properties properties = {.size = sizeof properties};
    gpumem_caching_info info = {.size = sizeof info};
    gpumem_stats stats = {.size = sizeof stats};
    const gpumem_resource_ops ops = {
        .size = sizeof ops, .allocate = refuse, .deallocate = take_back, .properties = describe};
    FREE_OK(gpumem_resource_create(device, &ops, NULL, &own));
    FREE_OK(gpumem_resource_destroy(own));
    FREE_OK(gpumem_resource_get_properties(memory, &properties));
    FREE(gpumem_resource_device(memory) == device);
    FREE_OK(gpumem_resource_get_stats(memory, &stats));
    gpumem_resource *cache = NEW_CACHING(memory);
    FREE_OK(gpumem_caching_get_info(cache, &info));
    OK(gpumem_resource_destroy(cache));
}

#define PLACE "@gpumem-free-of-driver-calls"

static void *come_in(void *unused) {
    int connection = -1;
    OK(gpumem_connect(PLACE, NULL, &connection, NULL));
    assert_int_equal(close(connection), 0);
    return NULL;
}

static void *let_in(void *listener) {
    int connection = -1;
    OK(gpumem_accept(listener, NULL, &connection, NULL));
    assert_int_equal(close(connection), 0);
    return NULL;
}

TEST(connections_make_no_driver_call) {
    gpumem_listener *listener = NULL;
    pthread_t other;
    int connection = -1;
    FREE_OK(gpumem_listen(PLACE, NULL, &listener));
    FREE(gpumem_listener_descriptor(listener) >= 0);
    assert_int_equal(pthread_create(&other, NULL, let_in, listener), 0);
    FREE_OK(gpumem_connect(PLACE, NULL, &connection, NULL));
    assert_int_equal(close(connection), 0);
    pthread_join(other, NULL);
    assert_int_equal(pthread_create(&other, NULL, come_in, NULL), 0);
    FREE_OK(gpumem_accept(listener, NULL, &connection, NULL));
    assert_int_equal(close(connection), 0);
    pthread_join(other, NULL);
    FREE_OK(gpumem_listener_close(listener));
}

TEST(detaching_an_export_makes_no_driver_call) {
    gpumem_export *exported = NEW_EXPORT(buffer);
    FREE_OK(gpumem_export_detach(exported));
    FREE_OK(gpumem_export_destroy(exported));
}

BEFORE(begin_sweeps) {
    memory = NEW_VIRTUAL();
    pool = NEW_POOL(.ipc = 1);
    buffer = NEW_BUFFER(memory, 4 * MIB);
}

AFTER(close_device) {
    OK(gpumem_buffer_free(buffer, NULL));
    settle(NULL);
    DESTROY(pool, memory);
}

ALL_TESTS(before, after);
