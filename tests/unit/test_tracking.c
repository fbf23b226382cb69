/* Tracking: what is alive, and who made it. */
#include "library_test.h"

#include <errno.h>
#include <pthread.h>

static gpumem_resource *upstream, *tracked;

BEFORE(open_device) {
    upstream = NEW_VIRTUAL();
    OK(gpumem_tracking_resource_create(upstream, NULL, &tracked));
}

AFTER(close_device) {
    DESTROY(tracked, upstream);
}

EACH_TEST(before, after);

/* Two places of the program; each has one call, so one return address. */
static __attribute__((noinline)) gpumem_buffer *make_here(gpumem_resource *from, size_t bytes) {
    return NEW_BUFFER_WITH(from, bytes, .capacity = 64 * MIB);
}

static __attribute__((noinline)) gpumem_buffer *make_there(gpumem_resource *from, size_t bytes) {
    return NEW_BUFFER(from, bytes);
}

static int within(const void *address, gpumem_buffer *(*function)(gpumem_resource *, size_t)) {
    uintptr_t at = (uintptr_t)address, begin = (uintptr_t)function;
    return at > begin && at < begin + 1024; /* longer than it is, also under a sanitizer */
}

struct seen {
    gpumem_tracked list[16];
    const void *first[16]; /* frame */
    size_t frames[16];
    size_t count, stop_at;
};

static int note(void *user, const gpumem_tracked *entry) {
    struct seen *seen = user;
    assert_true(seen->count < COUNT(seen->list));
    seen->list[seen->count] = *entry;
    seen->first[seen->count] = entry->frame_count ? entry->frames[0] : NULL;
    seen->frames[seen->count] = entry->frame_count;
    seen->count++;
    return seen->count == seen->stop_at;
}

TEST(live_buffers_are_listed_with_their_call_sites) {
    struct seen seen = {.count = 0};
    gpumem_buffer *a = make_here(tracked, 3 * MIB), *b = make_there(tracked, MIB),
                  *c = make_here(tracked, 5 * MIB);
    OK(gpumem_buffer_grow(a, 7 * MIB, NULL));
    OK(gpumem_buffer_free(c, NULL));
    OK(gpumem_tracking_visit(tracked, note, &seen));
    assert_int_equal(seen.count, 2);
    MEMBERS(seen.list[0], (number, 1), (bytes, 7 * MIB), (committed_bytes, 8 * MIB),
            (pointer, gpumem_buffer_pointer(a)));
    MEMBERS(seen.list[1], (number, 2), (bytes, MIB));
    assert_int_equal(seen.frames[0], 1);
    assert_true(within(seen.first[0], make_here));
    assert_true(within(seen.first[1], make_there));
    assert_ptr_not_equal(seen.first[0], seen.first[1]);
    seen = (struct seen){.stop_at = 1};
    OK(gpumem_tracking_visit(tracked, note, &seen));
    assert_int_equal(seen.count, 1);
    OK(gpumem_buffer_shrink(a, MIB, NULL));
    seen = (struct seen){.count = 0};
    OK(gpumem_tracking_visit(tracked, note, &seen));
    assert_int_equal(seen.list[0].bytes, MIB);
    DESTROY(a, b);
    seen = (struct seen){.count = 0};
    OK(gpumem_tracking_visit(tracked, note, &seen));
    assert_int_equal(seen.count, 0);
}

/* Whatever lies between: other wrappers, those that take buffers, and the program's own. */
TEST(the_call_site_is_in_the_program) {
    gpumem_resource *aligned;
    struct seen seen = {.count = 0};
    OK(gpumem_alignment_resource_create(tracked, NULL, &aligned));
    gpumem_resource *outer = NEW_LIMIT(aligned, GIB);
    gpumem_buffer *direct = make_there(tracked, MIB), *through = make_there(outer, MIB);
    OK(gpumem_tracking_visit(tracked, note, &seen));
    assert_int_equal(seen.count, 2);
    assert_ptr_equal(seen.first[0], seen.first[1]);
    DESTROY(direct, through, outer, aligned);
}

