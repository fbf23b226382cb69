/* Export and import between processes. The other process is this program again, by exec. */
#include "share/refusal.h"
#include "share_test.h"

EACH_TEST(setup, teardown);

/* ---- The other process ----------------------------------------------------------------------- */

static unsigned char pattern(size_t chunk) {
    return (unsigned char)(chunk * 31 + 7);
}

/* 0, or which step failed. */
static int check_content(gpumem_buffer *buffer) {
    for (size_t chunk = 0; chunk < gpumem_buffer_size(buffer) / (2 * MIB); chunk++) {
        unsigned char bytes[2];
        size_t at = chunk * 2 * MIB;
        if (gpumem_buffer_read(buffer, at, &bytes[0], 1, NULL) != GPUMEM_OK ||
            gpumem_buffer_read(buffer, at + 2 * MIB - 1, &bytes[1], 1, NULL) != GPUMEM_OK ||
            gpumem_stream_synchronize(device, NULL) != GPUMEM_OK)
            return 20;
        if (bytes[0] != pattern(chunk) || bytes[1] != pattern(chunk))
            return 21;
    }
    return 0;
}

static int receive_and_check(int socket, const gpumem_share_options *options) {
    gpumem_buffer *buffer, *same;
    if (gpumem_import_receive(device, socket, options, &buffer) != GPUMEM_OK) {
        fprintf(stderr, "receive: %s\n", gpumem_last_error()->message);
        return 10;
    }
    int wrong = check_content(buffer);
    if (wrong)
        return wrong;
    if (gpumem_buffer_resource(buffer) || gpumem_device_close(device) != GPUMEM_ERROR_BUSY)
        return 11;
    uint64_t maps = soft->call_count("cuMemMap");
    if (gpumem_import_receive(device, socket, options, &same) != GPUMEM_OK)
        return 12;
    if (gpumem_buffer_pointer(same) != gpumem_buffer_pointer(buffer) ||
        soft->call_count("cuMemMap") != maps)
        return 13;
    if (gpumem_buffer_free(buffer, NULL) != GPUMEM_OK || check_content(same) != 0)
        return 14;
    if (gpumem_buffer_write(same, 5, "reader", 6, NULL) != GPUMEM_OK ||
        gpumem_stream_synchronize(device, NULL) != GPUMEM_OK)
        return 15;
    return gpumem_buffer_free(same, NULL) == GPUMEM_OK ? 0 : 16;
}

/* Gives up in the middle of the protocol. */
static int vanish(int socket) {
    char offer[16];
    return recv(socket, offer, sizeof offer, MSG_WAITALL) == sizeof offer ? 0 : 30;
}

static int other_process(const char *what, int socket) {
    if (strcmp(what, "vanish") == 0)
        return vanish(socket);
    if (open_device(NULL) != 0)
        return 1;
    size_t before = open_descriptors();
    int result;
    if (strcmp(what, "small") == 0) {
        gpumem_buffer *none = NULL;
        const gpumem_share_options options = {.size = sizeof options, .maximum_bytes = MIB};
        result =
            gpumem_import_receive(device, socket, &options, &none) == GPUMEM_ERROR_DATA ? 0 : 40;
    } else {
        result = receive_and_check(socket, NULL);
    }
    if (result == 0 && open_descriptors() != before)
        result = 2;
    if (result == 0 && close_device(NULL) != 0)
        result = 3;
    char *leaks = soft->leak_report();
    if (result == 0 && leaks[0])
        result = 4;
    soft->free_text(leaks);
    return result;
}

/* ---- This process ---------------------------------------------------------------------------- */

static gpumem_buffer *filled_buffer(size_t chunks) {
    gpumem_buffer *buffer = NEW_BUFFER_WITH(resource, 2 * MIB, .capacity = chunks * 2 * MIB);
    for (size_t i = 0; i < chunks; i++) {
        OK(gpumem_buffer_grow(buffer, (i + 1) * 2 * MIB, NULL));
        OK(gpumem_buffer_fill(buffer, i * 2 * MIB, 1, pattern(i), NULL));
        OK(gpumem_buffer_fill(buffer, (i + 1) * 2 * MIB - 1, 1, pattern(i), NULL));
    }
    synchronize(NULL);
    return buffer;
}

