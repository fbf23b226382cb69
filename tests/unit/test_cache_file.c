/* Texts in the user's cache folder: kept as a whole, found again, and never in the way. */
#include "library_test.h"
#include "planted_files.h"

#include "base/cache_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>

#define folder planted_root

static char path[TEMPORARY_ROOM + 64];

static int setup(void **state) {
    if (planted_make() != 0)
        return -1;
    setenv("XDG_CACHE_HOME", folder, 1);
    snprintf(path, sizeof path, "%s/gpumem/one", folder);
    return 0;
}

static int teardown(void **state) {
    (void)chmod(folder, 0700);
    return planted_remove();
}

EACH_TEST(setup, teardown);

static size_t files_in(const char *name) {
    size_t count = 0;
    DIR *open = opendir(name);
    for (struct dirent *entry; open && (entry = readdir(open));)
        count += entry->d_name[0] != '.';
    if (open)
        closedir(open);
    return count;
}

static void check_text(const char *wanted) {
    char text[GM_CACHE_MOST] = "untouched";
    assert_int_equal(gm_cache_read("one", text, sizeof text), wanted != NULL);
    assert_string_equal(text, wanted ? wanted : "untouched");
}

static void put(const char *bytes, size_t length, mode_t mode) {
    unlink(path);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, length), length);
    assert_int_equal(fchmod(fd, mode), 0);
    close(fd);
}

TEST(a_written_text_is_read_back) {
    struct stat about;
    char gpumem[TEMPORARY_ROOM + 16], small[4];
    check_text(NULL);
    assert_int_equal(gm_cache_write("one", "first\n"), 1);
    check_text("first\n");
    assert_int_equal(gm_cache_write("one", "second\n"), 1);
    assert_int_equal(gm_cache_write("two", "other\n"), 1);
    check_text("second\n");
    assert_int_equal(gm_cache_read("one", small, sizeof small), 0); /* no room */
    snprintf(gpumem, sizeof gpumem, "%s/gpumem", folder);
    assert_int_equal(files_in(gpumem), 2); /* nothing beside them */
    assert_int_equal(stat(path, &about), 0);
    assert_int_equal(about.st_mode & 0777, 0600);
    assert_int_equal(stat(gpumem, &about), 0);
    assert_int_equal(about.st_mode & 0777, 0700);
}

TEST(the_home_folder_is_used_without_xdg_cache_home) {
    char home[TEMPORARY_ROOM + 16];
    struct stat about;
    snprintf(home, sizeof home, "%s/home", folder);
    assert_int_equal(mkdir(home, 0700), 0);
    const char *relative[] = {NULL, "", "relative/path"};
    for (size_t i = 0; i < COUNT(relative); i++) {
        if (relative[i])
            setenv("XDG_CACHE_HOME", relative[i], 1);
        else
            unsetenv("XDG_CACHE_HOME");
        setenv("HOME", home, 1);
        assert_int_equal(gm_cache_write("one", "text\n"), 1);
        check_text("text\n");
        snprintf(path, sizeof path, "%s/.cache/gpumem/one", home);
        assert_int_equal(stat(path, &about), 0);
        assert_int_equal(unlink(path), 0);
        setenv("HOME", "relative", 1);
        assert_int_equal(gm_cache_write("one", "text\n"), 0);
        unsetenv("HOME");
        assert_int_equal(gm_cache_write("one", "text\n"), 0);
        check_text(NULL);
    }
    assert_int_not_equal(stat("relative", &about), 0);
}

TEST(corrupt_cache_files_are_ignored) {
    char bytes[GM_CACHE_MOST + 64] = {0};
    assert_int_equal(gm_cache_write("one", "threads 7\n"), 1);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = read(fd, bytes, sizeof bytes);
    close(fd);
    assert_true(length > 17);
    put(bytes, (size_t)length, 0600);
    check_text("threads 7\n");
    for (ssize_t i = 0; i < length; i++) { /* every single byte */
        bytes[i] ^= 1;
        put(bytes, (size_t)length, 0600);
        check_text(NULL);
        bytes[i] ^= 1;
    }
    for (ssize_t i = 0; i < length; i++) { /* cut short anywhere */
        put(bytes, (size_t)i, 0600);
        check_text(NULL);
    }
    put("something else altogether, of some length\n", 42, 0600);
    check_text(NULL);
    memset(bytes, 'x', sizeof bytes);
    put(bytes, sizeof bytes, 0600);
    check_text(NULL);
    assert_int_equal(gm_cache_write("one", "threads 8\n"), 1); /* and replaced */
    check_text("threads 8\n");
}

