#include "softgpu/core/rows.h"

#include "softgpu/core/config.h"

#include <string.h>

#define PLAIN GPUMEM_FN_PLAIN
#define PTDS  GPUMEM_FN_PTDS
#define PTSZ  GPUMEM_FN_PTSZ
const struct sg_row sg_rows[GPUMEM_FN_COUNT] = {
#define CU_FN(symbol, name, version, kind, params, args) {#symbol, #name, version, kind},
#include <gpumem/functions.def>
};

#define CU_FN(symbol, name, version, kind, params, args)                                           \
    _Static_assert(version <= SG_FUNCTIONS_VERSION, #symbol " is newer than "                      \
                                                            "SG_FUNCTIONS_VERSION");
#include <gpumem/functions.def>

/* Slots hold row + 1; a power of two, more than twice the number of rows. */
#define HASH_SIZE 2048u
_Static_assert(GPUMEM_FN_COUNT * 2 < HASH_SIZE, "the hash table is at most half full");
static unsigned short by_symbol[HASH_SIZE];
static unsigned short by_name[HASH_SIZE];

static unsigned hash(const char *text) {
    unsigned value = 2166136261u; /* FNV-1a */
    for (; *text; text++)
        value = (value ^ (unsigned char)*text) * 16777619u;
    return (value ^ value >> 15) % HASH_SIZE;
}

static gpumem_driver_fn find_symbol(const char *symbol, unsigned *free_slot) {
    unsigned at = hash(symbol);
    for (; by_symbol[at]; at = (at + 1) % HASH_SIZE)
        if (strcmp(sg_rows[by_symbol[at] - 1].symbol, symbol) == 0)
            return (gpumem_driver_fn)(by_symbol[at] - 1);
    *free_slot = at;
    return GPUMEM_FN_COUNT;
}

static gpumem_driver_fn find_name(const char *name, unsigned *free_slot) {
    unsigned at = hash(name);
    for (; by_name[at]; at = (at + 1) % HASH_SIZE)
        if (strcmp(sg_rows[by_name[at] - 1].name, name) == 0)
            return (gpumem_driver_fn)(by_name[at] - 1);
    *free_slot = at;
    return GPUMEM_FN_COUNT;
}

gpumem_driver_fn sg_row_find(const char *symbol) {
    unsigned ignored;
    return find_symbol(symbol, &ignored);
}

gpumem_driver_fn sg_name_find(const char *name) {
    unsigned ignored;
    return find_name(name, &ignored);
}

/* Runs before any other constructor, because one may call the driver. */
__attribute__((constructor(101))) static void fill(void) {
    unsigned at = 0;
    for (unsigned i = 0; i < GPUMEM_FN_COUNT; i++) {
        if (find_symbol(sg_rows[i].symbol, &at) == GPUMEM_FN_COUNT)
            by_symbol[at] = (unsigned short)(i + 1);
        if (find_name(sg_rows[i].name, &at) == GPUMEM_FN_COUNT)
            by_name[at] = (unsigned short)(i + 1);
    }
}
