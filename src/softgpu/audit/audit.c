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

static uintptr_t look_at(const struct link_map *map) {
    int copy = audit_nvrtc_open(map);
    if (copy >= 0)
        return COOKIE(NVRTC, copy);
    copy = audit_jitlink_open(map);
    if (copy >= 0)
        return COOKIE(JITLINK, copy);
    return is_libc(map) ? COOKIE(LIBC, 0) : COOKIE(NOTHING, 0);
}

/* By what it defines, not by its name: wheels rename libraries. */
unsigned la_objopen(struct link_map *map, Lmid_t names, uintptr_t *cookie) {
    *cookie = names == LM_ID_BASE ? look_at(map) : COOKIE(NOTHING, 0);
    if (names != LM_ID_BASE)
        return 0;
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

uintptr_t la_symbind64(Elf64_Sym *symbol, unsigned index, uintptr_t *from, uintptr_t *to,
                       unsigned *flags, const char *name) {
    (void)index, (void)flags;
    uintptr_t front = 0;
    if (*from == *to && KIND(*to) != LIBC)
        return symbol->st_value; /* it calls itself */
    if (KIND(*to) == NVRTC)
        front = audit_nvrtc_replace(COPY_OF(*to), name);
    else if (KIND(*to) == JITLINK)
        front = audit_jitlink_replace(COPY_OF(*to), name);
    else if (KIND(*to) == LIBC)
        front = audit_paths_replace(name, symbol->st_value);
    return front ? front : symbol->st_value;
}
