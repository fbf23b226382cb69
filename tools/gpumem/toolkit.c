#include "toolkit.h"
#include "descriptor.h"

#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool join(char path[PATH_MAX], const char *folder, const char *name) {
    int size = snprintf(path, PATH_MAX, "%s/%s", folder, name);
    return size > 0 && size < PATH_MAX;
}

/* The real path of an nvcc in the folder that is not the wrapper. */
static bool has_nvcc(const char *folder, const char *wrapper, char real[PATH_MAX]) {
    char path[PATH_MAX];
    return folder[0] && join(path, folder, "nvcc") && access(path, X_OK) == 0 &&
           realpath(path, real) && strcmp(real, wrapper) != 0;
}

static bool on_path(const char *wrapper, char real[PATH_MAX]) {
    char folder[PATH_MAX];
    for (const char *at = getenv("PATH"); at; at = strchr(at, ':') ? strchr(at, ':') + 1 : NULL) {
        int size = snprintf(folder, sizeof folder, "%.*s", (int)strcspn(at, ":"), at);
        if (size < (int)sizeof folder && has_nvcc(folder, wrapper, real))
            return true;
    }
    return false;
}

/* Where the wrapper of nvcc looks for the next one. */
static bool find_nvcc(const char *wrapper, char real[PATH_MAX]) {
    static const char *const variables[] = {"CUDA_HOME", "CUDA_PATH"};
    char folder[PATH_MAX];
    if (on_path(wrapper, real))
        return true;
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
        const char *home = getenv(variables[i]);
        if (home && home[0] && join(folder, home, "bin") && has_nvcc(folder, wrapper, real))
            return true;
    }
    return has_nvcc("/usr/local/cuda/bin", wrapper, real);
}

/* Links in `folder` to what is in `from`, except `left_out`. What is there already stays: the
 * folder's name says what its links lead to. */
static void link_all(const char *folder, const char *from, const char *left_out) {
    DIR *entries = cli_open_folder(from);
    for (struct dirent *entry; entries && (entry = readdir(entries));) {
        char target[PATH_MAX], link[PATH_MAX];
        if (entry->d_name[0] != '.' && strcmp(entry->d_name, left_out) != 0 &&
            join(target, from, entry->d_name) && join(link, folder, entry->d_name) &&
            symlink(target, link) != 0)
            continue;
    }
    if (entries)
        closedir(entries);
}

static uint32_t hash_of(const char *first, const char *second) {
    uint32_t sum = 2166136261u;
    for (const char *text = first; text; text = text == first ? second : NULL)
        for (const char *at = text; *at; at++)
            sum = (sum ^ (unsigned char)*at) * 16777619u;
    return sum;
}

bool toolkit_link(const char *wrappers, const char *cache, char bin[PATH_MAX]) {
    char wrapper[PATH_MAX], nvcc[PATH_MAX], root[PATH_MAX], name[64], folder[PATH_MAX];
    char path[PATH_MAX];
    if (!join(path, wrappers, "nvcc") || !realpath(path, wrapper) || !find_nvcc(wrapper, nvcc))
        return false;
    snprintf(root, sizeof root, "%s", nvcc);
    for (int up = 0; up < 2; up++) { /* "/bin/nvcc" is cut off */
        char *slash = strrchr(root, '/');
        if (slash)
            *slash = 0;
    }
    snprintf(name, sizeof name, "toolkit-%08x", (unsigned)hash_of(root, wrapper));
    if (!join(folder, cache, name) || !join(bin, folder, "bin"))
        return false;
    mkdir(cache, 0700); /* each may exist */
    mkdir(folder, 0700);
    mkdir(bin, 0700);
    link_all(folder, root[0] ? root : "/", "bin");
    link_all(bin, wrappers, "");
    if (root[0] && strcmp(root, "/usr") != 0 && join(path, root, "bin"))
        link_all(bin, path, "");
    return join(path, bin, "nvcc") && realpath(path, nvcc) && strcmp(nvcc, wrapper) == 0;
}
