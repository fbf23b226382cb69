#include "softgpu/core/site.h"

#include "base/printable.h"
#include "softgpu/core/rows.h"
#include "softgpu/core/runtime_calls.h"
#include "softgpu/core/state.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEPTH      6  /* calls that are reported */
#define INSIDE     24 /* calls that are examined: those within this library come first */
#define SITE_LIMIT (1u << 16)
#define BUCKETS    4096u

struct site {
    uint32_t next; /* in its bucket */
    unsigned fn;
    const char *runtime;      /* the runtime's function that called it, or NULL */
    void *calls[DEPTH];       /* return addresses, the innermost first */
    char test[SG_LABEL_ROOM]; /* the thread's label or pytest's test; "" if there is none */
};

static atomic_bool kept;
static uintptr_t own_start, own_end; /* this library's code */

/* By number; 0 is none. Blocks never move and live until the process ends. */
#define BLOCK 256u
static struct site *blocks[SITE_LIMIT / BLOCK];
static uint32_t site_count = 1;
static uint32_t buckets[BUCKETS];

/* ---- Which library an address is in ---------------------------------------------------------- */

struct search {
    uintptr_t address, base, start, end;
    char name[256];
};

/* dl_iterate_phdr and not dladdr, whose lock may be held by a thread that waits for the driver's: a
 * library's constructor may call the driver. */
static int look(struct dl_phdr_info *info, size_t size, void *user) {
    struct search *search = user;
    (void)size;
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        uintptr_t start = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
        uintptr_t end = start + info->dlpi_phdr[i].p_memsz;
        if (info->dlpi_phdr[i].p_type != PT_LOAD || search->address < start ||
            search->address >= end)
            continue;
        search->base = info->dlpi_addr;
        search->start = start;
        search->end = end;
        snprintf(search->name, sizeof search->name, "%s", info->dlpi_name);
        return 1;
    }
    return 0;
}

static bool find(uintptr_t address, struct search *search) {
    *search = (struct search){.address = address};
    return dl_iterate_phdr(look, search) != 0;
}

/* The program itself has no name in the loader's list. */
static const char *path_of(struct search *search) {
    if (!search->name[0]) {
        ssize_t length = readlink("/proc/self/exe", search->name, sizeof search->name - 1);
        search->name[length > 0 ? length : 0] = '\0';
    }
    return search->name;
}

