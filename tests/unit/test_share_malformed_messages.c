/*
 * Growth by a process that lies, on either side. The importer's memory stays what it was, whatever
 * is sent; the exporter gives nothing that was not asked for rightly. The liar is a thread that
 * speaks the protocol by hand.
 */
#include "other_process.h"
#include "share/description.h"
#include "share/protocol.h"

#include <pthread.h>

#define CHUNK (2 * MIB)

static gpumem_resource *resource, *on_host;
static gpumem_buffer *buffer, *import, *stranger, *host;
static gpumem_export *exported, *strangers, *hosts;
static int sockets[2]; /* of the exporter, of the importer */

static void *send_it(void *unused) {
    return gpumem_export_send(exported, sockets[0], NULL) == GPUMEM_OK ? NULL : (void *)1;
}

/* An import of one chunk, of a buffer that has grown to three since. */
static int setup(void **state) {
    pthread_t thread;
    void *failed = NULL;
    if (open_device(state) != 0)
        return -1;
    resource = NEW_VIRTUAL(.maximum_chunk_bytes = CHUNK, .exact_growth = 1);
    on_host = NEW_VIRTUAL(.location = GPUMEM_LOCATION_HOST_NUMA);
    buffer = NEW_BUFFER_WITH(resource, CHUNK, .capacity = 64 * MIB);
    stranger = NEW_BUFFER(resource, CHUNK);
    host = NEW_BUFFER(on_host, CHUNK);
    strangers = NEW_EXPORT(stranger);
    hosts = NEW_EXPORT(host);
    exported = NEW_EXPORT(buffer);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
    assert_int_equal(pthread_create(&thread, NULL, send_it, NULL), 0);
    OK(gpumem_import_receive(device, sockets[1], GPUMEM_SHARE_OPTIONS(.capacity = 16 * MIB),
                             &import));
    pthread_join(thread, &failed);
    OK(gpumem_buffer_grow(buffer, 3 * CHUNK - 7, NULL));
    OK(fill_now(buffer, 0, 3 * CHUNK - 7, 0x5d, NULL));
    OK(gpumem_export_update(exported));
    return failed ? -1 : 0;
}

static int teardown(void **state) {
    close(sockets[0]);
    close(sockets[1]);
    DESTROY(exported, strangers, hosts, import, buffer, stranger, host, resource);
    DESTROY(on_host);
    return close_device(state);
}

EACH_TEST(setup, teardown);

/* ---- An exporter that lies ------------------------------------------------------------------- */

struct wire_offer {
    char magic[8];
    uint32_t version, description_bytes;
};

struct wire_batch {
    char magic[8];
    uint32_t first, count;
};

struct wire_answer {
    char magic[8];
    uint32_t verdict;
    int32_t status;
    char message[240];
};

/* What it sends, after the truth has been changed. */
struct lie {
    unsigned char description[256];
    size_t bytes;
    int fds[8];
    size_t count;
    uint32_t verdict; /* the first answer */
    struct wire_batch batch;
    int refused; /* what the importer says in the end: 1, or 0 */
    int early;   /* it says so before any descriptor is sent */
};

static struct gm_description_head *head_of(struct lie *lie) {
    return (struct gm_description_head *)(void *)lie->description;
}

static void set_chunk(struct lie *lie, size_t index, uint64_t bytes) {
    memcpy(lie->description + sizeof(struct gm_description_head) + index * sizeof bytes, &bytes,
           sizeof bytes);
}

static struct lie truth(void) {
    const void *whole;
    size_t bytes, tail_bytes;
    struct lie lie = {.count = 2, .verdict = GM_VERDICT_NEWS, .batch = {.first = 0, .count = 2}};
    OK(export_description(exported, &whole, &bytes));
    void *tail = gm_description_tail(whole, 1, &tail_bytes);
    assert_non_null(tail);
    memcpy(lie.description, tail, tail_bytes);
    free(tail);
    lie.bytes = tail_bytes;
    for (size_t i = 0; i < 2; i++)
        OK(export_descriptor(exported, i + 1, &lie.fds[i]));
    memcpy(lie.batch.magic, "gpumem-b", 8);
    return lie;
}

