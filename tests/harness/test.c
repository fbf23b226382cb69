/*
 * main of each program of tests.
 *
 *     run --files                      the files, a line each
 *     run --list                       every file and test, but those that files make as they run
 *     run FILE [PATTERN]               a file's tests, or those whose names match (with * and ?)
 *     run FILE --child NAME ARG...     another process of a test
 *
 * Environment: GPUMEM_TEST is a pattern, too. CMOCKA_MESSAGE_OUTPUT=tap is what the runner reads.
 */
#include "test.h"

static struct test_case *cases;
static struct test_setting *settings;
static const char *chosen, *pattern;

void test_add(struct test_case *added) {
    added->next = cases;
    cases = added;
}

void test_add_setting(struct test_setting *added) {
    added->next = settings;
    settings = added;
}

#define UNSET 0xa5

void leave_unset(void *output, size_t size) {
    memset(output, UNSET, size);
}

void check_set(const void *output, size_t size, const char *call, const char *file, int line) {
    for (size_t i = 0; i < size; i++)
        if (((const unsigned char *)output)[i] != UNSET)
            return;
    print_error("%s sets nothing\n", call);
    _fail(file, line);
}

void check_member(uintmax_t got, uintmax_t wanted, const char *member, const char *file, int line) {
    if (got == wanted)
        return;
    print_error("%s is %ju (%#jx), wanted %ju (%#jx)\n", member, got, got, wanted, wanted);
    _fail(file, line);
}

const char *test_file(void) {
    return chosen;
}

const char *test_pattern(void) {
    return pattern;
}

/* Whether `path` is of the source that is called `name`, without folder and .c. */
static bool is_file(const char *path, const char *name) {
    const char *slash = strrchr(path, '/');
    const char *base = slash ? slash + 1 : path;
    size_t length = strcspn(base, ".");
    return strlen(name) == length && memcmp(base, name, length) == 0;
}

/* Of the chosen file; the first where `name` is NULL. */
static const struct test_setting *setting_of(int kind, const char *name) {
    for (const struct test_setting *s = settings; s; s = s->next)
        if ((int)s->kind == kind && is_file(s->file, chosen) &&
            (!name || strcmp(s->name, name) == 0))
            return s;
    return NULL;
}

static int compare(const void *left, const void *right) {
    const struct test_case *a = *(struct test_case *const *)left;
    const struct test_case *b = *(struct test_case *const *)right;
    int files = strcmp(a->file, b->file);
    return files ? files : a->place - b->place;
}

static bool has_tests(const char *name) {
    for (const struct test_case *one = cases; one; one = one->next)
        if (is_file(one->file, name))
            return true;
    for (const struct test_setting *s = settings; s; s = s->next)
        if (s->kind == TEST_BEFORE && is_file(s->file, name))
            return true;
    return false;
}

/* Cases of the chosen file, or all, in order; the caller frees the array. */
static struct test_case **cases_in_order(size_t *count) {
    size_t room = 0;
    *count = 0;
    for (struct test_case *one = cases; one; one = one->next)
        room++;
    struct test_case **found = calloc(room + 1, sizeof *found);
    if (!found)
        abort();
    for (struct test_case *one = cases; one; one = one->next)
        if (!chosen || is_file(one->file, chosen))
            found[(*count)++] = one;
    qsort(found, *count, sizeof *found, compare);
    return found;
}

static int compare_names(const void *left, const void *right) {
    return strcmp(*(char *const *)left, *(char *const *)right);
}

/* Names of files may come from cases and settings, and are often the same. */
static int list_files(void) {
    size_t count = 0, room = 0;
    for (struct test_case *one = cases; one; one = one->next)
        room++;
    for (struct test_setting *s = settings; s; s = s->next)
        room++;
    const char **files = calloc(room + 1, sizeof *files);
    if (!files)
        abort();
    for (struct test_case *one = cases; one; one = one->next)
        files[count++] = one->file;
    for (struct test_setting *s = settings; s; s = s->next)
        if (s->kind == TEST_BEFORE)
            files[count++] = s->file;
    qsort(files, count, sizeof *files, compare_names);
    for (size_t i = 0; i < count; i++) {
        const char *slash = strrchr(files[i], '/');
        const char *base = slash ? slash + 1 : files[i];
        if (i == 0 || strcmp(files[i], files[i - 1]) != 0)
            printf("%.*s\n", (int)strcspn(base, "."), base);
    }
    free(files);
    return 0;
}

static int list(void) {
    size_t count;
    struct test_case **found = cases_in_order(&count);
    for (size_t i = 0; i < count; i++) {
        const char *slash = strrchr(found[i]->file, '/');
        const char *base = slash ? slash + 1 : found[i]->file;
        printf("%.*s %s\n", (int)strcspn(base, "."), base, found[i]->name);
    }
    free(found);
    return 0;
}

static int run_child(int argc, char **argv) {
    const struct test_setting *child = setting_of(TEST_CHILD, argv[0]);
    if (child)
        return child->run(argc, argv);
    fprintf(stderr, "%s has no child %s\n", chosen, argv[0]);
    return 127;
}

static int run_file(void) {
    const struct test_folder *folder = &test_folder ? &test_folder : &(struct test_folder){0};
    const struct test_setting *each = setting_of(TEST_EACH, NULL);
    const struct test_setting *all = setting_of(TEST_ALL, NULL);
    size_t count;
    struct test_case **found = cases_in_order(&count);
    struct CMUnitTest *tests = calloc(count + 1, sizeof *tests);
    if (!tests)
        abort();
    for (size_t i = 0; i < count; i++) {
        const struct test_case *one = found[i];
        tests[i] = (struct CMUnitTest){one->name, one->run, one->setup, one->teardown, one->state};
        if (one->own_fixtures)
            continue;
        tests[i].setup_func = each ? each->setup : folder->each_setup;
        tests[i].teardown_func = each ? each->teardown : folder->each_teardown;
    }
    int failed = _cmocka_run_group_tests(chosen, tests, count, all ? all->setup : folder->all_setup,
                                         all ? all->teardown : folder->all_teardown);
    free(tests);
    free(found);
    return failed;
}

static int usage(const char *program) {
    fprintf(stderr,
            "usage: %s --list | --files\n       %s FILE [PATTERN]\n       %s FILE --child NAME "
            "ARGUMENT...\n",
            program, program, program);
    return 2;
}

int main(int argc, char **argv) {
    if (argc == 2 && strcmp(argv[1], "--list") == 0)
        return list();
    if (argc == 2 && strcmp(argv[1], "--files") == 0)
        return list_files();
    if (argc < 2 || argv[1][0] == '-')
        return usage(argv[0]);
    chosen = argv[1];
    if (!has_tests(chosen)) {
        fprintf(stderr, "%s has no tests of a file %s; --list names them\n", argv[0], chosen);
        return 2;
    }
    pattern = argc > 2 ? argv[2] : getenv("GPUMEM_TEST");
    bool child = argc > 3 && strcmp(argv[2], "--child") == 0;
    const struct test_setting *before = child ? NULL : setting_of(TEST_BEFORE, NULL);
    int status = before ? before->run(argc - 1, argv + 1) : 0;
    if (!status && &test_folder && test_folder.begin)
        status = test_folder.begin(child);
    if (child && !status)
        return run_child(argc - 3, argv + 3);
    if (status)
        return status;
    if (pattern)
        cmocka_set_test_filter(pattern);
    return run_file();
}
