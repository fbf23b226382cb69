/*
 * Tests that must not pass. test_runner.py runs this program through the runner and demands that
 * each way of going wrong is reported as such: a runner that cannot fail proves nothing.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static void passes(void **state) {
    (void)state;
    assert_int_equal(1, 1);
}

static void fails(void **state) {
    (void)state;
    assert_int_equal(1, 2);
}

/* SIGABRT is not among the signals that cmocka turns into a failed test: the program dies. */
static void crashes(void **state) {
    (void)state;
    abort();
}

static void hangs(void **state) {
    (void)state;
    for (;;)
        pause();
}

/* Leaves as if all were well, with a test of the plan not run. */
static void leaves(void **state) {
    (void)state;
    fflush(NULL);
    _exit(0);
}

static void skips_with_reason(void **state) {
    (void)state;
    print_message("skip: the reason of must_fail\n");
    skip();
}

static void skips_silently(void **state) {
    (void)state;
    skip();
}

static int run(void (*test)(void **)) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(passes),
        {"case", test, NULL, NULL, NULL},
        cmocka_unit_test(passes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(int argc, char **argv) {
    const struct {
        const char *name;
        void (*test)(void **);
    } cases[] = {
        {"pass", passes},           {"fail", fails},
        {"crash", crashes},         {"hang", hangs},
        {"leave", leaves},          {"skip", skips_with_reason},
        {"silent", skips_silently},
    };
    if (argc == 2 && strcmp(argv[1], "exit") == 0) {
        (void)run(passes);
        return 3;
    }
    for (size_t i = 0; argc == 2 && i < sizeof cases / sizeof cases[0]; i++) {
        if (strcmp(argv[1], cases[i].name) == 0)
            return run(cases[i].test);
    }
    fprintf(stderr, "usage: must_fail pass|fail|crash|hang|leave|skip|silent|exit\n");
    return 2;
}
