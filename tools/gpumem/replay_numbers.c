#include "replay.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_ROOM 16

static size_t slot_of(const struct replay_numbers *n, uint64_t value) {
    size_t mask = 2 * n->room - 1;
    size_t at = (size_t)((value ^ value >> 29) * 0x9e3779b97f4a7c15u >> 20) & mask;
    while (n->table[at] && n->values[n->table[at] - 1] != value)
        at = (at + 1) & mask;
    return at;
}

static bool make_room(struct replay_numbers *n) {
    size_t room = n->room ? 2 * n->room : FIRST_ROOM;
    uint64_t *values = realloc(n->values, room * sizeof *values);
    uint32_t *table = calloc(2 * room, sizeof *table);
    if (values)
        n->values = values;
    if (!values || !table) {
        free(table);
        return false;
    }
    free(n->table);
    n->table = table;
    n->room = room;
    for (size_t i = 0; i < n->count; i++)
        table[slot_of(n, values[i])] = (uint32_t)i + 1;
    return true;
}

uint32_t replay_number(struct replay_numbers *n, uint64_t value) {
    if (n->room) {
        uint32_t found = n->table[slot_of(n, value)];
        if (found)
            return found - 1;
    }
    if (n->count == n->room && !make_room(n))
        return UINT32_MAX;
    n->values[n->count] = value;
    n->table[slot_of(n, value)] = (uint32_t)n->count + 1;
    return (uint32_t)n->count++;
}

void replay_numbers_clear(struct replay_numbers *n) {
    free(n->values);
    free(n->table);
    *n = (struct replay_numbers){0};
}
