/* The profiles that have names: the compiled-in one, and those in the folder near the library. */
#include "base/descriptor.h"
#include "softgpu/device/profile.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_PROFILES = 64, NAME_ROOM = 64 };
struct names {
    char name[MOST_PROFILES][NAME_ROOM];
    size_t count;
};

/* Without its ".ini"; the compiled-in one is there already. */
static void add(struct names *names, const char *file) {
    size_t length = strlen(file);
    if (length <= 4 || length - 4 >= NAME_ROOM || strcmp(file + length - 4, ".ini") != 0 ||
        strcmp(file, "h200.ini") == 0 || names->count == MOST_PROFILES)
        return;
    snprintf(names->name[names->count++], NAME_ROOM, "%.*s", (int)(length - 4), file);
}

static int by_name(const void *left, const void *right) {
    return strcmp(left, right);
}

static void find_all(struct names *names) {
    char folder[PATH_MAX];
    DIR *entries = sg_profile_folder(folder) ? gm_fd_folder(folder) : NULL;
    *names = (struct names){.name = {"h200"}, .count = 1};
    for (struct dirent *entry; entries && (entry = readdir(entries));)
        add(names, entry->d_name);
    if (entries)
        closedir(entries);
    qsort(names->name, names->count, sizeof *names->name, by_name);
}

char *sg_profile_list(void) {
    struct names names;
    char *text = NULL, message[1024];
    size_t size;
    struct sg_profile *profile = malloc(sizeof *profile);
    FILE *out = profile ? open_memstream(&text, &size) : NULL;
    find_all(&names);
    for (size_t i = 0; out && i < names.count; i++)
        if (sg_profile_load(profile, names.name[i], message, sizeof message))
            fprintf(out, "%s %d\n", names.name[i],
                    10 * profile->attributes[CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR] +
                        profile->attributes[CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR]);
    if (out && fclose(out) != 0) {
        free(text);
        text = NULL;
    }
    free(profile);
    return text;
}