TEST(call_stacks_begin_at_the_programs_call) {
    struct seen one = {.count = 0}, many = {.count = 0};
    gpumem_resource *deep = NEW_TRACKING(upstream, .frames = 16);
    gpumem_buffer *a = make_there(tracked, MIB), *b = make_there(deep, MIB);
    OK(gpumem_tracking_visit(tracked, note, &one));
    OK(gpumem_tracking_visit(deep, note, &many));
    assert_ptr_equal(one.first[0], many.first[0]);
    assert_true(many.frames[0] > 2 && many.frames[0] <= 16);
    DESTROY(a, b, deep);
    FAILS(INVALID_ARGUMENT,
          gpumem_tracking_resource_create(upstream, GPUMEM_TRACKING_OPTIONS(.frames = 65), &deep));
}

/* ---- Reports --------------------------------------------------------------------------------- */

static char text[1 << 16];
static size_t used;

static int take(void *user, const char *more, size_t bytes) {
    if (user)
        return EPIPE;
    assert_true(used + bytes < sizeof text);
    memcpy(text + used, more, bytes);
    used += bytes;
    text[used] = 0;
    return 0;
}

static void begins(const char *with) {
    if (strncmp(text, with, strlen(with)) != 0)
        fail_msg("not '%s': %s", with, text);
}

TEST(reports_are_sorted_by_bytes) {
    gpumem_buffer *list[4];
    list[0] = make_there(tracked, MIB);
    for (int i = 1; i < 4; i++)
        list[i] = make_here(tracked, 2 * MIB);
    used = 0;
    OK(gpumem_tracking_report(tracked, GPUMEM_REPORT_TEXT, take, NULL));
    begins("7340032 bytes in 4 live allocations, from 2 places\n\n6291456 bytes in 3 ");
    assert_non_null(strstr(text, "\n1048576 bytes in 1 allocation, 2097152 committed"));
    assert_non_null(strstr(text, "unit/run")); /* the program's file, or a function's name */
    used = 0;
    OK(gpumem_tracking_report(tracked, GPUMEM_REPORT_JSON, take, NULL));
    begins("{\"bytes\": 7340032, \"allocations\": 4, \"sites\": [");
    int depth = 0;
    for (const char *c = text; *c; c++)
        depth += *c == '{' || *c == '[' ? 1 : *c == '}' || *c == ']' ? -1 : 0;
    assert_int_equal(depth, 0);
    FAILS(SYSTEM, gpumem_tracking_report(tracked, GPUMEM_REPORT_TEXT, take, text));
    assert_int_equal(gpumem_last_error()->system_code, EPIPE);
    FAILS(INVALID_ARGUMENT, gpumem_tracking_report(upstream, GPUMEM_REPORT_TEXT, take, NULL));
    FAILS(INVALID_ARGUMENT, gpumem_tracking_report(tracked, (gpumem_report_format)2, take, NULL));
    FAILS(INVALID_ARGUMENT, gpumem_tracking_report(tracked, GPUMEM_REPORT_TEXT, NULL, NULL));
    DESTROY_EACH(list, 4);
}

/* ---- Threads --------------------------------------------------------------------------------- */

static int ignore(void *user, const gpumem_tracked *entry) {
    return entry->bytes == 0; /* never */
}

static void *churn(void *user) {
    gpumem_buffer *kept[32] = {NULL};
    for (int i = 0; i < 2000; i++) {
        gpumem_buffer **slot = &kept[i % 32];
        if (gpumem_buffer_free(*slot, NULL) != GPUMEM_OK ||
            gpumem_buffer_allocate(user, 64, NULL, slot) != GPUMEM_OK)
            return user;
    }
    for (int i = 0; i < 32; i++)
        if (gpumem_buffer_free(kept[i], NULL) != GPUMEM_OK)
            return user;
    return NULL;
}

TEST(reports_can_be_made_while_threads_allocate) {
    pthread_t threads[4];
    gpumem_resource *pool = NEW_POOL();
    gpumem_resource *resource = NEW_TRACKING(pool, .frames = 4);
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, churn, resource), 0);
    for (int i = 0; i < 50; i++)
        OK(gpumem_tracking_visit(resource, ignore, NULL));
    for (int i = 0; i < 4; i++) {
        void *failed;
        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
    struct seen seen = {.count = 0};
    OK(gpumem_tracking_visit(resource, note, &seen));
    assert_int_equal(seen.count, 0);
    DESTROY(resource, pool);
}
