/* A checksum of a buffer, of which each driver call fails. */
#include "load_sweep.h"

ALL_TESTS(begin, end);

static int take_checksum(void *user) {
    struct subject *s = user;
    s->sum = 77;
    int result = (int)gpumem_buffer_checksum(s->buffer, &s->options, &s->sum);
    assert_true(s->sum == (result == 0 ? expected : 77));
    return result;
}

TEST(a_checksum_is_written_only_on_success) {
    struct subject subject = make_subject(2, NULL);
    assert_int_equal(load(&subject), 0);
    SWEEP(.name = "checksum of a buffer", .act = take_checksum, .recover = settle, .undo = settle,
          .may_succeed = true, .user = &subject);
    check_bytes(&subject);
    OK(gpumem_resource_destroy(subject.memory));
}
