/*
 * The caching resource without host memory: the first allocation that the library asks of the C
 * library fails, then the second, and so on. Each operation ends well or says OUT_OF_HOST_MEMORY,
 * and leaves all as it was.
 */
#include "caching_acts.h"

#include "refused_memory.h"

ALL_TESTS(open_late_device, end_sweeps);

/* ---- The sweeps ------------------------------------------------------------------------------ */

#define MOST 200

static void sweep_one(const char *what, int (*act)(void *), void (*undo)(void *),
                      struct subject *subject) {
    int refused = 0;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(act(subject), 0);
        undo(subject);
    }
    for (int n = 1;; n++) {
        assert_in_range(n, 1, MOST);
        char *before = soft->state_dump();
        refuse_memory_of_threads(n);
        int result = act(subject);
        bool fired = end_refusal();
        refused += fired;
        if (result && (!fired || result != GPUMEM_ERROR_OUT_OF_HOST_MEMORY))
            fail_msg("%s, allocation %d: %s", what, n, gpumem_last_error()->message);
        if (result)
            recover_it(subject);
        else
            undo(subject);
        SAME_STATE(before);
        if (!fired)
            break;
    }
    print_message("%s, %zu bytes: %d allocations refused\n", what, subject->bytes, refused);
}

static void sweep_all(gpumem_resource *upstream) {
    static const size_t sizes[] = {4 * KIB, 5 * MIB};
    struct subject subject = {.upstream = upstream, .stream = NEW_STREAM(), .other = NEW_STREAM()};
    for (size_t i = 0; i < COUNT(sizes); i++) {
        subject.bytes = sizes[i];
        subject.cache = make_small_cache(upstream);
        sweep_one("allocate", allocate_it, free_it, &subject);
        sweep_one("free", free_after_another_stream, settle, &subject);
        sweep_one("trim", trim_it, settle, &subject);
        sweep_one("forget", forget_it, settle, &subject);
        sweep_one("end a thread", end_thread, settle, &subject);
        sweep_one("capture", capture_it, end_capture, &subject);
        sweep_one("make and end", make_and_end, settle, &subject);
        OK(gpumem_resource_destroy(subject.cache));
    }
    DESTROY(subject.stream, subject.other, upstream);
}

TEST_IS(a_cache_over_a_pool_survives_failed_host_allocations, sweep_all(new_own_pool()));

TEST(a_cache_over_pinned_memory_survives_failed_host_allocations) {
    gpumem_resource *resource = NEW_PINNED(.keep_nothing = 1, .slab_bytes = 2 * MIB);
    sweep_all(resource);
}
