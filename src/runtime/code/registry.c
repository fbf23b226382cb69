/*
 * The table of registered functions and variables. Launches look in it without a lock: a slot is
 * written once its symbol is complete, and neither tables that were too small nor symbols are
 * freed, for those who still look at them while a library is unloaded.
 */
#include "runtime/code/code.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct table {
    size_t room, used; /* slots, a power of two; slots that were ever used */
    struct table *smaller;
    _Atomic(struct rt_symbol *) slot[];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic(struct table *) tables[RT_TABLES];
/* In a slot whose symbol has gone, which another may have. */
static struct rt_symbol gone;
static struct rt_symbol *unused; /* symbols for the next to come */

static size_t place_of(const void *host, size_t room) {
    uint64_t mixed = (uint64_t)(uintptr_t)host * 0x9e3779b97f4a7c15u;
    return (size_t)(mixed >> 20) & (room - 1);
}

struct rt_symbol *rt_find_symbol(enum rt_table_kind kind, const void *host) {
    struct table *table = atomic_load_explicit(&tables[kind], memory_order_acquire);
    if (!table || !host)
        return NULL;
    for (size_t at = place_of(host, table->room);; at = (at + 1) & (table->room - 1)) {
        struct rt_symbol *symbol = atomic_load_explicit(&table->slot[at], memory_order_acquire);
        if (!symbol || symbol->host == host)
            return symbol;
    }
}

struct rt_symbol *rt_next_symbol(enum rt_table_kind kind, size_t *place) {
    struct table *table = atomic_load_explicit(&tables[kind], memory_order_acquire);
    while (table && *place < table->room) {
        struct rt_symbol *symbol =
            atomic_load_explicit(&table->slot[(*place)++], memory_order_acquire);
        if (symbol && symbol != &gone)
            return symbol;
    }
    return NULL;
}

/* In the place of one with the same address, or else in the first slot without a symbol. */
static void put(struct table *table, struct rt_symbol *symbol) {
    const void *host = symbol->host;
    size_t at = place_of(host, table->room), empty = table->room;
    struct rt_symbol *there;
    while ((there = atomic_load(&table->slot[at])) && there->host != host) {
        if (there == &gone && empty == table->room)
            empty = at;
        at = (at + 1) & (table->room - 1);
    }
    table->used += !there && empty == table->room;
    if (!there && empty != table->room)
        at = empty;
    atomic_store_explicit(&table->slot[at], symbol, memory_order_release);
}

static struct table *grow(enum rt_table_kind kind, struct table *old) {
    size_t room = old ? 2 * old->room : 64;
    struct table *table = calloc(1, sizeof *table + room * sizeof *table->slot);
    if (!table)
        return NULL;
    table->room = room;
    table->smaller = old;
    for (size_t i = 0; old && i < old->room; i++) {
        struct rt_symbol *symbol = atomic_load(&old->slot[i]);
        if (symbol && symbol != &gone)
            put(table, symbol);
    }
    atomic_store_explicit(&tables[kind], table, memory_order_release);
    return table;
}

static struct rt_symbol *take_unused(void) {
    struct rt_symbol *symbol = unused;
    if (!symbol)
        return calloc(1, sizeof *symbol);
    unused = symbol->next;
    return symbol;
}

static void keep_unused(struct rt_symbol *symbol) {
    atomic_store(&symbol->host, NULL);
    atomic_store(&symbol->kernel, NULL);
    symbol->next = unused;
    unused = symbol;
}

/* Without memory the symbol is unknown, as it would be to a program that was not told of it. */
static void add(enum rt_table_kind kind, void **handle, const void *host, const char *name,
                size_t size, bool managed) {
    struct rt_binary *binary = (struct rt_binary *)(void *)handle;
    if (!binary || !host)
        return;
    pthread_mutex_lock(&lock);
    struct table *table = atomic_load(&tables[kind]);
    struct rt_symbol *symbol = take_unused();
    if (symbol && (!table || 4 * (table->used + 1) > 3 * table->room))
        table = grow(kind, table);
    if (symbol && table) {
        struct rt_symbol **list = kind == RT_FUNCTIONS ? &binary->functions : &binary->variables;
        symbol->name = name;
        symbol->binary = binary;
        symbol->size = size;
        symbol->managed = managed;
        symbol->next = *list;
        *list = symbol;
        atomic_store(&symbol->host, host);
        put(table, symbol);
    } else if (symbol) {
        keep_unused(symbol);
    }
    pthread_mutex_unlock(&lock);
}