static void share_with_child(int type, size_t chunks) {
    size_t descriptors = open_descriptors();
    gpumem_buffer *buffer = filled_buffer(chunks);
    gpumem_export *exported = NEW_EXPORT(buffer);
    assert_int_equal(export_info(exported).descriptor_count, chunks);
    assert_int_equal(export_info(exported).bytes, chunks * 2 * MIB);
    int socket;
    pid_t child = other_start("read", type, &socket);
    OK(gpumem_export_send(exported, socket, NULL));
    OK(gpumem_export_send(exported, socket, NULL));
    assert_int_equal(other_end(child, socket), 0);
    char text[6];
    OK(gpumem_buffer_read(buffer, 5, text, 6, NULL)); /* no copy: what it wrote is here */
    synchronize(NULL);
    assert_memory_equal(text, "reader", 6);
    DESTROY(exported, buffer);
    OK(gpumem_device_trim(device, 1));
    assert_int_equal(open_descriptors(), descriptors);
}

TEST(another_process_reads_and_writes_an_imported_buffer) {
    share_with_child(SOCK_STREAM, 1);
    share_with_child(SOCK_STREAM, 3);
}

/* More than one message of descriptors. */
TEST(a_buffer_of_300_handles_is_shared) {
    share_with_child(SOCK_STREAM, 300);
    share_with_child(SOCK_SEQPACKET, 300);
}

TEST(an_export_over_the_importers_limit_is_refused) {
    gpumem_buffer *buffer = filled_buffer(2);
    gpumem_export *exported = NEW_EXPORT(buffer);
    int socket;
    pid_t child = other_start("small", SOCK_STREAM, &socket);
    FAILS_SAYING(PEER, "refused", gpumem_export_send(exported, socket, NULL));
    SAYS("more than the 1048576 bytes");
    assert_int_equal(other_end(child, socket), 0);
    DESTROY(exported, buffer);
}

