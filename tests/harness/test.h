/*
 * How tests are declared. All files of a folder are one program, `run`, and each file's tests run
 * in a process of their own: `run FILE`.
 *
 *     TEST(freed_memory_is_reused) {
 *         ...
 *     }
 *
 * defines a test of cmocka, and registers it; tests of a file run in the order in which it has
 * them. A test in a header belongs to each file that includes the header.
 */
#ifndef TESTS_TEST_H
#define TESTS_TEST_H

#include "sizes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
/* cmocka wants the headers above before it. */
#include <cmocka.h>

/* Called before and after tests; 0, or -1 for a failure. */
typedef int (*test_fixture)(void **state);

struct test_case {
    const char *name, *file;
    int place; /* in its file */
    void (*run)(void **state);
    test_fixture setup, teardown;
    bool own_fixtures; /* instead of the file's */
    void *state;       /* what the test receives, when it has no fixtures */
    struct test_case *next;
};

/* What a file says about all of its tests; and its children. */
struct test_setting {
    const char *file;
    enum { TEST_EACH, TEST_ALL, TEST_BEFORE, TEST_CHILD } kind;
    test_fixture setup, teardown;
    int (*run)(int argc, char **argv);
    const char *name;
    struct test_setting *next;
};

/* What a folder's harness says, for files that do not say otherwise. */
struct test_folder {
    /* Before tests and in each child: 0, or the exit status. */
    int (*begin)(bool child);
    test_fixture each_setup, each_teardown;
    test_fixture all_setup, all_teardown;
};
extern const struct test_folder test_folder __attribute__((weak));

void test_add(struct test_case *added);
void test_add_setting(struct test_setting *added);

/* The file whose tests run, as `run` was told. */
const char *test_file(void);
/* Which of its tests run, as `run` or GPUMEM_TEST says; NULL: all. */
const char *test_pattern(void);

#define TEST(function) TEST_FUNCTION(function, .own_fixtures = false)
/* `needs` are statements that skip it: NEEDS_SOFTGPU("..."). */
#define TEST_WHERE(function, needs)                                                                \
    static void function##_wanted(void **state);                                                   \
    TEST(function) {                                                                               \
        needs;                                                                                     \
        function##_wanted(state);                                                                  \
    }                                                                                              \
    static void function##_wanted(__attribute__((unused)) void **state)
/* With fixtures of its own, each may be NULL. */
#define TEST_WITH(function, setup_, teardown_)                                                     \
    TEST_FUNCTION(function, .own_fixtures = true, .setup = (setup_), .teardown = (teardown_))

/* One statement: a row among others of its kind. */
#define TEST_IS(function, ...)                                                                     \
    TEST(function) {                                                                               \
        __VA_ARGS__;                                                                               \
    }                                                                                              \
    struct test_case

/* For a function that is defined elsewhere: TEST_CASE(function); */
#define TEST_CASE(function) TEST_ADD(function, #function, .own_fixtures = false)

/* Around each test of the file, and around all of them together; NULL is nothing. */
#define EACH_TEST(setup_, teardown_)                                                               \
    TEST_SETTING(test_each, .kind = TEST_EACH, .setup = (setup_), .teardown = (teardown_))
#define ALL_TESTS(setup_, teardown_)                                                               \
    TEST_SETTING(test_all, .kind = TEST_ALL, .setup = (setup_), .teardown = (teardown_))

/*
 * Fixtures behind others:
 *
 *     BEFORE(open_device) {
 *         memory = NEW_VIRTUAL();
 *     }
 *
 *     AFTER(close_device) {
 *         DESTROY(memory);
 *     }
 *
 *     EACH_TEST(before, after);
 */
#define BEFORE(opens)                                                                              \
    static void before_body(void);                                                                 \
    static int before(void **state) {                                                              \
        if ((opens)(state) != 0)                                                                   \
            return -1;                                                                             \
        before_body();                                                                             \
        return 0;                                                                                  \
    }                                                                                              \
    static void before_body(void)
#define AFTER(closes)                                                                              \
    static void after_body(void);                                                                  \
    static int after(void **state) {                                                               \
        after_body();                                                                              \
        return (closes)(state);                                                                    \
    }                                                                                              \
    static void after_body(void)

/* BEFORE_TESTS { ... return 0; }: in the process of the tests, before all else, and not in
 * children. It may add tests. Another value ends the process as its exit status. */
#define BEFORE_TESTS                                                                               \
    static int before_tests(int argc, char **argv);                                                \
    TEST_SETTING(test_before, .kind = TEST_BEFORE, .run = before_tests);                           \
    static int before_tests(__attribute__((unused)) int argc, __attribute__((unused)) char **argv)

/* The same for one statement, which cannot fail. */
#define BEFORE_TESTS_DO(statement)                                                                 \
    BEFORE_TESTS {                                                                                 \
        statement;                                                                                 \
        return 0;                                                                                  \
    }                                                                                              \
    struct test_case

