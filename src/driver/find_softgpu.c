#include "driver/find_softgpu.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BELOW_LIBRARIES "gpumem/softgpu"

static int name_file(char *path, size_t size, const char *folder) {
    int length = snprintf(path, size, "%s/libsoftgpu.so.0", folder);
    return length > 0 && (size_t)length < size;
}

static int is_there(char *path, size_t size, const char *folder, const char *below) {
    char place[2 * PATH_MAX], real[PATH_MAX];
    int length = snprintf(place, sizeof place, "%s/%s", folder, below);
    if (length < 0 || (size_t)length >= sizeof place || !name_file(path, size, place) ||
        access(path, R_OK) != 0)
        return 0;
    /* Reported with its folder resolved, under the file's own name. */
    return !realpath(place, real) || name_file(path, size, real);
}

/* The object that contains this code: the shared library, or a program linked with the static
 * one. */
static const struct link_map *own_object(void) {
    Dl_info self;
    struct link_map *map = NULL;
    void *code = (void *)(size_t)gm_find_softgpu;
    return dladdr1(code, &self, (void **)&map, RTLD_DL_LINKMAP) != 0 ? map : NULL;
}

static int is_beside(char *path, size_t size, const struct link_map *own) {
    /* The last two are for programs linked with the static library: bin/, and tests next to
     * lib/. */
    static const char *const places[] = {BELOW_LIBRARIES, "../lib/" BELOW_LIBRARIES,
                                         "../../lib/" BELOW_LIBRARIES};
    char folder[PATH_MAX];
    /* The program itself has no name there, and dli_fname is then argv[0], which may be anything.
     */
    if (!realpath(own->l_name && own->l_name[0] ? own->l_name : "/proc/self/exe", folder))
        return 0;
    *strrchr(folder, '/') = 0;
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++)
        if (is_there(path, size, folder, places[i]))
            return 1;
    return 0;
}

/*
 * The folders that the dynamic loader searches for this object. A program linked with the static
 * library knows the installation only through its run path, which the CMake and pkg-config packages
 * point to the library folder. The loader itself searches that folder but not those below it, so
 * that softgpu's libcuda.so.1 is not found by name.
 */
static int is_searched(char *path, size_t size, const struct link_map *own) {
    int named = own->l_name && own->l_name[0];
    void *object = dlopen(named ? own->l_name : NULL, RTLD_LAZY | RTLD_NOLOAD);
    Dl_serinfo head;
    Dl_serinfo *list = NULL;
    int found = 0;
    if (object && dlinfo(object, RTLD_DI_SERINFOSIZE, &head) == 0)
        list = malloc(head.dls_size);
    if (list && dlinfo(object, RTLD_DI_SERINFOSIZE, list) == 0 &&
        dlinfo(object, RTLD_DI_SERINFO, list) == 0)
        for (unsigned i = 0; i < list->dls_cnt && !found; i++)
            found = list->dls_serpath[i].dls_name[0] == '/' &&
                    is_there(path, size, list->dls_serpath[i].dls_name, BELOW_LIBRARIES);
    free(list);
    if (object)
        dlclose(object);
    return found;
}

int gm_find_softgpu(char *path, size_t size) {
    const struct link_map *own = own_object();
    if (own && (is_beside(path, size, own) || is_searched(path, size, own)))
        return 1;
    return is_there(path, size, GPUMEM_INSTALL_LIBDIR, BELOW_LIBRARIES);
}