static void forget(enum rt_table_kind kind, struct rt_symbol *list) {
    struct table *table = atomic_load(&tables[kind]);
    while (list) {
        struct rt_symbol *next = list->next;
        for (size_t at = place_of(list->host, table->room);; at = (at + 1) & (table->room - 1)) {
            struct rt_symbol *there = atomic_load(&table->slot[at]);
            if (there == list)
                atomic_store(&table->slot[at], &gone);
            if (!there || there == list)
                break;
        }
        keep_unused(list);
        list = next;
    }
}

/* ---- What nvcc's code calls ------------------------------------------------------------------ */

RT_EXPORT void **__cudaRegisterFatBinary(void *wrapper);
RT_EXPORT void __cudaRegisterFatBinaryEnd(void **handle);
RT_EXPORT void __cudaUnregisterFatBinary(void **handle);
RT_EXPORT void __cudaRegisterFunction(void **handle, const char *host, char *device,
                                      const char *name, int limit, void *tid, void *bid,
                                      dim3 *block, dim3 *grid, int *warp);
RT_EXPORT void __cudaRegisterVar(void **handle, char *host, char *device, const char *name, int ext,
                                 size_t size, int constant, int global);
RT_EXPORT void __cudaRegisterManagedVar(void **handle, void **host, char *device, const char *name,
                                        int ext, size_t size, int constant, int global);
RT_EXPORT char __cudaInitModule(void **handle);

void **__cudaRegisterFatBinary(void *wrapper) {
    const struct rt_wrapper *given = wrapper;
    struct rt_binary *binary =
        given && given->magic == RT_WRAPPER_MAGIC ? calloc(1, sizeof *binary) : NULL;
    if (binary)
        binary->wrapper = given;
    return (void **)(void *)binary;
}

void __cudaRegisterFatBinaryEnd(void **handle) {
    (void)handle;
}

void __cudaUnregisterFatBinary(void **handle) {
    struct rt_binary *binary = (struct rt_binary *)(void *)handle;
    if (!binary)
        return;
    pthread_mutex_lock(&lock);
    forget(RT_FUNCTIONS, binary->functions);
    forget(RT_VARIABLES, binary->variables);
    pthread_mutex_unlock(&lock);
    rt_unload_binary(binary);
    free(binary);
}

void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name,
                            int limit, void *tid, void *bid, dim3 *block, dim3 *grid, int *warp) {
    (void)device, (void)limit, (void)tid, (void)bid, (void)block, (void)grid, (void)warp;
    add(RT_FUNCTIONS, handle, host, name, 0, false);
}

void __cudaRegisterVar(void **handle, char *host, char *device, const char *name, int ext,
                       size_t size, int constant, int global) {
    (void)device, (void)ext, (void)constant, (void)global;
    add(RT_VARIABLES, handle, host, name, size, false);
}

/* `host` is the pointer through which the program reads the variable. */
void __cudaRegisterManagedVar(void **handle, void **host, char *device, const char *name, int ext,
                              size_t size, int constant, int global) {
    (void)device, (void)ext, (void)constant, (void)global;
    add(RT_VARIABLES, handle, host, name, size, true);
}

static cudaError_t fill_pointers(struct rt_binary *binary) {
    CUlibrary library;
    cudaError_t error = rt_need_context();
    if (error == cudaSuccess)
        error = rt_load_binary(binary, &library);
    for (struct rt_symbol *each = binary->variables; each && error == cudaSuccess;
         each = each->next) {
        CUdeviceptr address = 0;
        size_t size;
        if (!each->managed)
            continue;
        error = rt_error(CU(cuLibraryGetManaged)(&address, &size, library, each->name));
        /* Another thread may have done it, and its program reads the pointer already. */
        void **pointer = (void **)(uintptr_t)each->host, *wanted = (void *)(uintptr_t)address;
        if (error == cudaSuccess && __atomic_load_n(pointer, __ATOMIC_RELAXED) != wanted)
            __atomic_store_n(pointer, wanted, __ATOMIC_RELAXED);
    }
    return error;
}

/* Called before host code first touches a managed variable. */
char __cudaInitModule(void **handle) {
    struct rt_binary *binary = (struct rt_binary *)(void *)handle;
    if (!binary)
        return 0;
    if (!atomic_load(&binary->pointers_filled) && rt_set(fill_pointers(binary)) == cudaSuccess)
        atomic_store(&binary->pointers_filled, true);
    return atomic_load(&binary->pointers_filled);
}

/* A constructor or dlclose in another thread may have held it at the fork, and exit needs it. */
void rt_registry_in_child(void) {
    pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;
    lock = fresh;
}
