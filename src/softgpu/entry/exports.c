/*
 * What libsoftgpu exports: a wrapper for each row of functions.def, and the implementation behind
 * it.
 */
#define SG_CALLS_MAY_BE_ABSENT
#include "softgpu/core/calls.h"
#include "softgpu/core/state.h"
#include "softgpu/entry/entry.h"

#include <string.h>

#define EXPORT __attribute__((visibility("default")))

#define CU_FN(symbol, name, version, kind, params, args) EXPORT CUresult CUDAAPI symbol params;
#include <gpumem/functions.def>

_Static_assert(sizeof(gpumem_driver_api) == GPUMEM_FN_COUNT * sizeof(sg_any_fn),
               "a row of the table is one pointer");

/* A member is NULL where no chapter defines the function: a weak reference that nothing met. */
static gpumem_driver_api implementations = {
#define CU_FN(symbol, name, version, kind, params, args) .symbol = sg_##symbol,
#include <gpumem/functions.def>
};

static const gpumem_driver_api wrappers = {
#define CU_FN(symbol, name, version, kind, params, args) .symbol = symbol,
#include <gpumem/functions.def>
};

#define PLAIN GPUMEM_FN_PLAIN
#define PTDS  GPUMEM_FN_PTDS
#define PTSZ  GPUMEM_FN_PTSZ
const struct sg_row sg_rows[GPUMEM_FN_COUNT] = {
#define CU_FN(symbol, name, version, kind, params, args) {#symbol, #name, version, kind},
#include <gpumem/functions.def>
};

/*
 * The first two arguments as numbers; 0 where there is none, because then it reads (uintptr_t) + 0.
 * Four functions have a structure there, which their PASSED macro leaves out.
 */
#define FIRST(...)                             FIRST_OF(__VA_ARGS__, 0)
#define FIRST_OF(first, ...)                   ((uintptr_t)first + 0)
#define SECOND(...)                            SECOND_OF(__VA_ARGS__, 0, 0)
#define SECOND_OF(first, second, ...)          ((uintptr_t)second + 0)
#define PASSED(...)                            PASSED_OF(__VA_ARGS__, )
#define PASSED_OF(ignored, chosen, ...)        chosen
#define PASSED_cuEGLStreamProducerPresentFrame ~, 1
#define PASSED_cuIpcOpenEventHandle            ~, 1
#define PASSED_cuIpcOpenMemHandle              ~, 1
#define PASSED_cuIpcOpenMemHandle_v2           ~, 1
#define ARGUMENTS(symbol, args)                                                                    \
    { FIRST args, PASSED(PASSED_##symbol, SECOND args) }

/* Names that no parameter bears: rows have a `result` of their own. */
#define CU_FN(symbol, name, version, kind, params, args)                                           \
    CUresult CUDAAPI symbol params {                                                               \
        struct sg_arguments arguments_ = ARGUMENTS(symbol, args);                                  \
        struct sg_call entry_;                                                                     \
        CUresult answer_;                                                                          \
        if (sg_enter(&entry_, GPUMEM_FN_##symbol, arguments_, &answer_))                           \
            answer_ = implementations.symbol args;                                                 \
        return sg_leave(&entry_, answer_);                                                         \
    }
#include <gpumem/functions.def>

static sg_any_fn slot(const gpumem_driver_api *table, gpumem_driver_fn fn) {
    sg_any_fn found;
    memcpy(&found, (const char *)table + (size_t)fn * sizeof found, sizeof found);
    return found;
}

sg_any_fn sg_exported(gpumem_driver_fn fn) {
    return slot(&wrappers, fn);
}

bool sg_implemented(gpumem_driver_fn fn) {
    return slot(&implementations, fn) != NULL;
}

/* ---- Finding rows by symbol and by name ----------------------------------------------------- */

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

/* A twin is its plain row with another meaning of NULL, so it borrows the implementation. */
static void fill_twin(unsigned row) {
    char plain[128];
    size_t length = strlen(sg_rows[row].symbol) - strlen("_ptsz");
    if (length >= sizeof plain)
        return;
    memcpy(plain, sg_rows[row].symbol, length);
    plain[length] = '\0';
    gpumem_driver_fn found = sg_row_find(plain);
    if (found == GPUMEM_FN_COUNT)
        return;
    memcpy((char *)&implementations + row * sizeof(sg_any_fn),
           (const char *)&implementations + (size_t)found * sizeof(sg_any_fn), sizeof(sg_any_fn));
}

/* Before any other constructor, because one may call the driver. */
__attribute__((constructor(101))) static void fill_tables(void) {
    unsigned at = 0;
    for (unsigned i = 0; i < GPUMEM_FN_COUNT; i++) {
        if (find_symbol(sg_rows[i].symbol, &at) == GPUMEM_FN_COUNT)
            by_symbol[at] = (unsigned short)(i + 1);
        if (find_name(sg_rows[i].name, &at) == GPUMEM_FN_COUNT)
            by_name[at] = (unsigned short)(i + 1);
    }
    for (unsigned i = 0; i < GPUMEM_FN_COUNT; i++)
        if (sg_rows[i].kind != GPUMEM_FN_PLAIN)
            fill_twin(i);
}
