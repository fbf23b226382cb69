/* The cases that hardware answers, too, on each level and under each schedule. */
#include "async_kernel.h"

static void the_async_case_answers_as_on_hardware(void **state) {
    const struct async_case *each = *state;
    uint32_t in[ASYNC_INPUT] __attribute__((aligned(16)));
    uint32_t *out = malloc(each->blocks * (size_t)each->threads * sizeof *out);
    assert_non_null(out);
    for (uint32_t i = 0; i < ASYNC_INPUT; i++)
        in[i] = ASYNC_IN(i);
    struct async_run run = {
        .blocks = each->blocks, .threads = each->threads, .cluster = each->cluster};
    FOR_EACH_LEVEL(level)
    FOR_EACH_SCHEDULE(run) {
        run.level = (enum sg_level)level;
        memset(out, UNTOUCHED & 0xff, each->blocks * (size_t)each->threads * sizeof *out);
        async_succeeds(each->text, &run, out, in);
        for (uint32_t b = 0; b < each->blocks; b++)
            for (uint32_t t = 0; t < each->threads; t++)
                if (out[b * each->threads + t] != each->answer(b, t))
                    fail_msg("%s, block %u thread %u, schedule %u with %llu: %x instead of %x",
                             each->name, b, t, run.schedule, (unsigned long long)run.seed,
                             out[b * each->threads + t], each->answer(b, t));
    }
    free(out);
}

BEFORE_TESTS {
    static struct async_case mine[ASYNC_CASES];
    static struct test_case cases[ASYNC_CASES];
    memcpy(mine, async_cases, sizeof mine);
    for (size_t i = 0; i < ASYNC_CASES; i++) {
        cases[i] = (struct test_case){.name = mine[i].name,
                                      .file = __BASE_FILE__,
                                      .place = (int)i,
                                      .run = the_async_case_answers_as_on_hardware,
                                      .state = &mine[i]};
        test_add(&cases[i]);
    }
    return 0;
}