/* CHILD(name) { ... return 0; }: another process of a test, `run FILE --child name ARGUMENT...`.
 * argv[0] is the name. What it returns is the exit status. */
#define CHILD(function)                                                                            \
    static int function(int argc, char **argv);                                                    \
    TEST_SETTING(function##_child, .kind = TEST_CHILD, .run = function, .name = #function);        \
    static int function(__attribute__((unused)) int argc, __attribute__((unused)) char **argv)

/* The same without a value: where it comes to its end, the exit status is 0. */
#define CHILD_THAT_ENDS(function)                                                                  \
    static void function##_body(int argc, char **argv);                                            \
    CHILD(function) {                                                                              \
        function##_body(argc, argv);                                                               \
        return 0;                                                                                  \
    }                                                                                              \
    static void function##_body(__attribute__((unused)) int argc,                                  \
                                __attribute__((unused)) char **argv)

/* An output of a call before it, and behind it: it was set. */
void leave_unset(void *output, size_t size);
void check_set(const void *output, size_t size, const char *call, const char *file, int line);

/* What `call`, a statement with &given_ in it, gives. `name` is for the message. */
#define GIVEN_BY(type, name, call)                                                                 \
    __extension__({                                                                                \
        type given_;                                                                               \
        leave_unset(&given_, sizeof given_);                                                       \
        call;                                                                                      \
        check_set(&given_, sizeof given_, name, __FILE__, __LINE__);                               \
        given_;                                                                                    \
    })

/*
 * Checks up to eight members of a struct, whose values are integers:
 *
 *     MEMBERS(stats, (allocations, 2), (quarantined, 0));
 */
#define MEMBERS(object, ...)                                                                       \
    MEMBERS_COUNTED(__VA_ARGS__, 8, 7, 6, 5, 4, 3, 2, 1, 0)(object, __VA_ARGS__)
void check_member(uintmax_t got, uintmax_t wanted, const char *member, const char *file, int line);

/* ---- Inside ---------------------------------------------------------------------------------- */

#define TEST_FUNCTION(function, ...)                                                               \
    static void function(void **state);                                                            \
    TEST_ADD(function, #function, __VA_ARGS__);                                                    \
    static void function(__attribute__((unused)) void **state)

/* The last of the three is what a semicolon ends. */
#define TEST_ADD(function, name_, ...)                                                             \
    static struct test_case function##_case;                                                       \
    __attribute__((constructor)) static void function##_add(void) {                                \
        test_add(&function##_case);                                                                \
    }                                                                                              \
    static struct test_case function##_case = {.name = (name_),                                    \
                                               .file = __BASE_FILE__,                              \
                                               .place = __COUNTER__,                               \
                                               .run = (function),                                  \
                                               __VA_ARGS__}

#define TEST_SETTING(name_, ...)                                                                   \
    static struct test_setting name_##_setting;                                                    \
    __attribute__((constructor)) static void name_##_add(void) {                                   \
        test_add_setting(&name_##_setting);                                                        \
    }                                                                                              \
    static struct test_setting name_##_setting = {.file = __BASE_FILE__, __VA_ARGS__}

/* Which of the following it is. */
#define MEMBERS_COUNTED(a, b, c, d, e, f, g, h, count, ...) MEMBERS_##count
#define MEMBER_PAIR(object, pair)                           MEMBER_OF(object, MEMBER_AND_VALUE pair)
#define MEMBER_AND_VALUE(member, value)                     member, value
#define MEMBER_OF(...)                                      MEMBER_IS(__VA_ARGS__)
#define MEMBER_IS(object, member, value)                                                           \
    check_member((uintmax_t)((object).member), (uintmax_t)(value), #member, __FILE__, __LINE__)
#define MEMBERS_1(o, a)      MEMBER_PAIR(o, a)
#define MEMBERS_2(o, a, ...) (MEMBER_PAIR(o, a), MEMBERS_1(o, __VA_ARGS__))
#define MEMBERS_3(o, a, ...) (MEMBER_PAIR(o, a), MEMBERS_2(o, __VA_ARGS__))
#define MEMBERS_4(o, a, ...) (MEMBER_PAIR(o, a), MEMBERS_3(o, __VA_ARGS__))
#define MEMBERS_5(o, a, ...) (MEMBER_PAIR(o, a), MEMBERS_4(o, __VA_ARGS__))
#define MEMBERS_6(o, a, ...) (MEMBER_PAIR(o, a), MEMBERS_5(o, __VA_ARGS__))
#define MEMBERS_7(o, a, ...) (MEMBER_PAIR(o, a), MEMBERS_6(o, __VA_ARGS__))
#define MEMBERS_8(o, a, ...) (MEMBER_PAIR(o, a), MEMBERS_7(o, __VA_ARGS__))

#endif