static const char *name_of(struct search *search) {
    const char *path = path_of(search), *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

void sg_site_range(const void *code, uintptr_t *start, uintptr_t *end) {
    struct search search;
    bool found = find((uintptr_t)code, &search);
    *start = found ? search.start : 0;
    *end = found ? search.end : 0;
}

bool sg_site_file(const void *code, char *file, size_t size) {
    struct search search;
    if (!find((uintptr_t)code, &search))
        return false;
    snprintf(file, size, "%s", path_of(&search));
    return true;
}

/* ---- Recording ------------------------------------------------------------------------------- */

/* A library that comes as the filtee of one that is opened while the program runs is not among
 * those in which glibc (2.35 and later) finds where frames end, so that a walk would stop in it.
 * Asking for it by name enters it. */
static void make_known(const char *path) {
    void *library = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
    if (library)
        dlclose(library);
}

void sg_sites_begin(void) {
    void *unused[2];
    struct search own;
    if (find((uintptr_t)sg_sites_begin, &own)) {
        own_start = own.start;
        own_end = own.end;
        make_known(path_of(&own));
    }
    (void)backtrace(unused, 2); /* may load the unwinder: not under the lock */
    atomic_store(&kept, true);
}

/* Python sets it in its main thread; in other threads getenv could race with that. */
static void take_test(char *test, size_t size) {
    const char *current = sg_thread()->label;
    if (!*current)
        current = getpid() == gettid() ? secure_getenv("PYTEST_CURRENT_TEST") : NULL;
    snprintf(test, size, "%s", current ? current : "");
}

void sg_label_set(const char *text) {
    char *label = sg_thread()->label;
    gm_printable(text ? text : "", label, SG_LABEL_ROOM);
}

static struct site *site_at(uint32_t number) {
    return &blocks[number / BLOCK][number % BLOCK];
}

static uint32_t hash(const struct site *site) {
    uint64_t sum = site->fn ^ (uintptr_t)site->runtime;
    for (unsigned i = 0; i < DEPTH; i++)
        sum = (sum ^ (uintptr_t)site->calls[i]) * 0x9e3779b97f4a7c15u;
    for (const char *at = site->test; *at; at++)
        sum = (sum ^ (unsigned char)*at) * 0x100000001b3u;
    return (uint32_t)(sum >> 32) % BUCKETS;
}

static bool same(const struct site *a, const struct site *b) {
    return a->fn == b->fn && a->runtime == b->runtime &&
           memcmp(a->calls, b->calls, sizeof a->calls) == 0 && strcmp(a->test, b->test) == 0;
}

static uint32_t keep(const struct site *site) {
    uint32_t *bucket = &buckets[hash(site)];
    for (uint32_t at = *bucket; at; at = site_at(at)->next)
        if (same(site_at(at), site))
            return at;
    if (site_count == SITE_LIMIT)
        return 0;
    struct site **block = &blocks[site_count / BLOCK];
    if (!*block)
        *block = calloc(BLOCK, sizeof **block);
    if (!*block)
        return 0;
    *site_at(site_count) = *site;
    site_at(site_count)->next = *bucket;
    *bucket = site_count;
    return site_count++;
}

static void take_calls(struct site *site) {
    void *calls[INSIDE];
    int depth = backtrace(calls, INSIDE), first = 0;
    while (first < depth && ((uintptr_t)calls[first] - own_start < own_end - own_start ||
                             sg_runtime_has_code(calls[first])))
        first++;
    for (int i = 0; i < DEPTH && first + i < depth; i++)
        site->calls[i] = calls[first + i];
}

uint32_t sg_site_here(void) {
    bool with_calls = atomic_load_explicit(&kept, memory_order_relaxed);
    if (!with_calls && !sg_thread()->label[0])
        return 0;
    struct site site = {.fn = sg_thread()->fn, .runtime = sg_runtime_call()};
    if (with_calls)
        take_calls(&site);
    take_test(site.test, sizeof site.test);
    return keep(&site);
}

static uint64_t last_number;

struct sg_origin sg_origin_here(void) {
    return (struct sg_origin){++last_number, sg_site_here()};
}

uint64_t sg_origin_last(void) {
    return last_number;
}

/* ---- Printing -------------------------------------------------------------------------------- */

void sg_site_text(uint32_t number, char *text, size_t size) {
    text[0] = '\0';
    if (number == 0)
        return;
    const struct site *site = site_at(number);
    const char *symbol = sg_rows[site->fn].symbol;
    size_t used = site->runtime ? (size_t)snprintf(text, size, "%s (%s)", site->runtime, symbol)
                                : (size_t)snprintf(text, size, "%s", symbol);
    for (unsigned i = 0; i < DEPTH && site->calls[i] && used < size; i++) {
        struct search search;
        /* The address of the call, not of the next instruction, which may belong to another line.
         */
        uintptr_t call = (uintptr_t)site->calls[i] - 1;
        const char *before = i == 0 ? " from" : " <";
        int length = find(call, &search)
                         ? snprintf(text + used, size - used, "%s %s+0x%zx", before,
                                    name_of(&search), (size_t)(call - search.base))
                         : snprintf(text + used, size - used, "%s 0x%zx", before, (size_t)call);
        used += length > 0 ? (size_t)length : 0;
    }
    if (site->test[0] && used < size)
        snprintf(text + used, size - used, ", in %s", site->test);
}
