/* Where profiles are found: a path, the compiled-in one, or a folder near the library. */
#include "base/descriptor.h"
#include "softgpu/device/profile.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PROFILE_SIZE_LIMIT ((size_t)1 << 20)

/* The whole file as a string, or NULL with errno. */
static char *read_text(const char *path) {
    FILE *file = gm_fd_stream(path, "r");
    if (!file)
        return NULL;
    char *text = malloc(PROFILE_SIZE_LIMIT + 1);
    size_t size = text ? fread(text, 1, PROFILE_SIZE_LIMIT + 1, file) : 0;
    int error = !text ? ENOMEM : ferror(file) ? EIO : size > PROFILE_SIZE_LIMIT ? EFBIG : 0;
    fclose(file);
    if (error) {
        free(text);
        errno = error;
        return NULL;
    }
    text[size] = 0;
    return text;
}

static bool load_file(struct sg_profile *profile, const char *path, char *message, size_t size) {
    char *text = read_text(path);
    if (!text) {
        snprintf(message, size, "%s: %s", path, strerror(errno));
        return false;
    }
    bool parsed = sg_profile_parse(profile, path, text, message, size);
    free(text);
    return parsed;
}

/* The folder of this library: lib/gpumem/softgpu of a build, an install or a bundle. */
static bool library_folder(char *folder, size_t size) {
    Dl_info info;
    char real[PATH_MAX];
    if (!dladdr((void *)(uintptr_t)sg_profile_load, &info) || !info.dli_fname ||
        !realpath(info.dli_fname, real))
        return false;
    char *slash = strrchr(real, '/');
    if (!slash || (size_t)(slash - real) >= size)
        return false;
    *slash = 0;
    strcpy(folder, real);
    return true;
}

/* The folder `levels` above; false if there are fewer levels. */
static bool climb(char *folder, int levels) {
    while (levels--) {
        char *slash = strrchr(folder, '/');
        if (!slash)
            return false;
        *slash = 0;
    }
    return true;
}

/* The profile folder of a build, an install or a bundle, derived from the library's location in it.
 */
static bool profile_folder(char *folder, int levels) {
    static const char below[] = "/share/gpumem/profiles";
    if (!library_folder(folder, PATH_MAX - sizeof below) || !climb(folder, levels))
        return false;
    strcat(folder, below);
    return true;
}

bool sg_profile_folder(char *folder) {
    /* From lib/gpumem/softgpu, or lib/<machine>/gpumem/softgpu where a distribution has that level.
     */
    for (int levels = 4; levels >= 3; levels--) {
        DIR *there = profile_folder(folder, levels) ? gm_fd_folder(folder) : NULL;
        if (there) {
            closedir(there);
            return true;
        }
    }
    return false;
}

bool sg_profile_load(struct sg_profile *profile, const char *choice, char *message, size_t size) {
    if (!choice[0]) {
        snprintf(message, size, "SOFTGPU_PROFILE is empty: wanted a name or a path");
        return false;
    }
    if (strchr(choice, '/'))
        return load_file(profile, choice, message, size);
    if (strcmp(choice, "h200") == 0)
        return sg_profile_parse(profile, "profile h200", sg_profile_builtin(), message, size);

    /* From lib/gpumem/softgpu, or lib/<machine>/gpumem/softgpu where a distribution has that level.
     */
    char folder[PATH_MAX] = "";
    for (int levels = 4; levels >= 3; levels--) {
        char path[2 * PATH_MAX];
        if (!profile_folder(folder, levels)) {
            folder[0] = 0;
            continue;
        }
        snprintf(path, sizeof path, "%s/%s.ini", folder, choice);
        FILE *file = gm_fd_stream(path, "r");
        if (!file)
            continue;
        fclose(file);
        return load_file(profile, path, message, size);
    }
    snprintf(message, size,
             "there is no profile %s: h200 is built in, others are <name>.ini in %s, or a path",
             choice, folder[0] ? folder : "share/gpumem/profiles");
    return false;
}
