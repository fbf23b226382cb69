#include "base/growing_array.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_ROOM 4

/* The next room, if the array may be that large at all. */
static size_t next_room(size_t room, size_t wanted, size_t size) {
    size_t most = SIZE_MAX / 2 / size, next = room ? room : FIRST_ROOM / 2;
    next = next <= most / 2 ? 2 * next : most;
    return next > wanted ? next : wanted;
}

bool gm_array_reserve(void *items, size_t *room, size_t wanted, size_t size) {
    if (wanted <= *room)
        return true;
    size_t next = next_room(*room, wanted, size), bytes;
    if (__builtin_mul_overflow(next, size, &bytes))
        return false;
    void *old, *grown;
    memcpy(&old, items, sizeof old); /* of any type, and so not to be read as void * */
    grown = realloc(old, bytes);
    if (!grown)
        return false;
    memcpy(items, &grown, sizeof grown);
    *room = next;
    /* cppcheck-suppress memleak */ /* the caller's pointer has it */
    return true;
}
