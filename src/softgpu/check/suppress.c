/* Known hazards that are not reported: lines of KIND KERNEL PLACE, each a glob. */
#include "softgpu/check/report.h"

#include "base/descriptor.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct suppression {
    struct suppression *next;
    char *kind, *kernel, *place; /* in the same allocation, after the struct; NULL: any */
};

static struct suppression *suppressions; /* constant once they have been read */

static bool keep(char *line, unsigned number, const char *path, char *why, size_t size) {
    static const char spaces[] = " \t\r\n";
    char *words[4] = {NULL}, *rest = NULL;
    unsigned count = 0;
    line[strcspn(line, "#\n")] = '\0';
    size_t length = strlen(line) + 1;
    struct suppression *one = malloc(sizeof *one + length);
    if (!one) {
        snprintf(why, size, "out of memory for the suppressions of %s", path);
        return false;
    }
    char *own = memcpy(one + 1, line, length);
    for (char *word = strtok_r(own, spaces, &rest); word && count < 4;
         word = strtok_r(NULL, spaces, &rest))
        words[count++] = word;
    if (count == 0 || count == 4) {
        free(one);
        snprintf(why, size,
                 "%s, line %u: a suppression is KIND, KERNEL and PLACE, the last two of "
                 "which may be left out",
                 path, number);
        return count == 0;
    }
    *one = (struct suppression){suppressions, words[0], words[1], words[2]};
    suppressions = one;
    return true;
}

bool sg_suppressions_read(const char *path, char *why, size_t size) {
    char line[4096]; /* a device like /dev/zero has a line without end */
    unsigned number = 0;
    bool good = true;
    FILE *file = gm_fd_stream(path, "r");
    if (!file) {
        snprintf(why, size, "SOFTGPU_CHECK_SUPPRESS='%s' cannot be read: %s", path,
                 strerror(errno));
        return false;
    }
    while (good && fgets(line, sizeof line, file)) {
        number++;
        good = strchr(line, '\n') || feof(file);
        if (good)
            good = keep(line, number, path, why, size);
        else
            snprintf(why, size, "%s, line %u: longer than %zu bytes", path, number,
                     sizeof line - 1);
    }
    if (good && ferror(file)) { /* a folder opens, and has no lines */
        snprintf(why, size, "SOFTGPU_CHECK_SUPPRESS='%s' cannot be read: %s", path,
                 strerror(errno));
        good = false;
    }
    fclose(file);
    return good;
}

static bool is_at(const struct sg_hazard_place *place, const char *glob) {
    char where[512];
    if (!place->kernel)
        return false;
    if (place->file) {
        snprintf(where, sizeof where, "%s:%u", place->file, place->source_line);
        if (fnmatch(glob, where, 0) == 0)
            return true;
    }
    snprintf(where, sizeof where, "ptx:%u", place->line);
    return fnmatch(glob, where, 0) == 0;
}

bool sg_suppressed(const struct sg_hazard *hazard) {
    const char *kernel = hazard->place.kernel ? hazard->place.kernel : "";
    for (const struct suppression *one = suppressions; one; one = one->next)
        if (fnmatch(one->kind, hazard->kind, 0) == 0 &&
            (!one->kernel || fnmatch(one->kernel, kernel, 0) == 0) &&
            (!one->place || is_at(&hazard->place, one->place) || is_at(&hazard->other, one->place)))
            return true;
    return false;
}

bool sg_globs_match(const char *globs, const char *name) {
    if (!globs || !globs[0])
        return true;
    while (*globs) {
        char glob[512];
        size_t length = strcspn(globs, ",");
        if (length > 0 && length < sizeof glob) {
            memcpy(glob, globs, length);
            glob[length] = '\0';
            if (fnmatch(glob, name, 0) == 0)
                return true;
        }
        globs += length + (globs[length] == ',');
    }
    return false;
}
