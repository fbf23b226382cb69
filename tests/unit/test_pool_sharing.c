/* Pools and their buffers between processes. The other process is this program again, by exec. */
#include "other_process.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>

/* ---- The other process ----------------------------------------------------------------------- */

#define SIZE (3 * MIB)

/* What goes over the socket after the pool. */
struct offer {
    gpumem_pool_share_buffer first, second;
};

static int check(int good, const char *what) {
    if (!good)
        fprintf(stderr, "other process: %s; the last error says: %s\n", what,
                gpumem_last_error()->message);
    return good;
}
#define WANT(condition)                                                                            \
    do {                                                                                           \
        if (!check(condition, #condition))                                                         \
            return 10;                                                                             \
    } while (0)

static int holds(gpumem_buffer *buffer, unsigned char value) {
    unsigned char bytes[2] = {0};
    size_t last = gpumem_buffer_size(buffer) - 1;
    return gpumem_buffer_read(buffer, 0, &bytes[0], 1, NULL) == GPUMEM_OK &&
           gpumem_buffer_read(buffer, last, &bytes[1], 1, NULL) == GPUMEM_OK &&
           gpumem_stream_synchronize(device, NULL) == GPUMEM_OK && bytes[0] == value &&
           bytes[1] == value;
}

/* A mapped pool answers what a mapped pool can. */
static int check_mapped(gpumem_resource *pool, int host, const struct offer *offer) {
    gpumem_pool_info info = {.size = sizeof info};
    gpumem_pool_share_handle handle = {.size = sizeof handle};
    gpumem_buffer *none;
    gpumem_resource *found = NULL;
    uint64_t value;
    WANT(gpumem_pool_get_info(pool, &info) == GPUMEM_OK);
    WANT(info.mapped && info.owned && info.ipc_enabled && info.device_accessible);
    WANT(info.host_accessible == host && info.ordinal == (host ? -1 : 0));
    WANT(info.numa_node == (host ? 0 : -1));
    WANT(info.has_uuid && memcmp(info.uuid, offer->first.pool, 16) == 0);
    WANT(gpumem_buffer_allocate(pool, 100, NULL, &none) == GPUMEM_ERROR_NOT_SUPPORTED);
    WANT(strstr(gpumem_last_error()->message, "another process") != NULL);
    WANT(gpumem_pool_get_share_handle(pool, &handle) == GPUMEM_ERROR_NOT_SUPPORTED);
    WANT(gpumem_pool_get_attribute(pool, GPUMEM_POOL_USED_CURRENT, &value) ==
         GPUMEM_ERROR_NOT_SUPPORTED);
    WANT(gpumem_pool_set_attribute(pool, GPUMEM_POOL_RELEASE_THRESHOLD, 0) ==
         GPUMEM_ERROR_NOT_SUPPORTED);
    WANT(gpumem_resource_trim(pool, 0) == GPUMEM_OK);
    WANT(gpumem_pool_from_registry(library, info.uuid, &found) == GPUMEM_ERROR_INVALID_ARGUMENT);
    WANT(gpumem_pool_register(pool, info.uuid, &found) == GPUMEM_OK && found == pool);
    found = NULL;
    WANT(gpumem_pool_from_registry(library, offer->second.pool, &found) == GPUMEM_OK);
    WANT(found == pool);
    return 0;
}

/* Two buffers of one export are one address, and its memory is there until the second is freed. */
static int check_twice(gpumem_resource *pool, const struct offer *offer) {
    gpumem_buffer *a, *b, *again;
    gpumem_stats stats = {.size = sizeof stats};
    WANT(gpumem_pool_import_buffer(pool, &offer->first, &a) == GPUMEM_OK);
    WANT(gpumem_pool_import_buffer(pool, &offer->first, &b) == GPUMEM_OK);
    WANT(gpumem_buffer_pointer(a) == gpumem_buffer_pointer(b) && a != b);
    WANT(gpumem_resource_get_stats(pool, &stats) == GPUMEM_OK);
    WANT(stats.imported_bytes == SIZE && stats.committed_bytes == 0 && stats.allocations == 2);
    WANT(gpumem_resource_destroy(pool) == GPUMEM_ERROR_BUSY);
    /* Work on the first holds its free back; that of the second waits for nothing of it. */
    struct gate gate = gate_with_stream();
    WANT(gpumem_buffer_fill(a, 0, SIZE, 0x77, gate.stream) == GPUMEM_OK);
    WANT(gpumem_buffer_free(a, gate.stream) == GPUMEM_OK);
    WANT(gpumem_buffer_free(b, NULL) == GPUMEM_OK);
    WANT(gpumem_resource_get_stats(pool, &stats) == GPUMEM_OK);
    WANT(stats.imported_bytes == SIZE && stats.deferred_frees == 1);
    gate_drain(&gate);
    WANT(gpumem_device_trim(device, 1) == GPUMEM_OK);
    gate_remove(&gate);
    WANT(gpumem_resource_get_stats(pool, &stats) == GPUMEM_OK);
    WANT(stats.imported_bytes == 0 && stats.quarantined == 0);
    WANT(gpumem_pool_import_buffer(pool, &offer->first, &again) == GPUMEM_OK);
    WANT(holds(again, 0x77));
    WANT(gpumem_buffer_fill(again, 0, SIZE, 0x55, NULL) == GPUMEM_OK);
    WANT(gpumem_stream_synchronize(device, NULL) == GPUMEM_OK);
    WANT(gpumem_buffer_free(again, NULL) == GPUMEM_OK);
    return 0;
}

/* What the other side says is not believed. */
static int check_lies(gpumem_resource *pool, const struct offer *offer) {
    gpumem_buffer *none = NULL;
    gpumem_pool_share_buffer lie = offer->first;
    lie.bytes += 4 * GIB;
    WANT(gpumem_pool_import_buffer(pool, &lie, &none) == GPUMEM_ERROR_DATA);
    lie = offer->first;
    lie.offset = 256;
    WANT(gpumem_pool_import_buffer(pool, &lie, &none) == GPUMEM_ERROR_DATA);
    lie.offset = UINT64_MAX - 100;
    WANT(gpumem_pool_import_buffer(pool, &lie, &none) == GPUMEM_ERROR_DATA);
    lie = offer->first;
    lie.bytes = 0;
    WANT(gpumem_pool_import_buffer(pool, &lie, &none) == GPUMEM_ERROR_DATA);
    lie = offer->first;
    lie.data[20] ^= 1;
    WANT(gpumem_pool_import_buffer(pool, &lie, &none) == GPUMEM_ERROR_DATA);
    lie = offer->first;
    lie.pool[3] ^= 1;
    WANT(gpumem_pool_import_buffer(pool, &lie, &none) == GPUMEM_ERROR_DATA);
    WANT(strstr(gpumem_last_error()->message, "another pool") != NULL);
    WANT(!none);
    return 0;
}

static int use_offer(gpumem_resource *pool, int host, int socket) {
    struct offer offer;
    gpumem_buffer *second;
    WANT(read(socket, &offer, sizeof offer) == (ssize_t)sizeof offer);
    int wrong = check_mapped(pool, host, &offer);
    if (!wrong)
        wrong = check_lies(pool, &offer);
    if (!wrong)
        wrong = check_twice(pool, &offer);
    if (wrong)
        return wrong;
    WANT(gpumem_pool_import_buffer(pool, &offer.second, &second) == GPUMEM_OK);
    WANT(gpumem_buffer_pointer(second) % 4096 == 0 && gpumem_buffer_size(second) == 1000);
    WANT(gpumem_buffer_resource(second) == pool && holds(second, 0x42));
    unsigned char *bytes = gpumem_buffer_host_pointer(second);
    WANT((bytes != NULL) == host);
    gpumem_pool_share_buffer more = {.size = sizeof more};
    WANT(gpumem_pool_export_buffer(second, &more) == GPUMEM_ERROR_NOT_SUPPORTED);
    if (bytes)
        bytes[999] = 0x43; /* by the CPU */
    else
        WANT(gpumem_buffer_fill(second, 999, 1, 0x43, NULL) == GPUMEM_OK);
    WANT(gpumem_stream_synchronize(device, NULL) == GPUMEM_OK);
    WANT(gpumem_buffer_free(second, NULL) == GPUMEM_OK);
    return 0;
}

static int other_process(int host, int socket) {
    if (open_device(NULL) != 0 || make_host_memory_file() != 0)
        return 1;
    gpumem_resource *pool, *found;
    size_t before = open_descriptors();
    if (!check(gpumem_pool_receive(device, socket, NULL, &pool) == GPUMEM_OK, "receive"))
        return 2;
    gpumem_pool_info info = pool_info_of(pool);
    int result = use_offer(pool, host, socket);
    if (result)
        return result;
    if (!check(gpumem_resource_destroy(pool) == GPUMEM_OK, "destroy"))
        return 3;
    /* What is closed is no longer registered. */
    if (gpumem_pool_from_registry(library, info.uuid, &found) != GPUMEM_ERROR_INVALID_ARGUMENT)
        return 4;
    if (open_descriptors() != before)
        return 5;
    char *leaks = soft->leak_report();
    int leaked = strstr(leaks, "pool") != NULL;
    soft->free_text(leaks);
    return leaked ? 6 : close_device(NULL) ? 7 : 0;
}

/* ---- This process ---------------------------------------------------------------------------- */

static gpumem_resource *shared_pool(int host) {
    return host ? NEW_PINNED(.method = GPUMEM_PINNED_POOL, .ipc = 1) : NEW_POOL(.ipc = 1);
}

static void share(int host) {
    size_t none_open = open_descriptors();
    gpumem_resource *pool = shared_pool(host);
    struct offer offer = {.first = {.size = sizeof offer.first},
                          .second = {.size = sizeof offer.second}};
    gpumem_resource *limited = NEW_LIMIT(pool, GIB);
    gpumem_buffer *a = NEW_BUFFER(pool, SIZE);
    gpumem_buffer *b = NEW_BUFFER_WITH(limited, 1000, .alignment = 4096);
    OK(gpumem_buffer_fill(a, 0, SIZE, 0x11, NULL));
    OK(gpumem_buffer_fill(b, 0, 1000, 0x42, NULL));
    synchronize(NULL);
    size_t before = open_descriptors();
    OK(gpumem_pool_export_buffer(a, &offer.first));
    OK(gpumem_pool_export_buffer(b, &offer.second)); /* through a wrapper */
    assert_int_equal(offer.first.bytes, SIZE);
    assert_memory_equal(offer.first.pool, pool_info_of(pool).uuid, 16);
    int socket;
    pid_t child = other_start(host ? "host" : "device", SOCK_STREAM, &socket);
    OK(gpumem_pool_send(pool, socket, NULL));
    assert_int_equal(write(socket, &offer, sizeof offer), sizeof offer);
    assert_int_equal(other_end(child, socket), 0);
    assert_int_equal(open_descriptors(), before + 1); /* the pool's own, kept */
    unsigned char seen[2] = {0};
    OK(gpumem_buffer_read(a, SIZE - 1, &seen[0], 1, NULL));
    OK(gpumem_buffer_read(b, 999, &seen[1], 1, NULL));
    synchronize(NULL);
    assert_int_equal(seen[0], 0x55);
    assert_int_equal(seen[1], 0x43);
    DESTROY(a, b, limited, pool);
    assert_int_equal(open_descriptors(), none_open);
}

TEST_IS(a_device_pool_is_shared_with_another_process, share(0));
TEST_IS(a_host_pool_is_shared_with_another_process, share(1));

TEST(the_shared_handle_is_exported_only_once) {
    gpumem_resource *pool = shared_pool(1);
    uint64_t calls = soft->call_count("cuMemPoolExportToShareableHandle");
    gpumem_pool_share_handle first = {.size = sizeof first}, second = first;
    OK(gpumem_pool_get_share_handle(pool, &first));
    OK(gpumem_pool_get_share_handle(pool, &second));
    assert_memory_equal(&first, &second, sizeof first);
    assert_int_equal(soft->call_count("cuMemPoolExportToShareableHandle"), calls + 1);
    assert_true(first.descriptor > 2);
    assert_int_equal(fcntl(first.descriptor, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    MEMBERS(first, (location, GPUMEM_LOCATION_HOST_NUMA), (numa_node, 0));
    /* Who closes what is the resource's is told, and nobody else's file is closed or sent. */
    close(first.descriptor);
    FAILS_SAYING(SYSTEM, "closed by other code", gpumem_pool_get_share_handle(pool, &second));
    int mine = open("/dev/null", O_RDONLY);
    assert_int_equal(mine, first.descriptor);
    FAILS(SYSTEM, gpumem_pool_get_share_handle(pool, &second));
    OK(gpumem_resource_destroy(pool));
    assert_int_equal(close(mine), 0);
}

/* Mapped in the process that owns it: what a descriptor alone says, and what the registry does. */
TEST(a_pool_can_be_imported_from_a_descriptor_alone) {
    size_t before = open_descriptors();
    gpumem_resource *pool = shared_pool(0), *mapped, *twin, *found = NULL;
    gpumem_pool_share_handle handle = {.size = sizeof handle};
    OK(gpumem_pool_get_share_handle(pool, &handle));
    gpumem_pool_share_handle bare = {
        .size = sizeof bare, .descriptor = handle.descriptor, .numa_node = -1};
    OK(gpumem_pool_from_share_handle(device, &bare, &mapped));
    OK(gpumem_pool_from_share_handle(device, &handle, &twin));
    assert_true(fcntl(handle.descriptor, F_GETFD) >= 0); /* not consumed */
    assert_int_equal(pool_info_of(mapped).has_uuid, 0);
    assert_int_equal(pool_info_of(twin).has_uuid, 1);
    unsigned char zero[16] = {0}, other[16] = {1};
    FAILS(INVALID_ARGUMENT, gpumem_pool_register(mapped, zero, &found));
    FAILS(INVALID_ARGUMENT, gpumem_pool_register(pool, handle.uuid, &found));
    SAYS("other processes");
    FAILS_SAYING(INVALID_ARGUMENT, "another UUID", gpumem_pool_register(twin, other, &found));
    OK(gpumem_pool_register(mapped, handle.uuid, NULL));
    assert_memory_equal(pool_info_of(mapped).uuid, handle.uuid, 16);
    OK(gpumem_pool_register(twin, handle.uuid, &found)); /* the second gets the first */
    assert_ptr_equal(found, mapped);
    OK(gpumem_pool_register(mapped, handle.uuid, &found));
    assert_ptr_equal(found, mapped);
    OK(gpumem_resource_destroy(twin)); /* was never in */
    OK(gpumem_pool_from_registry(library, handle.uuid, &found));
    assert_ptr_equal(found, mapped);
    OK(gpumem_resource_destroy(mapped));
    found = NULL;
    FAILS(INVALID_ARGUMENT, gpumem_pool_from_registry(library, handle.uuid, &found));
    SAYS("registered");
    assert_null(found);
    OK(gpumem_resource_destroy(pool));
    assert_int_equal(open_descriptors(), before);
}

/* As host memory, of which it is none; and the other way round. */
TEST(the_location_of_an_imported_pool_is_verified) {
    for (int host = 0; host < 2; host++) {
        gpumem_resource *pool = shared_pool(host), *mapped;
        gpumem_pool_share_handle handle = {.size = sizeof handle};
        gpumem_pool_share_buffer shared = {.size = sizeof shared};
        gpumem_buffer *none = NULL;
        gpumem_buffer *buffer = NEW_BUFFER(pool, 4096);
        OK(gpumem_pool_export_buffer(buffer, &shared));
        OK(gpumem_pool_get_share_handle(pool, &handle));
        handle.location = host ? GPUMEM_LOCATION_DEVICE : GPUMEM_LOCATION_HOST;
        handle.numa_node = -1;
        OK(gpumem_pool_from_share_handle(device, &handle, &mapped));
        FAILS_SAYING(DATA, "but is not", gpumem_pool_import_buffer(mapped, &shared, &none));
        assert_null(none);
        DESTROY(mapped, buffer, pool);
    }
}

/* ---- Threads and kills ----------------------------------------------------------------------- */

#define THREADS 6
#define ROUNDS  200

struct importer {
    pthread_t thread;
    gpumem_resource *mapped;
    const gpumem_pool_share_buffer *shared;
    int failed;
};

/* Whoever is the last of a moment unmaps what the next one maps again. */
static void *import_and_free(void *argument) {
    struct importer *self = argument;
    for (int i = 0; i < ROUNDS && !self->failed; i++) {
        gpumem_buffer *buffer;
        gpumem_resource *found = NULL;
        if (gpumem_pool_import_buffer(self->mapped, self->shared, &buffer) != GPUMEM_OK) {
            self->failed = 1;
            break;
        }
        /* Read by the CPU: a mapping that was taken away would kill. */
        unsigned char byte = *((unsigned char *)gpumem_buffer_host_pointer(buffer) + 4095);
        self->failed |= byte != 0x2f;
        self->failed |= gpumem_pool_register(self->mapped, self->shared->pool, &found) != GPUMEM_OK;
        self->failed |= gpumem_buffer_free(buffer, NULL) != GPUMEM_OK;
    }
    return NULL;
}

TEST(threads_import_and_free_one_buffer) {
    gpumem_resource *pool = shared_pool(1), *mapped;
    gpumem_pool_share_handle handle = {.size = sizeof handle};
    gpumem_pool_share_buffer shared = {.size = sizeof shared};
    struct importer importers[THREADS] = {{.failed = 0}};
    gpumem_buffer *buffer = NEW_BUFFER_WITH(pool, 4096, .stream = GPUMEM_STREAM_NONE);
    memset(gpumem_buffer_host_pointer(buffer), 0x2f, 4096);
    OK(gpumem_pool_export_buffer(buffer, &shared));
    OK(gpumem_pool_get_share_handle(pool, &handle));
    memset(handle.uuid, 0, sizeof handle.uuid); /* named by register, beside imports */
    OK(gpumem_pool_from_share_handle(device, &handle, &mapped));
    for (size_t i = 0; i < THREADS; i++) {
        importers[i].mapped = mapped;
        importers[i].shared = &shared;
        assert_int_equal(pthread_create(&importers[i].thread, NULL, import_and_free, &importers[i]),
                         0);
    }
    for (size_t i = 0; i < THREADS; i++) {
        pthread_join(importers[i].thread, NULL);
        assert_int_equal(importers[i].failed, 0);
    }
    gpumem_stats stats = stats_of(mapped);
    MEMBERS(stats, (imported_bytes, 0), (allocations_total, THREADS * ROUNDS));
    DESTROY(mapped, buffer, pool);
}

static int owner(int socket) {
    gpumem_resource *pool;
    gpumem_buffer *buffer;
    gpumem_pool_share_buffer shared = {.size = sizeof shared};
    char byte;
    if (open_device(NULL) != 0 ||
        gpumem_device_pool_resource_create(device, GPUMEM_DEVICE_POOL_OPTIONS(.ipc = 1), &pool) !=
            GPUMEM_OK ||
        gpumem_buffer_allocate(pool, SIZE, NULL, &buffer) != GPUMEM_OK ||
        gpumem_buffer_fill(buffer, 0, SIZE, 0x3d, NULL) != GPUMEM_OK ||
        gpumem_stream_synchronize(device, NULL) != GPUMEM_OK ||
        gpumem_pool_export_buffer(buffer, &shared) != GPUMEM_OK ||
        gpumem_pool_send(pool, socket, NULL) != GPUMEM_OK ||
        write(socket, &shared, sizeof shared) != (ssize_t)sizeof shared)
        return 1;
    return read(socket, &byte, 1) == 0 ? 0 : 1; /* until it is killed */
}

/* Bytes and the giving back do not need the owner any more. */
TEST(imported_pool_memory_survives_its_killed_owner) {
    gpumem_buffer *buffer, *again;
    gpumem_pool_share_buffer shared;
    int socket, status = 0;
    pid_t child = other_start("owner", SOCK_STREAM, &socket);
    gpumem_resource *mapped = MADE(gpumem_resource *, gpumem_pool_receive, device, socket, NULL);
    assert_int_equal(read(socket, &shared, sizeof shared), sizeof shared);
    OK(gpumem_pool_import_buffer(mapped, &shared, &buffer));
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    close(socket);
    assert_true(holds(buffer, 0x3d));
    OK(gpumem_pool_import_buffer(mapped, &shared, &again));
    OK(gpumem_buffer_free(buffer, NULL));
    assert_true(holds(again, 0x3d));
    OK(gpumem_buffer_free(again, NULL));
    OK(gpumem_device_trim(device, 1));
    OK(gpumem_resource_destroy(mapped));
    assert_int_equal(device_stats().quarantined, 0);
}

/* Neither side waits for ever for one that is silent, or believes what is no pool. */
TEST(a_silent_or_strange_peer_is_an_error) {
    gpumem_resource *pool = shared_pool(0), *none = (gpumem_resource *)state;
    const gpumem_share_options soon = {.size = sizeof soon, .timeout_ms = 50};
    int ends[2];
    size_t before = open_descriptors();
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    FAILS(PEER, gpumem_pool_receive(device, ends[1], &soon, &none));
    FAILS(PEER, gpumem_pool_send(pool, ends[0], &soon));    /* nobody answers */
    OK(gpumem_pool_receive(device, ends[1], &soon, &none)); /* and it lay there */
    OK(gpumem_resource_destroy(none));
    none = (gpumem_resource *)state;
    char noise[40] = "forty bytes that are no offer of a pool";
    struct iovec part = {.iov_base = noise, .iov_len = sizeof noise};
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = {.bytes = {0}};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof control.bytes};
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    *head = (struct cmsghdr){
        .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof(int))};
    memcpy(CMSG_DATA(head), &ends[0], sizeof(int));
    assert_int_equal(sendmsg(ends[0], &message, 0), sizeof noise);
    FAILS_SAYING(PEER, "another protocol", gpumem_pool_receive(device, ends[1], &soon, &none));
    assert_ptr_equal(none, state);
    close(ends[0]);
    close(ends[1]);
    OK(gpumem_resource_destroy(pool));
    assert_true(open_descriptors() <= before);
}

/* At the limit of descriptors: an error, nothing left, and it works afterwards. */
TEST(without_free_descriptors_sharing_fails_cleanly) {
    gpumem_resource *pool = shared_pool(0), *unexported = shared_pool(0), *mapped = NULL;
    gpumem_pool_share_handle handle = {.size = sizeof handle}, more = handle;
    OK(gpumem_pool_get_share_handle(pool, &handle));
    size_t before = open_descriptors();
    struct rlimit limit, none;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    none = (struct rlimit){.rlim_cur = 3, .rlim_max = limit.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    gpumem_status imported = gpumem_pool_from_share_handle(device, &handle, &mapped);
    gpumem_status exported = gpumem_pool_get_share_handle(unexported, &more);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    FAILS(SYSTEM, imported);
    assert_int_not_equal(exported, GPUMEM_OK);
    assert_null(mapped);
    assert_int_equal(open_descriptors(), before);
    OK(gpumem_pool_from_share_handle(device, &handle, &mapped));
    OK(gpumem_pool_get_share_handle(unexported, &more));
    DESTROY(mapped, unexported, pool);
}

TEST(sharing_an_unshareable_resource_is_refused) {
    gpumem_resource *pool = shared_pool(0), *none = (gpumem_resource *)state;
    gpumem_pool_share_handle handle = {.size = sizeof handle};
    gpumem_pool_share_buffer shared = {.size = sizeof shared};
    gpumem_buffer *no_buffer = NULL;
    gpumem_resource *plain = NEW_POOL();
    gpumem_resource *virtual_one = NEW_VIRTUAL();
    FAILS_SAYING(NOT_SUPPORTED, "ipc", gpumem_pool_get_share_handle(plain, &handle));
    FAILS(INVALID_ARGUMENT, gpumem_pool_get_share_handle(virtual_one, &handle));
    gpumem_buffer *buffer = NEW_BUFFER(plain, 100);
    FAILS(NOT_SUPPORTED, gpumem_pool_export_buffer(buffer, &shared));
    OK(gpumem_buffer_free(buffer, NULL));
    buffer = NEW_BUFFER(virtual_one, 100);
    FAILS(NOT_SUPPORTED, gpumem_pool_export_buffer(buffer, &shared));
    OK(gpumem_buffer_free(buffer, NULL));
    gpumem_buffer *own = NEW_BUFFER(pool, 100);
    OK(gpumem_pool_export_buffer(own, &shared));
    FAILS(INVALID_ARGUMENT, gpumem_pool_import_buffer(pool, &shared, &no_buffer));
    SAYS("gpumem_pool_from_share_handle");
    OK(gpumem_buffer_free(own, NULL));
    FAILS(INVALID_ARGUMENT,
          gpumem_device_pool_resource_create(
              device, GPUMEM_DEVICE_POOL_OPTIONS(.ipc = 1, .handle_type = GPUMEM_HANDLE_NONE),
              &none));
    /* Descriptors that are no pool stay open, and are not taken. */
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    size_t before = open_descriptors();
    handle = (gpumem_pool_share_handle){.size = sizeof handle, .descriptor = ends[0]};
    FAILS(DRIVER, gpumem_pool_from_share_handle(device, &handle, &none));
    handle.descriptor = 9999;
    FAILS(SYSTEM, gpumem_pool_from_share_handle(device, &handle, &none));
    handle.descriptor = -1;
    FAILS(INVALID_ARGUMENT, gpumem_pool_from_share_handle(device, &handle, &none));
    handle = (gpumem_pool_share_handle){.size = 0};
    FAILS(INVALID_ARGUMENT, gpumem_pool_from_share_handle(device, &handle, &none));
    assert_ptr_equal(none, state);
    assert_int_equal(open_descriptors(), before);
    close(ends[0]);
    close(ends[1]);
    DESTROY(plain, virtual_one, pool);
}

static int begin(void **state) {
    return open_device(state) == 0 ? make_host_memory_file() : -1;
}

ALL_TESTS(begin, close_device);

CHILD(other) {
    if (strcmp(argv[1], "owner") == 0)
        return owner(atoi(argv[2]));
    return other_process(strcmp(argv[1], "host") == 0, atoi(argv[2]));
}
