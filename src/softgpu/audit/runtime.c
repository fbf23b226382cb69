/*
 * NVIDIA's libcudart asks the driver for private tables, which softgpu has not: ours is loaded in
 * its place, however it is named: by its soname, found through a RUNPATH, by a path, or as wheels
 * rename it ("libcudart-0123abcd.so.12").
 */
#include "audit.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* "12" of "libcudart.so.12" or "libcudart-0123abcd.so.12.9.79"; NULL for another name. */
static const char *version_of(const char *name) {
    static const char *const versions[] = {"12", "13"};
    const char *slash = strrchr(name, '/'), *base = slash ? slash + 1 : name;
    const char *end = strstr(base, ".so.");
    if (strncmp(base, "libcudart", 9) != 0 || !end || (base[9] != '.' && base[9] != '-'))
        return NULL;
    end += strlen(".so.");
    for (size_t i = 0; i < sizeof versions / sizeof *versions; i++)
        if (strncmp(end, versions[i], 2) == 0 && (!end[2] || end[2] == '.'))
            return versions[i];
    return NULL;
}

const char *audit_runtime_path(const char *name) {
    /* One for each version: the linker keeps what it is given only until its next question. */
    static char paths[2][PATH_MAX];
    const char *folder = getenv("GPUMEM_RUNTIME"), *version = version_of(name);
    if (!version || !folder || !folder[0])
        return name;
    char *path = paths[version[1] - '2'];
    int size = snprintf(path, PATH_MAX, "%s/%s/libcudart.so.%s", folder, version, version);
    return size < PATH_MAX ? path : name;
}
