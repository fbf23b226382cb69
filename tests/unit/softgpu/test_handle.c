/* Handles: slot and generation, never dereferenced. */
#include "softgpu/core/handle.h"

#include "test.h"

#define MANY 100000u

static int objects[4];

TEST(a_handle_finds_its_object) {
    uint64_t first = sg_handle_new(SG_KIND_STREAM, &objects[0]);
    uint64_t second = sg_handle_new(SG_KIND_STREAM, &objects[1]);
    assert_true(first != second && first > 2 && second > 2);
    assert_ptr_equal(sg_handle_get(SG_KIND_STREAM, first), &objects[0]);
    assert_ptr_equal(sg_handle_get(SG_KIND_STREAM, second), &objects[1]);
    sg_handle_drop(SG_KIND_STREAM, first);
    sg_handle_drop(SG_KIND_STREAM, second);
}

TEST(a_stale_handle_finds_nothing) {
    uint64_t old = sg_handle_new(SG_KIND_EVENT, &objects[0]);
    sg_handle_drop(SG_KIND_EVENT, old);
    assert_null(sg_handle_get(SG_KIND_EVENT, old));
    /* The slot's next tenant has another value, and dropping the old one leaves it alone. */
    uint64_t fresh = sg_handle_new(SG_KIND_EVENT, &objects[1]);
    assert_true(fresh != old);
    sg_handle_drop(SG_KIND_EVENT, old);
    assert_null(sg_handle_get(SG_KIND_EVENT, old));
    assert_ptr_equal(sg_handle_get(SG_KIND_EVENT, fresh), &objects[1]);
    sg_handle_drop(SG_KIND_EVENT, fresh);
    assert_int_equal(sg_handle_count(SG_KIND_EVENT), 0);
}

TEST(a_handle_of_another_kind_finds_nothing) {
    uint64_t stream = sg_handle_new(SG_KIND_STREAM, &objects[0]);
    uint64_t pool = sg_handle_new(SG_KIND_POOL, &objects[1]);
    assert_null(sg_handle_get(SG_KIND_POOL, stream));
    assert_null(sg_handle_get(SG_KIND_STREAM, pool));
    sg_handle_drop(SG_KIND_POOL, stream);
    assert_ptr_equal(sg_handle_get(SG_KIND_STREAM, stream), &objects[0]);
    sg_handle_drop(SG_KIND_STREAM, stream);
    sg_handle_drop(SG_KIND_POOL, pool);
}

TEST(random_values_are_not_handles) {
    uint64_t live = sg_handle_new(SG_KIND_MEMORY, &objects[0]);
    uint64_t value = 88172645463325252u; /* xorshift */
    for (unsigned i = 0; i < MANY; i++) {
        value ^= value << 13;
        value ^= value >> 7;
        value ^= value << 17;
        for (int kind = 1; kind < SG_KIND_COUNT; kind++)
            if (value != live)
                assert_null(sg_handle_get((enum sg_kind)kind, value));
    }
    /* And values that differ from a live one by little. */
    for (unsigned bit = 0; bit < 64; bit++)
        assert_null(sg_handle_get(SG_KIND_MEMORY, live ^ (uint64_t)1 << bit));
    assert_null(sg_handle_get(SG_KIND_MEMORY, 0));
    assert_null(sg_handle_get(SG_KIND_MEMORY, UINT64_MAX));
    assert_null(sg_handle_get(SG_KIND_MEMORY, (uint64_t)(uintptr_t)&objects[0]));
    sg_handle_drop(SG_KIND_MEMORY, live);
}

static void visit(uint64_t handle, void *object, void *user) {
    assert_ptr_equal(sg_handle_get(SG_KIND_MEMORY, handle), object);
    ++*(unsigned *)user;
}

TEST(many_handles_live_at_once) {
    uint64_t *handles = malloc(MANY * sizeof *handles);
    char *bytes = malloc(MANY);
    assert_non_null(handles);
    assert_non_null(bytes);
    for (unsigned i = 0; i < MANY; i++) {
        handles[i] = sg_handle_new(SG_KIND_MEMORY, &bytes[i]);
        assert_true(handles[i] != 0);
    }
    assert_int_equal(sg_handle_count(SG_KIND_MEMORY), MANY);
    for (unsigned i = 0; i < MANY; i++)
        assert_ptr_equal(sg_handle_get(SG_KIND_MEMORY, handles[i]), &bytes[i]);
    unsigned visited = 0;
    sg_handle_each(SG_KIND_MEMORY, visit, &visited);
    assert_int_equal(visited, MANY);

    for (unsigned i = 0; i < MANY; i += 2)
        sg_handle_drop(SG_KIND_MEMORY, handles[i]);
    for (unsigned i = 0; i < MANY; i++)
        assert_ptr_equal(sg_handle_get(SG_KIND_MEMORY, handles[i]), i % 2 ? &bytes[i] : NULL);
    for (unsigned i = 1; i < MANY; i += 2)
        sg_handle_drop(SG_KIND_MEMORY, handles[i]);
    assert_int_equal(sg_handle_count(SG_KIND_MEMORY), 0);
    free(handles);
    free(bytes);
}

/* A slot that is used over and over must not give an old value back soon. */
TEST(handle_values_are_not_reused_soon) {
    uint64_t first = sg_handle_new(SG_KIND_CONTEXT, &objects[0]);
    sg_handle_drop(SG_KIND_CONTEXT, first);
    for (unsigned i = 0; i < MANY; i++) {
        uint64_t other = sg_handle_new(SG_KIND_CONTEXT, &objects[0]);
        assert_true(other != first);
        sg_handle_drop(SG_KIND_CONTEXT, other);
    }
}
