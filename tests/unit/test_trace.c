/* The log that can be replayed: what it says, in which order, and what becomes of it when it cannot
 * be written. */
#include "library_test.h"
#include "temporary.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>

/* What was written, and an errno to answer from some byte on. */
struct sink {
    char text[1 << 22];
    size_t used, writes;
    size_t refuse_from;
};

static struct sink sink;
static gpumem_resource *upstream, *traced;

static int take(void *user, const char *text, size_t bytes) {
    struct sink *s = user;
    s->writes++;
    if (s->refuse_from && s->used + bytes > s->refuse_from)
        return ENOSPC;
    assert_true(s->used + bytes < sizeof s->text);
    memcpy(s->text + s->used, text, bytes);
    s->used += bytes;
    s->text[s->used] = 0;
    return 0;
}

BEFORE(open_device) {
    memset(&sink, 0, sizeof sink);
    upstream = NEW_VIRTUAL();
    traced = NEW_TRACE(upstream, .write = take, .user = &sink);
}

static int teardown(void **state) {
    DESTROY(traced, upstream);
    return close_device(state);
}

EACH_TEST(before, teardown);

static gpumem_buffer *make(size_t bytes, size_t capacity) {
    return NEW_BUFFER_WITH(traced, bytes, .capacity = capacity);
}

/* The fields of the `row`th line after the two of the header; quotes are left as they are. */
static void read_row(unsigned row, char fields[14][256]) {
    const char *at = sink.text;
    for (unsigned i = 0; i < row + 2; i++) {
        at = strchr(at, '\n');
        assert_non_null(at);
        at++;
    }
    for (unsigned i = 0; i < 14; i++) {
        size_t length = strcspn(at, i < 13 ? ",\n" : "\n");
        assert_true(length < 256);
        memcpy(fields[i], at, length);
        fields[i][length] = 0;
        at += length;
        assert_int_equal(*at, i < 13 ? ',' : '\n');
        at++;
    }
}

TEST(each_operation_is_traced) {
    char f[14][256], text[64];
    gpumem_buffer *buffer = make(3 * MIB, 64 * MIB);
    CUdeviceptr pointer = gpumem_buffer_pointer(buffer);
    OK(gpumem_buffer_grow(buffer, 10 * MIB, NULL));
    OK(gpumem_buffer_shrink(buffer, MIB, NULL));
    OK(gpumem_buffer_free(buffer, NULL));
    assert_int_equal(sink.used, 0); /* gathered */
    OK(gpumem_trace_flush(traced));
    assert_int_equal(sink.writes, 1);
    assert_int_equal(strncmp(sink.text, "#gpumem-log,1\nsequence,time_ns,thread,event,buffer,", 50),
                     0);
    read_row(0, f);
    assert_string_equal(f[3], "note");
    assert_non_null(strstr(f[13], "virtual resource of device 0"));
    static const char *const events[] = {"allocate", "resize", "resize", "free"};
    static const char *const sizes[] = {"3145728", "10485760", "1048576", "1048576"};
    unsigned long long last = 0;
    snprintf(text, sizeof text, "0x%llx", pointer);
    for (unsigned i = 0; i < 4; i++) {
        read_row(i + 1, f);
        assert_int_equal(atoi(f[0]), i + 2);
        assert_true(strtoull(f[1], NULL, 10) >= last);
        last = strtoull(f[1], NULL, 10);
        assert_int_equal(atoi(f[2]), gettid());
        assert_string_equal(f[3], events[i]);
        assert_string_equal(f[4], "1");
        assert_string_equal(f[5], sizes[i]);
        assert_string_equal(f[8], "0x0");
        assert_string_equal(f[9], text);
        assert_string_equal(f[12], "OK");
        assert_string_equal(f[13], "");
    }
    read_row(1, f);
    assert_string_equal(f[7], "67108864");
    assert_string_equal(f[10], "4194304");
}

TEST(failures_are_traced_with_their_reason) {
    char f[14][256];
    gpumem_buffer *none;
    FAILS(OUT_OF_MEMORY, gpumem_buffer_allocate(traced, (size_t)1 << 46, NULL, &none));
    OK(gpumem_trace_flush(traced));
    read_row(1, f);
    assert_string_equal(f[3], "allocate");
    assert_string_equal(f[4], "0");
    assert_string_equal(f[12], "OUT_OF_MEMORY");
    assert_true(strlen(f[13]) > 10);
}

TEST(notes_are_escaped) {
    OK(gpumem_trace_note(traced, "plain"));
    OK(gpumem_trace_note(traced, "a,b"));
    OK(gpumem_trace_note(traced, "say \"no\"\nagain"));
    char longest[3000];
    memset(longest, '"', sizeof longest - 1);
    longest[sizeof longest - 1] = 0;
    OK(gpumem_trace_note(traced, longest));
    OK(gpumem_trace_flush(traced));
    assert_non_null(strstr(sink.text, ",OK,plain\n"));
    assert_non_null(strstr(sink.text, ",OK,\"a,b\"\n"));
    assert_non_null(strstr(sink.text, ",OK,\"say \"\"no\"\"\nagain\"\n"));
    assert_int_equal(sink.text[sink.used - 1], '\n');
    assert_int_equal(strlen(strrchr(sink.text, ',') + 1), 2 * 1000 + 3);
    FAILS(INVALID_ARGUMENT, gpumem_trace_note(traced, NULL));
    FAILS(INVALID_ARGUMENT, gpumem_trace_note(upstream, "x"));
    FAILS_SAYING(INVALID_ARGUMENT, "does not trace", gpumem_trace_flush(upstream));
}

