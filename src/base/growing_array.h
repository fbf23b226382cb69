/* Arrays from malloc that grow. The caller keeps a pointer, how many items there is room for, and
 * how many there are; free() ends the array. */
#ifndef GM_BASE_GROWING_ARRAY_H
#define GM_BASE_GROWING_ARRAY_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Room for `wanted` items in all, of `size` bytes each. `items` points to the caller's pointer to
 * the first, NULL at the beginning, with *room 0. The room at least doubles each time, so that
 * adding n items one by one copies less than 2n. False when out of memory, or when there are no
 * such numbers; then the array is as it was. New items hold anything.
 */
bool gm_array_reserve(void *items, size_t *room, size_t wanted, size_t size);

/* For an array `list` of any type, and `room` a size_t: both are changed in place. */
#define GM_RESERVE(list, room, wanted) gm_array_reserve(&(list), &(room), (wanted), sizeof *(list))

#endif
