/* What GPUMEM_LOG lets through to standard error, by the names of the levels. */
#include "base/log.h"
#include "library_test.h"

static char said[4096];

/* One line of each level, with that setting; NULL: without one. */
static void say_all(const char *setting) {
    int kept = dup(STDERR_FILENO);
    FILE *file = tmpfile();
    assert_non_null(file);
    assert_true(kept >= 0);
    if (setting)
        setenv("GPUMEM_LOG", setting, 1);
    else
        unsetenv("GPUMEM_LOG");
    dup2(fileno(file), STDERR_FILENO);
    gpumem_set_log(NULL, NULL, GPUMEM_LOG_ERROR); /* the default again, which reads it */
    gm_log(GPUMEM_LOG_ERROR, "a");
    gm_log(GPUMEM_LOG_WARNING, "b");
    gm_log(GPUMEM_LOG_INFO, "c");
    gm_log(GPUMEM_LOG_DEBUG, "d");
    fflush(stderr);
    dup2(kept, STDERR_FILENO);
    close(kept);
    rewind(file);
    said[fread(said, 1, sizeof said - 1, file)] = 0;
    fclose(file);
}

#define ERROR   "gpumem: error: a\n"
#define WARNING "gpumem: warning: b\n"
#define INFO    "gpumem: info: c\n"
#define DEBUG   "gpumem: debug: d\n"

TEST(each_level_name_shows_its_level_and_worse) {
    say_all("off");
    assert_string_equal(said, "");
    say_all("error");
    assert_string_equal(said, ERROR);
    say_all("warning");
    assert_string_equal(said, ERROR WARNING);
    say_all("info");
    assert_string_equal(said, ERROR WARNING INFO);
    say_all("debug");
    assert_string_equal(said, ERROR WARNING INFO DEBUG);
    say_all(NULL);
    assert_string_equal(said, ERROR WARNING);
}

TEST(an_unknown_level_name_is_reported_and_ignored) {
    static const char *const wrong[] = {"", "2", "loud", "ERROR", "in\nfo"};
    for (size_t i = 0; i < COUNT(wrong); i++) {
        say_all(wrong[i]);
        assert_non_null(strstr(said, "gpumem: warning: GPUMEM_LOG='"));
        assert_non_null(
            strstr(said, "it takes off, error, warning, info or debug\n" ERROR WARNING));
        assert_null(strstr(said, INFO));
    }
    assert_null(strstr(said, "in\nfo")); /* control characters are shown, not written */
}