static int send_descriptors(const struct lie *lie) {
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof lie->fds)];
    } control = {{0}};
    struct iovec part = {.iov_base = (void *)(uintptr_t)&lie->batch, .iov_len = sizeof lie->batch};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = lie->count ? &control : NULL,
                             .msg_controllen = lie->count ? CMSG_SPACE(lie->count * 4) : 0};
    control.header.cmsg_level = SOL_SOCKET;
    control.header.cmsg_type = SCM_RIGHTS;
    control.header.cmsg_len = CMSG_LEN(lie->count * sizeof(int));
    memcpy(CMSG_DATA(&control.header), lie->fds, lie->count * sizeof(int));
    return sendmsg(sockets[0], &message, MSG_NOSIGNAL) == sizeof lie->batch;
}

static int read_verdict(uint32_t *verdict) {
    struct wire_answer answer;
    int whole = recv(sockets[0], &answer, sizeof answer, MSG_WAITALL) == sizeof answer;
    *verdict = whole ? answer.verdict : 0;
    return whole;
}

static void *play_exporter(void *argument) {
    struct lie *lie = argument;
    struct gm_request request;
    struct wire_answer first = {.verdict = lie->verdict};
    struct wire_offer offer = {.version = 2, .description_bytes = (uint32_t)lie->bytes};
    uint32_t verdict = 0;
    memcpy(first.magic, "gpumem-a", 8);
    memcpy(offer.magic, "gpumem-o", 8);
    if (recv(sockets[0], &request, sizeof request, MSG_WAITALL) != sizeof request ||
        send(sockets[0], &first, sizeof first, MSG_NOSIGNAL) != sizeof first)
        return NULL;
    if (lie->verdict != GM_VERDICT_NEWS)
        return NULL;
    if (send(sockets[0], &offer, sizeof offer, MSG_NOSIGNAL) != sizeof offer ||
        send(sockets[0], lie->description, lie->bytes, MSG_NOSIGNAL) != (ssize_t)lie->bytes ||
        !read_verdict(&verdict))
        return NULL;
    lie->early = verdict == GM_VERDICT_REFUSED;
    if (verdict == GM_VERDICT_SEND && send_descriptors(lie))
        (void)read_verdict(&verdict);
    lie->refused = verdict == GM_VERDICT_REFUSED;
    return NULL;
}

static gpumem_status told(struct lie *lie) {
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, play_exporter, lie), 0);
    gpumem_status status =
        gpumem_import_update(import, sockets[1], GPUMEM_SHARE_OPTIONS(.timeout_ms = 5000));
    /* Where the importer hangs up without a word, there is none to be waited for. */
    if (status == GPUMEM_ERROR_PEER)
        shutdown(sockets[1], SHUT_RDWR);
    pthread_join(thread, NULL);
    return status;
}

/* After a refusal without a word, the bytes on the wire are nobody's. */
static void connect_anew(void) {
    pthread_t thread;
    void *failed = NULL;
    close(sockets[0]);
    close(sockets[1]);
    OK(gpumem_buffer_free(import, NULL));
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
    /* The import is of one chunk: by a description of the buffer when it was that large. */
    gpumem_buffer *small = NEW_BUFFER_WITH(resource, CHUNK, .capacity = 64 * MIB);
    DESTROY(exported, buffer);
    buffer = small;
    gpumem_export *first = NEW_EXPORT(buffer);
    exported = first;
    assert_int_equal(pthread_create(&thread, NULL, send_it, NULL), 0);
    OK(gpumem_import_receive(device, sockets[1], GPUMEM_SHARE_OPTIONS(.capacity = 16 * MIB),
                             &import));
    pthread_join(thread, &failed);
    assert_null(failed);
    OK(gpumem_buffer_grow(buffer, 3 * CHUNK - 7, NULL));
    OK(fill_now(buffer, 0, 3 * CHUNK - 7, 0x5d, NULL));
    OK(gpumem_export_update(exported));
}

static void check_import(CUdeviceptr address) {
    unsigned char ends[2];
    assert_int_equal(gpumem_buffer_size(import), CHUNK);
    assert_int_equal(gpumem_buffer_pointer(import), address);
    assert_int_equal(chunks_of(import), 1);
    assert_int_equal(device_stats().imported_bytes, CHUNK);
    OK(read_now(import, 0, &ends[0], 1, NULL));
    OK(read_now(import, CHUNK - 1, &ends[1], 1, NULL));
    assert_true(ends[0] == 0x5d && ends[1] == 0x5d);
}