/* What others could have written, or what would keep the program waiting. */
TEST(cache_files_that_others_may_write_are_ignored) {
    char target[TEMPORARY_ROOM + 16], bytes[64] = {0};
    assert_int_equal(gm_cache_write("one", "text\n"), 1);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = read(fd, bytes, sizeof bytes);
    close(fd);
    put(bytes, (size_t)length, 0622);
    check_text(NULL);
    snprintf(target, sizeof target, "%s/elsewhere", folder);
    put(bytes, (size_t)length, 0600);
    assert_int_equal(rename(path, target), 0);
    assert_int_equal(symlink(target, path), 0);
    check_text(NULL);
    assert_int_equal(gm_cache_write("one", "new\n"), 1); /* the link is replaced, not followed */
    check_text("new\n");
    fd = open(target, O_RDONLY | O_CLOEXEC);
    char still[64] = {0};
    assert_int_equal(read(fd, still, sizeof still), length);
    close(fd);
    assert_memory_equal(still, bytes, (size_t)length);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkfifo(path, 0600), 0);
    check_text(NULL); /* at once */
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkdir(path, 0700), 0);
    check_text(NULL);
    assert_int_equal(gm_cache_write("one", "new\n"), 0);
    if (geteuid() == 0) {
        assert_int_equal(rmdir(path), 0);
        put(bytes, (size_t)length, 0600);
        assert_int_equal(chown(path, 12345, 12345), 0);
        check_text(NULL);
    }
}

/* Root may write anywhere; so that a file stands where a folder should be. */
TEST(an_unwritable_cache_folder_is_no_error) {
    char file[TEMPORARY_ROOM + 16];
    snprintf(file, sizeof file, "%s/file", folder);
    int fd = open(file, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    close(fd);
    const char *homes[] = {file, "/proc/nowhere", "/dev/null", "/nonexistent/deeper"};
    for (size_t i = 0; i < COUNT(homes); i++) {
        setenv("XDG_CACHE_HOME", homes[i], 1);
        assert_int_equal(gm_cache_write("one", "text\n"), 0);
        check_text(NULL);
    }
    char *longest = malloc(10000);
    assert_non_null(longest);
    memset(longest, 'a', 9999);
    longest[0] = '/';
    longest[9999] = 0;
    setenv("XDG_CACHE_HOME", longest, 1);
    assert_int_equal(gm_cache_write("one", "text\n"), 0);
    check_text(NULL);
    free(longest);
    if (geteuid() != 0) {
        assert_int_equal(chmod(folder, 0500), 0);
        setenv("XDG_CACHE_HOME", folder, 1);
        assert_int_equal(gm_cache_write("one", "text\n"), 0);
    }
}

TEST(an_oversized_text_is_not_written) {
    char text[GM_CACHE_MOST + 1];
    memset(text, 'a', sizeof text);
    text[GM_CACHE_MOST] = 0;
    assert_int_equal(gm_cache_write("one", text), 0);
    assert_int_equal(gm_cache_write("one", ""), 0);
    text[GM_CACHE_MOST - 1] = 0;
    assert_int_equal(gm_cache_write("one", text), 1);
    check_text(text);
}

/* Readers find one text or the other, never a part of one. */
static void *write_and_read(void *argument) {
    size_t *wrong = argument;
    for (int i = 0; i < 300; i++) {
        char text[GM_CACHE_MOST];
        gm_cache_write("one", i % 2 ? "the longer one of the two\n" : "short\n");
        if (!gm_cache_read("one", text, sizeof text) ||
            (strcmp(text, "short\n") != 0 && strcmp(text, "the longer one of the two\n") != 0))
            (*wrong)++;
    }
    return NULL;
}

TEST(concurrent_writers_leave_one_complete_text) {
    pthread_t threads[4];
    size_t wrong[4] = {0};
    char gpumem[TEMPORARY_ROOM + 16];
    for (size_t i = 0; i < COUNT(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, write_and_read, &wrong[i]), 0);
    for (size_t i = 0; i < COUNT(threads); i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(wrong[i], 0);
    }
    snprintf(gpumem, sizeof gpumem, "%s/gpumem", folder);
    assert_int_equal(files_in(gpumem), 1);
}