TEST(sending_to_a_dead_importer_fails) {
    gpumem_buffer *buffer = filled_buffer(2);
    gpumem_export *exported = NEW_EXPORT(buffer);
    int socket;
    pid_t child = other_start("vanish", SOCK_STREAM, &socket);
    FAILS(PEER, gpumem_export_send(exported, socket, NULL));
    assert_int_equal(other_end(child, socket), 0);
    int sockets[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
    FAILS_SAYING(PEER, "did not respond within 20 ms",
                 gpumem_export_send(exported, sockets[0], GPUMEM_SHARE_OPTIONS(.timeout_ms = 20)));
    close(sockets[0]);
    close(sockets[1]);
    FAILS(INVALID_ARGUMENT, gpumem_export_send(exported, -1, NULL));
    gpumem_buffer *nothing = NULL;
    gpumem_resource *no_pool = NULL;
    FAILS(INVALID_ARGUMENT, gpumem_import_receive(device, -1, NULL, &nothing));
    SAYS("socket is -1");
    FAILS(INVALID_ARGUMENT, gpumem_pool_receive(device, -1, NULL, &no_pool));
    DESTROY(exported, buffer);
}

TEST(receiving_from_a_dead_or_foreign_exporter_fails) {
    gpumem_buffer *none = (gpumem_buffer *)state;
    int sockets[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
    assert_int_equal(send(sockets[1], "gpum", 4, 0), 4);
    close(sockets[1]);
    FAILS_SAYING(PEER, "closed", gpumem_import_receive(device, sockets[0], NULL, &none));
    close(sockets[0]);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
    assert_int_equal(send(sockets[1], "GET / HTTP/1.0\r\n\r\n", 18, 0), 18);
    FAILS_SAYING(PEER, "another protocol", gpumem_import_receive(device, sockets[0], NULL, &none));
    FAILS(PEER,
          gpumem_import_receive(device, sockets[0], GPUMEM_SHARE_OPTIONS(.timeout_ms = 20), &none));
    close(sockets[0]);
    close(sockets[1]);
    assert_ptr_equal(none, state);
}

TEST(an_export_holds_its_buffer) {
    gpumem_buffer *buffer = filled_buffer(4);
    gpumem_export *exported = NEW_EXPORT(buffer);
    assert_int_equal(device_stats().exports, 1);
    FAILS(BUSY, gpumem_buffer_shrink(buffer, 2 * MIB, NULL));
    OK(gpumem_buffer_free(buffer, NULL));
    assert_int_equal(device_stats().committed_bytes, 8 * MIB);
    FAILS(BUSY, gpumem_resource_destroy(resource));
    OK(gpumem_export_destroy(exported));
    assert_int_equal(device_stats().committed_bytes, 0);
    OK(gpumem_export_destroy(NULL));
}

/* Without a socket, in one process: what another transport would do. */
TEST(a_description_can_be_sent_by_other_means) {
    gpumem_buffer *buffer = filled_buffer(3), *imported, *read_only;
    const void *description;
    size_t bytes;
    int fds[3];
    gpumem_export *exported = NEW_EXPORT(buffer);
    OK(export_description(exported, &description, &bytes));
    for (size_t i = 0; i < 3; i++)
        OK(export_descriptor(exported, i, &fds[i]));
    assert_int_equal(export_info(exported).descriptor_count, 3);
    FAILS(DATA, gpumem_import_create(device, description, bytes, fds, 2, NULL, &imported));
    OK(gpumem_import_create(device, description, bytes, fds, 3, NULL, &imported));
    assert_true(gpumem_buffer_pointer(imported) != gpumem_buffer_pointer(buffer));
    assert_int_equal(chunks_of(imported), 3);
    assert_int_equal(check_content(imported), 0);
    assert_int_equal(device_stats().imported_bytes, 6 * MIB);
    FAILS(NOT_SUPPORTED, gpumem_buffer_grow(imported, 8 * MIB, NULL));
    gpumem_export *again;
    FAILS(NOT_SUPPORTED, gpumem_export_create(imported, &again));
    OK(gpumem_import_create(device, description, bytes, fds, 3,
                            GPUMEM_SHARE_OPTIONS(.access = GPUMEM_ACCESS_READ), &read_only));
    unsigned long long flags = 0;
    const CUmemLocation location = {.type = CU_MEM_LOCATION_TYPE_DEVICE,
                                    .id = gpumem_device_handle(device)};
    cu->cuMemGetAccess(&flags, &location, gpumem_buffer_pointer(read_only));
    assert_int_equal(flags, CU_MEM_ACCESS_FLAGS_PROT_READ);
    /* What an importer may do, it can find out beforehand. */
    gpumem_buffer *const both[] = {imported, read_only};
    for (int i = 0; i < 2; i++) {
        gpumem_access access = GPUMEM_ACCESS_NONE;
        OK(gpumem_buffer_get_access(both[i], 0, 0, &access));
        assert_int_equal(access, i ? GPUMEM_ACCESS_READ : GPUMEM_ACCESS_READ_WRITE);
        assert_int_equal(attributes_of(both[i]).read_only, i);
    }
    FAILS(NOT_PERMITTED, gpumem_buffer_fill(read_only, 0, MIB, 1, NULL));
    FAILS(NOT_PERMITTED, gpumem_buffer_copy(read_only, 0, imported, 0, MIB, NULL));
    /* Memory lives until both have let go. */
    DESTROY(exported, buffer);
    assert_int_equal(check_content(imported), 0);
    DESTROY(imported, read_only);
    assert_int_equal(device_stats().imported_bytes, 0);
}

TEST(descriptors_that_are_not_memory_are_refused) {
    gpumem_buffer *buffer = filled_buffer(3), *none = buffer;
    const void *description;
    size_t bytes;
    int fds[3], sockets[2];
    gpumem_export *exported = NEW_EXPORT(buffer);
    OK(export_description(exported, &description, &bytes));
    for (size_t i = 0; i < 3; i++)
        OK(export_descriptor(exported, i, &fds[i]));
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
    char *before = soft->state_dump();
    fds[2] = sockets[0];
    FAILS(DATA, gpumem_import_create(device, description, bytes, fds, 3, NULL, &none));
    fds[2] = -1;
    FAILS(DATA, gpumem_import_create(device, description, bytes, fds, 3, NULL, &none));
    fds[2] = fileno(stdin); /* a file perhaps, but no memory */
    assert_int_not_equal(gpumem_import_create(device, description, bytes, fds, 3, NULL, &none),
                         GPUMEM_OK);
    /* The right kind, and less of it than the description says. */
    unsigned char *lie = malloc(bytes);
    memcpy(lie, description, bytes);
    uint64_t size = 4 * MIB, committed = 8 * MIB;
    memcpy(lie + bytes - 8, &size, sizeof size);
    memcpy(lie + 80, &committed, sizeof committed);
    OK(export_descriptor(exported, 2, &fds[2]));
    assert_int_not_equal(gpumem_import_create(device, lie, bytes, fds, 3, NULL, &none), GPUMEM_OK);
    assert_non_null(strstr(gpumem_last_error()->message, "cuMemMap"));
    free(lie);
    SAME_STATE(before);
    assert_ptr_equal(none, buffer);
    assert_int_equal(device_stats().imported_bytes, 0);
    close(sockets[0]);
    close(sockets[1]);
    DESTROY(exported, buffer);
}

/* Where the first lies says nothing of the others. */
TEST(handles_in_different_locations_are_refused) {
    gpumem_buffer *buffer = filled_buffer(2), *host, *none = buffer;
    const void *description;
    size_t bytes;
    int fds[2], host_fd;
    gpumem_resource *on_host = NEW_VIRTUAL(.location = GPUMEM_LOCATION_HOST_NUMA);
    host = NEW_BUFFER(on_host, 2 * MIB);
    gpumem_export *exported = NEW_EXPORT(buffer);
    gpumem_export *hosts = NEW_EXPORT(host);
    OK(export_description(exported, &description, &bytes));
    OK(export_descriptor(exported, 0, &fds[0]));
    OK(export_descriptor(hosts, 0, &host_fd));
    char *before = soft->state_dump();
    fds[1] = host_fd;
    FAILS(DATA, gpumem_import_create(device, description, bytes, fds, 2, NULL, &none));
    SAYS("handle 1 of 2");
    fds[1] = fds[0];
    fds[0] = host_fd;
    FAILS(DATA, gpumem_import_create(device, description, bytes, fds, 2, NULL, &none));
    assert_ptr_equal(none, buffer);
    SAME_STATE(before);
    DESTROY(hosts, exported, host, buffer, on_host);
}

/* A packet of no bytes reads like a hang-up, and may carry a descriptor all the same. */
TEST(descriptors_of_an_empty_packet_are_closed) {
    gpumem_buffer *buffer = filled_buffer(1), *none = buffer;
    const void *description;
    size_t bytes;
    int fd, sockets[2];
    gpumem_export *exported = NEW_EXPORT(buffer);
    OK(export_description(exported, &description, &bytes));
    OK(export_descriptor(exported, 0, &fd));
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sockets), 0);
    struct {
        char magic[8];
        uint32_t version, description_bytes;
    } offer = {{'g', 'p', 'u', 'm', 'e', 'm', '-', 'o'}, 2, (uint32_t)bytes};
    assert_int_equal(send(sockets[1], &offer, sizeof offer, 0), sizeof offer);
    assert_int_equal(send(sockets[1], description, bytes, 0), bytes);
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = {{0}};
    struct msghdr empty = {.msg_control = &control, .msg_controllen = sizeof control.bytes};
    control.header.cmsg_level = SOL_SOCKET;
    control.header.cmsg_type = SCM_RIGHTS;
    control.header.cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(&control.header), &fd, sizeof fd);
    assert_int_equal(sendmsg(sockets[1], &empty, 0), 0);
    size_t descriptors = open_descriptors();
    FAILS(PEER, gpumem_import_receive(device, sockets[0], NULL, &none));
    assert_int_equal(open_descriptors(), descriptors);
    assert_ptr_equal(none, buffer);
    close(sockets[0]);
    close(sockets[1]);
    DESTROY(exported, buffer);
}

