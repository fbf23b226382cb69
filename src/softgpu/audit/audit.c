/* The linker's calls: which objects are looked at, and what their users get. */
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
    if (names != LM_ID_BASE)
        return 0;
    if (KIND(*cookie) != NOTHING)
        audit_redefine(map, COPY_OF(*cookie), fronts[KIND(*cookie)]);
    return LA_FLG_BINDFROM | (KIND(*cookie) != NOTHING ? LA_FLG_BINDTO : 0);
}

unsigned la_objclose(uintptr_t *cookie) {
    if (KIND(*cookie) == NVRTC)
        audit_nvrtc_close(COPY_OF(*cookie));
    else if (KIND(*cookie) == JITLINK)
        audit_jitlink_close(COPY_OF(*cookie));
    *cookie = COOKIE(NOTHING, 0);
    return 0;
}

/* A library that calls its own functions must not come back to what is in front of them. */
static uintptr_t of_itself(uintptr_t cookie, const char *name) {
    return KIND(cookie) == NVRTC     ? audit_nvrtc_itself(COPY_OF(cookie), name)
           : KIND(cookie) == JITLINK ? audit_jitlink_itself(COPY_OF(cookie), name)
                                     : 0;
}

uintptr_t la_symbind64(Elf64_Sym *symbol, unsigned index, uintptr_t *from, uintptr_t *to,
                       unsigned *flags, const char *name) {
    (void)index, (void)flags;
    uintptr_t other = 0;
    if (*from == *to && KIND(*to) != LIBC)
        other = of_itself(*to, name);
    else if (KIND(*to) != NOTHING)
        other = fronts[KIND(*to)](COPY_OF(*to), name, symbol->st_value);
    return other ? other : symbol->st_value;
}