TEST(a_trace_that_cannot_be_written_fails_no_allocation) {
    sink.refuse_from = 100;
    gpumem_buffer *buffer = make(MIB, 0);
    FAILS(SYSTEM, gpumem_trace_flush(traced));
    assert_int_equal(gpumem_last_error()->system_code, ENOSPC);
    SAYS("2 lines are missing"); /* the first note and the allocation */
    assert_int_equal(sink.used, 0);
    OK(gpumem_buffer_free(buffer, NULL));
    sink.refuse_from = 0;
    FAILS(SYSTEM, gpumem_trace_flush(traced)); /* with a hole it would tell lies */
    SAYS("3 lines are missing");
    assert_int_equal(sink.used, 0);
    gpumem_set_log(NULL, NULL, GPUMEM_LOG_ERROR);
}

TEST(a_trace_file_is_complete_after_destruction) {
    char path[TEMPORARY_ROOM];
    int fd = temporary_file(path, "trace");
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "old text that must go", 21), 21);
    close(fd);
    gpumem_buffer *buffer;
    gpumem_resource *resource = NEW_TRACE(upstream, .path = path, .buffer_bytes = 1);
    for (int i = 0; i < 200; i++) {
        buffer = NEW_BUFFER(resource, MIB);
        OK(gpumem_buffer_free(buffer, NULL));
    }
    OK(gpumem_resource_destroy(resource));
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    char line[4096];
    unsigned lines = 0, frees = 0;
    while (fgets(line, sizeof line, file)) {
        if (lines == 0)
            assert_string_equal(line, "#gpumem-log,1\n");
        lines++;
        frees += strstr(line, ",free,") != NULL;
    }
    fclose(file);
    unlink(path);
    assert_int_equal(lines, 2 + 1 + 400);
    assert_int_equal(frees, 200);
    FAILS(SYSTEM, gpumem_trace_resource_create(
                      upstream, GPUMEM_TRACE_OPTIONS(.path = "/no/such/folder/x"), &resource));
    FAILS(INVALID_ARGUMENT, gpumem_trace_resource_create(upstream, NULL, &resource));
    FAILS(INVALID_ARGUMENT,
          gpumem_trace_resource_create(upstream, GPUMEM_TRACE_OPTIONS(.path = "x", .write = take),
                                       &resource));
}

/* A program is not ended by who stops reading its log. */
TEST(a_pipe_without_a_reader_ends_only_the_trace) {
    char folder[TEMPORARY_ROOM], path[TEMPORARY_ROOM + 8];
    assert_non_null(temporary_folder(folder, "trace"));
    snprintf(path, sizeof path, "%s/pipe", folder);
    assert_int_equal(mkfifo(path, 0600), 0);
    int reader = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    assert_true(reader >= 0);
    gpumem_resource *resource = NEW_TRACE(upstream, .path = path);
    close(reader);
    gpumem_buffer *buffer = NEW_BUFFER(resource, MIB);
    FAILS(SYSTEM, gpumem_trace_flush(resource));
    assert_int_equal(gpumem_last_error()->system_code, EPIPE);
    DESTROY(buffer, resource);
    unlink(path);
    rmdir(folder);
}

/* ---- Threads --------------------------------------------------------------------------------- */

#define THREADS 4
#define ROUNDS  500

static void *churn(void *user) {
    gpumem_resource *resource = user;
    for (int i = 0; i < ROUNDS; i++) {
        gpumem_buffer *buffer;
        if (gpumem_buffer_allocate(resource, 1 + (size_t)i * 64, NULL, &buffer) != GPUMEM_OK ||
            gpumem_buffer_free(buffer, NULL) != GPUMEM_OK)
            return user;
    }
    return NULL;
}

/* Read in order, no address is handed out twice, and none is freed that is not. */
static void check_order(void) {
    static CUdeviceptr live[THREADS * 4];
    size_t count = 0, events = 0;
    unsigned long long last = 0;
    char *save = NULL;
    memset(live, 0, sizeof live);
    for (char *line = strtok_r(sink.text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        unsigned long long sequence, time, pointer;
        char event[16];
        if (sscanf(line, "%llu,%llu,%*u,%15[a-z],%*u,%*u,%*u,%*u,0x%*x,0x%llx", &sequence, &time,
                   event, &pointer) != 4)
            continue;
        assert_int_equal(sequence, last + 1);
        last = sequence;
        if (strcmp(event, "note") == 0)
            continue;
        events++;
        size_t i = 0;
        while (i < count && live[i] != pointer)
            i++;
        if (strcmp(event, "allocate") == 0) {
            assert_int_equal(i, count);
            assert_true(count < COUNT(live));
            live[count++] = pointer;
        } else {
            assert_true(i < count);
            live[i] = live[--count];
        }
    }
    assert_int_equal(events, 2 * THREADS * ROUNDS);
    assert_int_equal(count, 0);
}

TEST(operations_of_threads_are_traced_in_a_replayable_order) {
    pthread_t threads[THREADS];
    gpumem_resource *pool = NEW_POOL();
    gpumem_resource *resource = NEW_TRACE(pool, .write = take, .user = &sink);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, churn, resource), 0);
    for (int i = 0; i < THREADS; i++) {
        void *failed;
        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
    DESTROY(resource, pool);
    check_order();
}
