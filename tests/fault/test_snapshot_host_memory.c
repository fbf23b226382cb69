/* A snapshot without host memory: the first allocation that the library asks for fails, then the
 * second, and so on. It says so, nothing is returned or written, and nothing is left. */
#include "snapshot_subject.h"

#include "refused_memory.h"

EACH_TEST(open_device, close_device);

#define MOST 1000

static int count_text(void *user, const char *text, size_t bytes) {
    *(size_t *)user += bytes;
    return 0;
}

/* 0, or what went wrong. */
static const char *refuse(int n, bool *fired) {
    char *text = NULL;
    refuse_memory_of_threads(n);
    gpumem_status status = snapshot_of(device, &text);
    *fired = end_refusal();
    if (status == GPUMEM_OK) {
        const char *wrong = *fired ? "it succeeded" : is_whole(text) ? NULL : "not all is told";
        free(text);
        return wrong;
    }
    if (!*fired || text)
        return "it failed without need, or gave a text";
    return status == GPUMEM_ERROR_OUT_OF_HOST_MEMORY ? NULL : gpumem_last_error()->message;
}

TEST(a_snapshot_without_host_memory_is_all_or_nothing) {
    struct held held = {0};
    hold_all(&held);
    char *before = soft->state_dump(), *after;
    bool fired = true;
    int n = 1;
    for (; fired; n++) {
        assert_in_range(n, 1, MOST);
        const char *wrong = refuse(n, &fired);
        if (wrong)
            fail_msg("allocation %d: %s", n, wrong);
        size_t written = 0;
        refuse_memory_of_threads(n);
        gpumem_status status = gpumem_snapshot_write(library, NULL, count_text, &written);
        bool again = end_refusal();
        assert_true(again == fired && (status == GPUMEM_OK) == !again);
        assert_true((written == 0) == again);
    }
    print_message("snapshot: %d allocations refused\n", n - 2);
    assert_true(n > 5);
    after = soft->state_dump();
    assert_string_equal(before, after);
    free(before);
    free(after);
    let_all_go(&held);
}

/* What there is no memory to note is held all the same, and counted as not listed. */
TEST(objects_missing_from_a_snapshot_for_lack_of_memory_are_counted) {
    gpumem_physical *physical = NULL;
    bool fired = false;
    for (int n = 1; n < MOST; n++) {
        refuse_memory_of_threads(n);
        gpumem_status status = gpumem_physical_create(device, 2 * MIB, NULL, &physical);
        fired = end_refusal();
        if (status == GPUMEM_OK)
            break;
        assert_true(fired && status == GPUMEM_ERROR_OUT_OF_HOST_MEMORY);
    }
    assert_true(physical && fired); /* the list was what got no memory */
    char *text = MADE(char *, snapshot_of, device);
    assert_int_equal(json_unsigned(json_find(text, "devices.0.virtual_memory.unlisted")), 1);
    assert_int_equal(json_count(json_find(text, "devices.0.virtual_memory.physical")), 0);
    free(text);
    OK(gpumem_physical_destroy(physical));
}
