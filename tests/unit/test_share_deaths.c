/*
 * Importers that die, wherever they are: the owner goes on, so do the other importers, and nothing
 * is left of those that died. A thousand are killed for `./dev test --long`. The importers are this
 * program again, by exec, and have no chance to give anything back.
 */
#include "other_process.h"
#include "temporary.h"

#include <poll.h>
#include <signal.h>

#define CHUNK   (2 * MIB)
#define AT_ONCE 5
#define FEW     70
#define MANY    1400 /* of which 1,000 are killed */

static char folder[TEMPORARY_ROOM], path[TEMPORARY_ROOM + 16];

/* Where an importer dies, and how far the owner gets with it. */
enum place {
    CONNECTED,
    OFFERED,  /* has read a part of the offer */
    IMPORTED, /* has mapped and written it */
    ASKED,    /* has asked for growth, and does not wait for it */
    UPDATED,  /* has mapped that too */
    UNTIDY,   /* ends by itself, with all of it still mapped */
    TIDY,     /* gives everything back */
    PLACES,
    SURVIVES = PLACES, /* until it is told, and checks what the others left */
};

/* ---- The importers --------------------------------------------------------------------------- */

static void die(void) {
    raise(SIGKILL);
    _exit(98);
}

static int read_some(int connection) {
    char bytes[7];
    return recv(connection, bytes, sizeof bytes, MSG_WAITALL) == sizeof bytes;
}

/* As gpumem_import_update begins. */
static int ask_alone(int connection) {
    struct {
        char magic[8];
        uint32_t version, chunk_count;
        unsigned char rest[40];
    } request = {.magic = {'g', 'p', 'u', 'm', 'e', 'm', '-', 'r'}, .version = 2};
    return send(connection, &request, sizeof request, MSG_NOSIGNAL) == sizeof request;
}

/* Content that all importers find, and none may lose. */
static int holds(gpumem_buffer *buffer, unsigned char value) {
    unsigned char bytes[2] = {0};
    size_t last = gpumem_buffer_size(buffer) - 1;
    return read_now(buffer, 0, &bytes[0], 1, NULL) == GPUMEM_OK &&
           read_now(buffer, last, &bytes[1], 1, NULL) == GPUMEM_OK && bytes[0] == value &&
           bytes[1] == value;
}

static int survive(gpumem_buffer *buffer, int connection) {
    while (other_hear(connection))
        if (!holds(buffer, 0x66) || !other_say(connection))
            return 20;
    return gpumem_buffer_free(buffer, NULL) == GPUMEM_OK && close_device(NULL) == 0 ? 0 : 21;
}

static int importer(enum place place, const char *at) {
    int connection = -1;
    gpumem_buffer *buffer;
    if (open_device(NULL) != 0 || gpumem_connect(at, NULL, &connection, NULL) != GPUMEM_OK)
        return 1;
    if (place == CONNECTED || (place == OFFERED && read_some(connection)))
        die();
    if (gpumem_import_receive(device, connection, GPUMEM_SHARE_OPTIONS(.capacity = 16 * MIB),
                              &buffer) != GPUMEM_OK ||
        !holds(buffer, 0x66))
        return 2;
    if (place == SURVIVES)
        return survive(buffer, connection);
    if (place == IMPORTED || (place == ASKED && ask_alone(connection)))
        die();
    CUdeviceptr address = gpumem_buffer_pointer(buffer);
    if (gpumem_import_update(buffer, connection, NULL) != GPUMEM_OK ||
        gpumem_buffer_size(buffer) != 2 * CHUNK || gpumem_buffer_pointer(buffer) != address ||
        !holds(buffer, 0x66))
        return 3;
    if (place == UPDATED)
        die();
    if (place == UNTIDY)
        _exit(0);
    return gpumem_buffer_free(buffer, NULL) == GPUMEM_OK && close_device(NULL) == 0 ? 0 : 4;
}

/* ---- The owner ------------------------------------------------------------------------------- */

static gpumem_resource *resource;
static gpumem_buffer *buffer;
static gpumem_export *exported;
static gpumem_listener *listener;

static int setup(void **state) {
    if (open_device(state) != 0 || !temporary_folder(folder, "gpumem-deaths"))
        return -1;
    snprintf(path, sizeof path, "%s/socket", folder);
    resource = NEW_VIRTUAL(.chunk_maximum = CHUNK, .exact_growth = 1);
    buffer = NEW_BUFFER_WITH(resource, CHUNK, .capacity = 16 * MIB);
    OK(fill_now(buffer, 0, CHUNK, 0x66, NULL));
    /* The library keeps the event that the first shrink waits for. */
    OK(gpumem_buffer_grow(buffer, 2 * CHUNK, NULL));
    OK(gpumem_buffer_shrink(buffer, CHUNK, NULL));
    OK(gpumem_listen(path, NULL, &listener));
    return 0;
}

AFTER(close_device) {
    OK(gpumem_listener_close(listener));
    DESTROY(buffer, resource);
    assert_int_equal(rmdir(folder), 0);
}

EACH_TEST(setup, after);

static pid_t start(enum place place) {
    char number[12];
    snprintf(number, sizeof number, "%d", (int)place);
    pid_t child = fork();
    if (child == 0) {
        execl("/proc/self/exe", "run", test_file(), "--child", "other", number, path, (char *)NULL);
        _exit(99);
    }
    assert_true(child > 0);
    return child;
}