/* What the other side writes ends up on terminals: control characters of one and of two bytes, a
 * change of the text's direction, and what is not UTF-8 at all. */
TEST(what_is_not_printable_in_a_refusal_is_escaped) {
    static const struct {
        const char *sent, *shown;
    } words[] = {
        {"\033[2Jgone\n", "\\x1b[2Jgone\\x0a"},
        {"\xc2\x9b"
         "31mred",
         "\\xc2\\x9b31mred"},
        {"\xe2\x80\xaegnp.exe", "\\xe2\\x80\\xaegnp.exe"},
        {"\xff\xc3(\xed\xa0\x80", "\\xff\\xc3(\\xed\\xa0\\x80"},
        {"caf\xc3\xa9", "caf\xc3\xa9"},
    };
    struct {
        char magic[8];
        uint32_t verdict;
        int32_t status;
        char message[240];
    } answer = {{'g', 'p', 'u', 'm', 'e', 'm', '-', 'a'}, 3, 77, ""};
    struct {
        char magic[8];
        int32_t status;
        uint32_t zero;
        char message[240];
    } of_pool = {{'g', 'p', 'u', 'm', 'e', 'm', '-', 'q'}, 77, 0, ""};
    gpumem_buffer *buffer = filled_buffer(1);
    gpumem_export *exported = NEW_EXPORT(buffer);
    gpumem_resource *pool = NEW_POOL(.pool = GPUMEM_POOL_OWN, .ipc = 1);
    int sockets[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
    for (size_t i = 0; i < COUNT(words); i++) {
        char wanted[256];
        snprintf(wanted, sizeof wanted, "refused (GPUMEM_ERROR_?): %s", words[i].shown);
        strcpy(answer.message, words[i].sent);
        strcpy(of_pool.message, words[i].sent);
        assert_int_equal(send(sockets[1], &answer, sizeof answer, 0), sizeof answer);
        FAILS_SAYING(PEER, wanted, gpumem_export_send(exported, sockets[0], NULL));
        assert_int_equal(send(sockets[1], &of_pool, sizeof of_pool, 0), sizeof of_pool);
        FAILS_SAYING(PEER, wanted, gpumem_pool_send(pool, sockets[0], NULL));
    }
    /* As long as can be, without an end. */
    memset(answer.message, 0xff, sizeof answer.message);
    assert_int_equal(send(sockets[1], &answer, sizeof answer, 0), sizeof answer);
    FAILS_SAYING(PEER, "\\xff\\xff", gpumem_export_send(exported, sockets[0], NULL));
    close(sockets[0]);
    close(sockets[1]);
    DESTROY(exported, buffer, pool);
}

/* Cut where a character ends, so that the other side can print it. */
TEST(a_refusal_is_cut_between_characters) {
    char text[GM_REFUSAL_BYTES], longest[300] = "a";
    while (strlen(longest) < 290)
        strcat(longest, "\xc3\xa9");
    (void)gm_fail(GPUMEM_ERROR_DATA, "%s", longest);
    gm_refusal_write(text);
    assert_int_equal(strlen(text), GM_REFUSAL_BYTES - 1);
    FAILS(PEER, gm_refusal_read(GPUMEM_ERROR_DATA, text));
    SAYS(text);
    (void)gm_fail(GPUMEM_ERROR_DATA, "%s", longest + 1);
    gm_refusal_write(text);
    assert_int_equal(strlen(text), GM_REFUSAL_BYTES - 2);
    FAILS(PEER, gm_refusal_read(GPUMEM_ERROR_DATA, text));
    SAYS(text);
}

CHILD(other) {
    return other_process(argv[1], atoi(argv[2]));
}
