/*
 * The linker's calls: which objects are looked at, and what their users get.
 *
 * la_symbind64 is not among them. With it the linker (glibc 2.36) allocates memory for each object
 * as it relocates it: for itself by the program's own calloc, before the C library has begun. An
 * allocator that starts a thread then, as jemalloc, is aborted ("allocate_stack: size != 0").
 */
#include "audit.h"

#include <string.h>

/* Kept for each object, by the linker: what it is. */
enum kind { NOTHING, NVRTC, JITLINK, LIBC };
#define COOKIE(kind, copy) ((uintptr_t)(kind) | (uintptr_t)(copy) << 8)
#define KIND(cookie)       ((cookie)&0xff)
#define COPY_OF(cookie)    ((int)((cookie) >> 8))

unsigned la_version(unsigned version) {
    return version < LAV_CURRENT ? version : LAV_CURRENT;
}

/* Asked first with the name that a program or library gives, then with each place to look at. */
char *la_objsearch(const char *name, uintptr_t *cookie, unsigned flag) {
    (void)cookie;
    return (char *)(uintptr_t)(flag == LA_SER_ORIG ? audit_runtime_path(name) : name);
}

static bool is_libc(const struct link_map *map) {
    const char *slash = strrchr(map->l_name, '/');
    return slash && strcmp(slash, "/libc.so.6") == 0 && audit_paths_wanted();
}

static audit_replace *const fronts[] = {
    [NVRTC] = audit_nvrtc_replace, [JITLINK] = audit_jitlink_replace, [LIBC] = audit_paths_replace};

/* By what it defines, not by its name: wheels rename libraries. */
static uintptr_t look_at(const struct link_map *map) {
    int copy = audit_nvrtc_open(map);
    if (copy >= 0)
        return COOKIE(NVRTC, copy);
    copy = audit_jitlink_open(map);
    if (copy >= 0)
        return COOKIE(JITLINK, copy);
    return is_libc(map) ? COOKIE(LIBC, 0) : COOKIE(NOTHING, 0);
}

unsigned la_objopen(struct link_map *map, Lmid_t names, uintptr_t *cookie) {
    *cookie = names == LM_ID_BASE ? look_at(map) : COOKIE(NOTHING, 0);
    if (KIND(*cookie) != NOTHING)
        audit_redefine(map, COPY_OF(*cookie), fronts[KIND(*cookie)]);
    return 0;
}

unsigned la_objclose(uintptr_t *cookie) {
    if (KIND(*cookie) == NVRTC)
        audit_nvrtc_close(COPY_OF(*cookie));
    else if (KIND(*cookie) == JITLINK)
        audit_jitlink_close(COPY_OF(*cookie));
    *cookie = COOKIE(NOTHING, 0);
    return 0;
}
