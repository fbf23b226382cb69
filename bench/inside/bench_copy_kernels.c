/*
 * The kernels that store to mapped device memory and load from it, at each size: nanoseconds from
 * the first store or load until the fence has completed, and GB/s, compared with an inlined loop of
 * words; memcpy is among them. The host side is ordinary memory.
 *
 * By default the mapped side is ordinary memory too, which shows the cost of a kernel but not the
 * effect of a mapping. GPUMEM_BENCH_DESTINATION=LIBRARY:FUNCTION calls a function without
 * arguments, `void *FUNCTION(void)`, that returns the address of at least 16 MiB of mapped memory,
 * or NULL; bench_copy_destination is the same for a program that includes this file.
 *
 * bench_copy_kernels --plan: also writes the plan that results from the timings.
 */
#include "table.h"

#include "mapped/copy/copy.h"

#include <dlfcn.h>
#include <gpumem/mapped_store.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define LARGEST ((size_t)16 << 20)
#define SAMPLES 41
/* A sample of small copies takes this long, so that reading the clock does not matter. */
#define SAMPLE_SECONDS 5e-6
/* Even the slowest, loads of uncached memory, are repeated for no longer than this. */
#define MOST_SECONDS 1.0

static void *ordinary(void) {
    void *memory = mmap(NULL, LARGEST, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

void *(*bench_copy_destination)(void) = ordinary;

static unsigned char *mapped, *host;

/* ---- What is measured ------------------------------------------------------------------------ */

struct way {
    const char *name;
    unsigned direction;
    enum gm_copy_kernel kernel; /* used if `copy` is NULL */
    void (*copy)(void *to, const void *from, size_t bytes);
};

/* What a program would write itself: a loop of words, and then the rest. */
static void by_loop(void *to, const void *from, size_t bytes) {
    volatile uint64_t *words = to;
    const uint64_t *source = from;
    for (size_t i = 0; i < bytes / sizeof *words; i++)
        words[i] = source[i];
    if (bytes % sizeof *words)
        memcpy((char *)to + bytes / sizeof *words * sizeof *words,
               (const char *)from + bytes / sizeof *words * sizeof *words, bytes % sizeof *words);
}

/* The public form: the compiler knows the sizes, so each has its own code. */
static void by_public(void *to, const void *from, size_t bytes) {
    switch (bytes) {
    case 8:
        gpumem_store(to, from, 8);
        break;
    case 16:
        gpumem_store(to, from, 16);
        break;
    case 64:
        gpumem_store(to, from, 64);
        break;
    default:
        gpumem_store(to, from, bytes);
    }
}

static void run_once(const struct way *way, size_t bytes) {
    bool store = way->direction == GM_COPY_STORE;
    void *to = store ? mapped : host;
    const void *from = store ? host : mapped;
    if (!store)
        gm_copy_fence_load();
    if (way->copy)
        way->copy(to, from, bytes);
    else if (store)
        gm_copy_store(way->kernel, to, from, bytes);
    else
        gm_copy_load(way->kernel, to, from, bytes);
    if (store)
        gm_copy_fence();
}

static double measure(const struct way *way, size_t bytes) {
    double samples[SAMPLES], begin = bench_now();
    run_once(way, bytes);
    double once = bench_now() - begin;
    unsigned repeats = once < SAMPLE_SECONDS ? 1 + (unsigned)(SAMPLE_SECONDS / (once + 1e-9)) : 1;
    size_t count = 0;
    for (double end = bench_now() + MOST_SECONDS; count < SAMPLES; count++) {
        if (count >= 3 && bench_now() > end)
            break;
        begin = bench_now();
        for (unsigned i = 0; i < repeats; i++)
            run_once(way, bytes);
        samples[count] = (bench_now() - begin) / repeats;
    }
    return bench_median(samples, count);
}

/* ---- Tables ---------------------------------------------------------------------------------- */

static const size_t sizes[] = {8,    16,    64,    256,    512,     1024,    4096,
                               8192, 32768, 65536, 262144, 1 << 20, 4 << 20, LARGEST};
#define SIZES ((unsigned)(sizeof sizes / sizeof sizes[0]))

static void print_row(const char *name, size_t bytes, double seconds, double loop) {
    printf("%-12s %10zu B %12.3f us %9.2f GB/s %7.2f x the loop\n", name, bytes, seconds * 1e6,
           (double)bytes / seconds / 1e9, seconds / loop);
}

static void note(struct gm_copy_timings *timings, unsigned size, const struct way *way,
                 double seconds) {
    struct gm_copy_timing *timing = &timings->kernels[size][way->kernel];
    if (way->copy)
        return;
    if (way->direction == GM_COPY_STORE)
        timing->store = seconds * 1e9;
    else
        timing->load = seconds * 1e9;
}

static unsigned ways_of(unsigned direction, struct way ways[GM_COPY_KERNEL_COUNT + 2]) {
    enum gm_copy_kernel kernels[GM_COPY_KERNEL_COUNT];
    unsigned count = 0, found = gm_copy_kernels(direction, kernels);
    ways[count++] = (struct way){.name = "loop", .direction = direction, .copy = by_loop};
    if (direction == GM_COPY_STORE)
        ways[count++] =
            (struct way){.name = "gpumem_store", .direction = direction, .copy = by_public};
    for (unsigned i = 0; i < found; i++)
        ways[count++] = (struct way){
            .name = gm_copy_kernel_name(kernels[i]), .direction = direction, .kernel = kernels[i]};
    return count;
}

static void table(unsigned direction, struct gm_copy_timings *timings) {
    struct way ways[GM_COPY_KERNEL_COUNT + 2];
    unsigned count = ways_of(direction, ways);
    printf("\n%s\n", direction == GM_COPY_STORE ? "stores into the mapping, with the fence"
                                                : "loads from the mapping");
    for (unsigned i = 0; i < SIZES; i++) {
        double loop = measure(&ways[0], sizes[i]);
        for (unsigned j = 0; j < count; j++) {
            double seconds = j == 0 ? loop : measure(&ways[j], sizes[i]);
            print_row(ways[j].name, sizes[i], seconds, loop);
            note(timings, i, &ways[j], seconds);
        }
    }
}

static void write_plan(const struct gm_copy_timings *timings) {
    struct gm_copy_plan plan = gm_copy_plan_of(timings, sizes, SIZES);
    struct gm_copy_key key = {.driver = "not asked", .gpu = "not asked"};
    char text[GM_COPY_TEXT_ROOM];
    gm_copy_cpu_name(key.cpu);
    if (gm_copy_plan_encode(&plan, &key, text) == 0)
        bench_fail("the plan cannot be written");
    printf("\n%s", text);
}

/* "LIBRARY:FUNCTION" */
static void take_destination(const char *choice) {
    char library[4096];
    const char *colon = strrchr(choice, ':');
    if (!colon || (size_t)(colon - choice) >= sizeof library)
        bench_fail("GPUMEM_BENCH_DESTINATION=%s: wanted LIBRARY:FUNCTION", choice);
    memcpy(library, choice, (size_t)(colon - choice));
    library[colon - choice] = 0;
    void *opened = dlopen(library, RTLD_NOW);
    if (!opened)
        bench_fail("%s", dlerror());
    *(void **)&bench_copy_destination = dlsym(opened, colon + 1);
    if (!bench_copy_destination)
        bench_fail("%s has no %s", library, colon + 1);
}

int main(int argc, char **argv) {
    static struct gm_copy_timings timings;
    const char *choice = getenv("GPUMEM_BENCH_DESTINATION");
    char cpu[GM_COPY_KEY_ROOM];
    if (choice)
        take_destination(choice);
    mapped = bench_copy_destination();
    host = aligned_alloc(64, LARGEST);
    if (!mapped || !host)
        bench_fail("no memory of %zu bytes", LARGEST);
    memset(host, 0x5a, LARGEST);
    for (unsigned i = 0; i < SIZES; i++) {
        for (int j = 0; j < GM_COPY_KERNEL_COUNT; j++)
            timings.kernels[i][j] = (struct gm_copy_timing){.store = -1, .load = -1};
        timings.driver_pinned[i] = timings.driver_pageable[i] =
            (struct gm_copy_timing){.store = -1, .load = -1};
    }
    gm_copy_cpu_name(cpu);
    printf("copy kernels on %s; the mapped side is %s\n", cpu, choice ? choice : "ordinary memory");
    table(GM_COPY_STORE, &timings);
    table(GM_COPY_LOAD, &timings);
    if (argc > 1 && strcmp(argv[1], "--plan") == 0)
        write_plan(&timings);
    free(host);
    return 0;
}