static int await_end(pid_t child) {
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

struct met {
    pid_t pid;
    int connection;
    enum place place;
};

/* Whoever connects next is one of these. */
static struct met *meet(struct met *all, size_t count) {
    int connection = -1;
    gpumem_connection_peer peer = {.size = sizeof peer};
    OK(gpumem_accept(listener, NULL, &connection, &peer));
    for (size_t i = 0; i < count; i++)
        if (all[i].pid == peer.pid) {
            all[i].connection = connection;
            return &all[i];
        }
    fail_msg("process %d was not started here", peer.pid);
    return NULL;
}

static void send_to(const struct met *met) {
    gpumem_status status = gpumem_export_send(exported, met->connection, NULL);
    if (met->place >= IMPORTED)
        check_status(status, GPUMEM_OK, "send", __FILE__, __LINE__);
    else
        check_status(status, GPUMEM_ERROR_PEER, "send", __FILE__, __LINE__);
}

static void answer(const struct met *met) {
    gpumem_status status = gpumem_export_answer(exported, met->connection, NULL);
    if (met->place >= UPDATED)
        check_status(status, GPUMEM_OK, "answer", __FILE__, __LINE__);
    else /* ASKED has asked for what no export has ever been */
        check_status(status, met->place == ASKED ? GPUMEM_ERROR_DATA : GPUMEM_ERROR_PEER, "answer",
                     __FILE__, __LINE__);
}

static void finish(const struct met *met) {
    int status = await_end(met->pid);
    close(met->connection);
    if (met->place < UNTIDY)
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    else
        assert_int_equal(status, 0);
}

/* Each dies somewhere else, while the memory grows. */
static void run_batch(struct met *batch) {
    exported = NEW_EXPORT(buffer);
    for (size_t i = 0; i < AT_ONCE; i++)
        batch[i].pid = start(batch[i].place);
    for (size_t i = 0; i < AT_ONCE; i++)
        send_to(meet(batch, AT_ONCE));
    OK(gpumem_buffer_grow(buffer, 2 * CHUNK, NULL));
    OK(fill_now(buffer, CHUNK, CHUNK, 0x66, NULL));
    OK(gpumem_export_update(exported));
    for (size_t i = 0; i < AT_ONCE; i++)
        answer(&batch[i]);
    for (size_t i = 0; i < AT_ONCE; i++)
        finish(&batch[i]);
    OK(gpumem_export_detach(exported));
    OK(gpumem_buffer_shrink(buffer, CHUNK, NULL));
    OK(gpumem_export_destroy(exported));
}

static void the_others_go_on(const struct met *survivor) {
    assert_true(other_say(survivor->connection));
    assert_true(other_hear(survivor->connection));
    assert_true(holds(buffer, 0x66));
}

static size_t how_many(void) {
    const char *longer = getenv("GPUMEM_TEST_LONG");
    return longer && strcmp(longer, "1") == 0 ? MANY : FEW;
}

TEST(importers_that_die_leave_nothing_behind) {
    struct met survivor = {.pid = start(SURVIVES), .place = SURVIVES};
    gpumem_export *first = NEW_EXPORT(buffer);
    exported = first;
    send_to(meet(&survivor, 1));
    OK(gpumem_export_destroy(first));
    the_others_go_on(&survivor);
    size_t descriptors = open_descriptors(), count = how_many(), next = 0;
    for (size_t done = 0; done < count; done += AT_ONCE) {
        struct met batch[AT_ONCE];
        char *before = soft->state_dump();
        for (size_t i = 0; i < AT_ONCE; i++)
            batch[i] = (struct met){.place = (enum place)(next++ % PLACES)};
        run_batch(batch);
        SAME_STATE(before);
        assert_int_equal(open_descriptors(), descriptors);
        the_others_go_on(&survivor);
    }
    print_message("%zu importers, of which %zu died\n", count, count / PLACES * UNTIDY);
    shutdown(survivor.connection, SHUT_WR);
    finish(&survivor);
    OK(gpumem_device_trim(device, 1));
    MEMBERS(device_stats(), (committed_bytes, CHUNK), (exports, 0), (quarantined, 0));
}

/* Killed from outside, at no chosen place, while it is busy with the memory. */
TEST(a_killed_importer_does_not_affect_the_others) {
    struct met both[2] = {{.pid = start(SURVIVES), .place = SURVIVES},
                          {.pid = start(SURVIVES), .place = SURVIVES}};
    char *before = soft->state_dump();
    exported = NEW_EXPORT(buffer);
    send_to(meet(both, 2));
    send_to(meet(both, 2));
    assert_true(other_say(both[0].connection));
    assert_int_equal(kill(both[0].pid, SIGKILL), 0);
    int status = await_end(both[0].pid);
    assert_true(WIFSIGNALED(status));
    the_others_go_on(&both[1]);
    OK(gpumem_buffer_grow(buffer, 3 * CHUNK, NULL));
    OK(gpumem_export_update(exported));
    FAILS(PEER, gpumem_export_send(exported, both[0].connection, NULL));
    FAILS(PEER, gpumem_export_answer(exported, both[0].connection, NULL));
    close(both[0].connection);
    OK(gpumem_export_detach(exported));
    OK(gpumem_buffer_shrink(buffer, CHUNK, NULL));
    the_others_go_on(&both[1]);
    shutdown(both[1].connection, SHUT_WR);
    finish(&both[1]);
    OK(gpumem_export_destroy(exported));
    SAME_STATE(before);
}

CHILD(other) {
    return importer((enum place)atoi(argv[1]), argv[2]);
}