#define LIE(wanted, text, what)                                                                    \
    do {                                                                                           \
        struct lie lie = truth();                                                                  \
        CUdeviceptr address_ = gpumem_buffer_pointer(import);                                      \
        size_t descriptors_ = open_descriptors();                                                  \
        char *before_ = soft->state_dump();                                                        \
        what;                                                                                      \
        FAILS(wanted, told(&lie));                                                                 \
        SAYS(text);                                                                                \
        SAME_STATE(before_);                                                                       \
        assert_int_equal(open_descriptors(), descriptors_);                                        \
        check_import(address_);                                                                    \
        assert_int_equal(lie.refused, GPUMEM_ERROR_##wanted != GPUMEM_ERROR_PEER);                 \
        if (GPUMEM_ERROR_##wanted == GPUMEM_ERROR_PEER)                                            \
            connect_anew();                                                                        \
    } while (0)

TEST(contradictory_growth_descriptions_are_refused) {
    LIE(DATA, "another buffer", head_of(&lie)->buffer[5] ^= 1);
    LIE(DATA, "given memory back", head_of(&lie)->epoch++);
    LIE(DATA, "shrunk", head_of(&lie)->bytes = CHUNK - 1);
    LIE(DATA, "do not add up", head_of(&lie)->bytes = 0);
    LIE(DATA, "do not add up", head_of(&lie)->bytes = 3 * CHUNK + 1);
    LIE(DATA, "do not add up", head_of(&lie)->committed = 2 * CHUNK);
    LIE(DATA, "do not add up", head_of(&lie)->committed += CHUNK);
    LIE(NO_DEVICE, "which is not device", head_of(&lie)->device[0] ^= 1);
    /* It overlaps what there is, leaves a gap, begins anew, has fewer than there were. */
    LIE(DATA, "where the import ends", head_of(&lie)->first = 0);
    LIE(DATA, "where the import ends", head_of(&lie)->first = 2);
    LIE(DATA, "disagree", head_of(&lie)->chunk_count = 2);
    LIE(DATA, "disagree", head_of(&lie)->chunk_count = 9);
    LIE(DATA, "out of range", head_of(&lie)->chunk_count = 0);
    LIE(DATA, "out of range", head_of(&lie)->chunk_count = UINT32_MAX);
    LIE(DATA, "granularity", set_chunk(&lie, 0, CHUNK + 5));
    LIE(DATA, "granularity", set_chunk(&lie, 1, 0));
    LIE(DATA, "more than", set_chunk(&lie, 0, UINT64_MAX / CHUNK * CHUNK));
    LIE(DATA, "too short", lie.bytes = 40);
    LIE(DATA, "disagree", lie.bytes -= 8);
    LIE(DATA, "begin like one", head_of(&lie)->magic[7] = 'q');
    LIE(PEER, "version 7", head_of(&lie)->version = 7);
    LIE(PEER, "another protocol", lie.verdict = 77);
    LIE(PEER, "another protocol", lie.verdict = GM_VERDICT_SEND);
}

/* A whole description where growth was asked for: it begins anew. */
TEST(a_complete_description_in_place_of_growth_is_refused) {
    const void *whole;
    size_t bytes;
    OK(export_description(exported, &whole, &bytes));
    LIE(DATA, "where the import ends", {
        memcpy(lie.description, whole, bytes);
        lie.bytes = bytes;
    });
}

TEST(wrong_descriptors_in_growth_are_refused) {
    int ends[2], first, strange, hosts_fd;
    assert_int_equal(pipe(ends), 0);
    OK(export_descriptor(exported, 0, &first));
    OK(export_descriptor(strangers, 0, &strange));
    OK(export_descriptor(hosts, 0, &hosts_fd));
    LIE(DATA, "the same memory", lie.fds[1] = lie.fds[0]);
    LIE(DATA, "the same memory", lie.fds[0] = first); /* what the import has already */
    LIE(DATA, "is not memory", lie.fds[0] = ends[0]);
    LIE(DATA, "a different location", lie.fds[1] = hosts_fd);
    LIE(DATA, "a different location", lie.fds[0] = hosts_fd; lie.fds[1] = strange);
    LIE(DATA, "fewer descriptors", lie.count = 1);
    LIE(DATA, "fewer descriptors", lie.count = 0);
    LIE(DATA, "more descriptors", lie.fds[2] = strange; lie.count = 3);
    LIE(PEER, "another protocol", lie.batch.first = 1);
    LIE(PEER, "another protocol", lie.batch.count = 3);
    LIE(PEER, "another protocol", lie.batch.magic[0] = 'x');
    /* The right kind, of another size than it says: the second of two, so that one is undone. */
    LIE(NOT_SUPPORTED, "cuMemMap", set_chunk(&lie, 1, 2 * CHUNK);
        head_of(&lie)->committed += CHUNK);
    close(ends[0]);
    close(ends[1]);
}

/* After all that the truth is still believed. */
TEST(correct_growth_is_accepted_after_refused_growth) {
    LIE(DATA, "the same memory", lie.fds[1] = lie.fds[0]);
    struct lie lie = truth();
    CUdeviceptr address = gpumem_buffer_pointer(import);
    OK(told(&lie));
    assert_int_equal(gpumem_buffer_size(import), 3 * CHUNK - 7);
    assert_int_equal(gpumem_buffer_pointer(import), address);
    assert_int_equal(byte_of(import, 3 * CHUNK - 8), 0x5d);
}

/* ---- An importer that lies ------------------------------------------------------------------- */

static gpumem_status asked(const struct gm_request *request, size_t bytes, uint32_t *verdict) {
    struct wire_answer answer = {.verdict = 0};
    assert_int_equal(send(sockets[1], request, bytes, MSG_NOSIGNAL), bytes);
    gpumem_status status =
        gpumem_export_answer(exported, sockets[0], GPUMEM_SHARE_OPTIONS(.timeout_ms = 300));
    ssize_t got = recv(sockets[1], &answer, sizeof answer, MSG_DONTWAIT);
    *verdict = got == sizeof answer ? answer.verdict : 0;
    return status;
}

#define ASK(wanted, text, refused, what)                                                           \
    do {                                                                                           \
        struct gm_request request = good;                                                          \
        uint32_t verdict;                                                                          \
        what;                                                                                      \
        FAILS(wanted, asked(&request, sizeof request, &verdict));                                  \
        SAYS(text);                                                                                \
        assert_int_equal(verdict, (refused) ? GM_VERDICT_REFUSED : 0);                             \
    } while (0)

TEST(impossible_growth_requests_are_refused) {
    struct gm_description_head head;
    const void *description;
    size_t bytes, descriptors = open_descriptors();
    OK(export_description(exported, &description, &bytes));
    memcpy(&head, description, sizeof head);
    struct gm_request good = {.magic = {'g', 'p', 'u', 'm', 'e', 'm', '-', 'r'},
                              .version = 2,
                              .chunk_count = 1,
                              .epoch = head.epoch,
                              .committed = CHUNK,
                              .bytes = CHUNK};
    memcpy(good.buffer, head.buffer, sizeof good.buffer);
    ASK(DATA, "another buffer", 1, request.buffer[0] ^= 1);
    ASK(DATA, "given memory back", 1, request.epoch++);
    ASK(DATA, "never exported", 1, request.chunk_count = 4);
    ASK(DATA, "never exported", 1, request.chunk_count = UINT32_MAX);
    ASK(DATA, "never exported", 1, request.chunk_count = 0);
    ASK(DATA, "never exported", 1, request.committed = 2 * CHUNK);
    ASK(DATA, "never exported", 1, request.bytes = 3 * CHUNK);
    ASK(PEER, "version 9", 0, request.version = 9);
    ASK(PEER, "another protocol", 0, request.magic[1] = 0);
    /* What has it all is told so; what stays silent costs the timeout and nothing else. */
    struct gm_request all = good;
    uint32_t verdict;
    all.chunk_count = 3;
    all.committed = 3 * CHUNK;
    all.bytes = 3 * CHUNK - 7;
    OK(asked(&all, sizeof all, &verdict));
    assert_int_equal(verdict, GM_VERDICT_NOTHING);
    FAILS_SAYING(PEER, "within 300 ms", asked(&good, sizeof good - 1, &verdict));
    assert_int_equal(open_descriptors(), descriptors);
    struct gate gate = gate_with_stream(); /* the exporter's own work is as it was */
    gate_drain(&gate);
    gate_remove(&gate);
}

/* ---- Another process ------------------------------------------------------------------------- */

/* It holds the exporter's end of the connection and has its descriptors, by fork. */
TEST(growth_from_another_process_is_refused) {
    struct lie lie = truth();
    CUdeviceptr address = gpumem_buffer_pointer(import);
    int status = 0;
    char *before = soft->state_dump();
    pid_t child = fork();
    if (child == 0) {
        play_exporter(&lie);
        _exit(lie.refused && !lie.early ? 0 : 1);
    }
    FAILS(DATA, gpumem_import_update(import, sockets[1], NULL));
    SAYS("the growth comes from process");
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    SAME_STATE(before);
    check_import(address);
}
