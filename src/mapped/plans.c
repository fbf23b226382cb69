#include "mapped/plans.h"

#include "base/cache_file.h"
#include "base/printable.h"
#include "driver/loader.h"
#include "memory/core/driver_error.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Guards the list, and that each machine is in it once. No other lock is taken under it. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct gm_plans *all;

/* ---- Without a measurement ------------------------------------------------------------------- */

/* For host memory at both addresses, or a coherent platform: it is cached by the CPU, so the C
 * library's copy is best. */
static struct gm_copy_plan cached(void) {
    bool has = gm_copy_kernel_can(GM_COPY_MEMCPY, GM_COPY_STORE | GM_COPY_LOAD);
    enum gm_copy_kernel kernel = has ? GM_COPY_MEMCPY : GM_COPY_PLAIN;
    return (struct gm_copy_plan){
        .classes = {{.bytes = UINT64_MAX, .store = kernel, .load = kernel}},
        .class_count = 1,
        .store = {.pinned = GM_COPY_NEVER, .pageable = GM_COPY_NEVER},
        .load = {.pinned = GM_COPY_NEVER, .pageable = GM_COPY_NEVER},
    };
}

static struct gm_copy_plan default_of(gpumem_mapped_method method) {
    if (method == GPUMEM_MAPPED_COHERENT || method == GPUMEM_MAPPED_DESCRIPTOR)
        return cached();
    return gm_copy_plan_default();
}

/* ---- Whose plan it is ------------------------------------------------------------------------ */

static void fill_key(gpumem_device *device, gpumem_mapped_method method, struct gm_copy_key *key) {
    char name[96] = "", printable[96];
    gm_copy_cpu_name(key->cpu);
    if (device->cu->cuDeviceGetName(name, (int)sizeof name, device->handle) != CUDA_SUCCESS ||
        gm_printable(name, printable, sizeof printable) == 0)
        snprintf(printable, sizeof printable, "unknown");
    int softgpu = gm_driver_is_softgpu(device->library->driver);
    snprintf(key->driver, sizeof key->driver, "%s %d", softgpu ? "softgpu" : "nvidia",
             device->library->driver_version);
    snprintf(key->gpu, sizeof key->gpu, "%s, %s", printable, gpumem_mapped_method_name(method));
}

static bool same(const struct gm_copy_key *a, const struct gm_copy_key *b) {
    return strcmp(a->cpu, b->cpu) == 0 && strcmp(a->driver, b->driver) == 0 &&
           strcmp(a->gpu, b->gpu) == 0;
}

static void file_name(const struct gm_copy_key *key, char name[64]) {
    const char *const parts[] = {key->cpu, key->driver, key->gpu};
    uint64_t sum = 0xcbf29ce484222325u;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        for (const char *at = parts[i];; at++) { /* includes the final 0, as a separator */
            sum = (sum ^ (unsigned char)*at) * 0x100000001b3u;
            if (!*at)
                break;
        }
    snprintf(name, 64, "copy-%016" PRIx64, sum);
}

/* ---- Keeping it ------------------------------------------------------------------------------ */

static bool read_file(const struct gm_copy_key *key, struct gm_copy_plan *plan) {
    char name[64], text[GM_CACHE_MOST], why[128];
    file_name(key, name);
    return gm_cache_read(name, text, sizeof text) &&
           gm_copy_plan_decode(text, strlen(text), key, plan, why, sizeof why);
}

void gm_plans_keep(const struct gm_plans *plans, const struct gm_copy_plan *plan) {
    char name[64], text[GM_COPY_TEXT_ROOM];
    if (gm_copy_plan_encode(plan, &plans->key, text) == 0)
        return;
    file_name(&plans->key, name);
    (void)gm_cache_write(name, text);
}

/* ---- In the process -------------------------------------------------------------------------- */

static void index_classes(struct gm_kept_plan *kept) {
    for (unsigned width = 0; width < GM_PLAN_WIDTHS; width++) {
        uint64_t least = width ? UINT64_C(1) << (width - 1) : 0;
        const struct gm_copy_class *first = gm_copy_plan_class(&kept->plan, least);
        kept->first_class[width] = (unsigned char)(first - kept->plan.classes);
    }
}

gpumem_status gm_plans_take(struct gm_plans *plans, const struct gm_copy_plan *plan,
                            gpumem_measured measured) {
    struct gm_kept_plan *kept = malloc(sizeof *kept);
    if (!kept)
        return gm_fail(GPUMEM_ERROR_OUT_OF_HOST_MEMORY, "no memory for a plan");
    *kept = (struct gm_kept_plan){.plan = *plan, .measured = measured};
    index_classes(kept);
    kept->before = atomic_load(&plans->now);
    while (!atomic_compare_exchange_weak(&plans->now, &kept->before, kept))
        ;
    return GPUMEM_OK;
}

/* Used when there is no memory for another entry. The lock must be held. */
static struct gm_plans *without_memory(gpumem_mapped_method method) {
    static struct gm_plans plans[GPUMEM_MAPPED_HOST + 1];
    static struct gm_kept_plan kept[GPUMEM_MAPPED_HOST + 1];
    if (!atomic_load(&plans[method].now)) {
        kept[method].plan = default_of(method);
        index_classes(&kept[method]);
        atomic_store(&plans[method].now, &kept[method]);
    }
    return &plans[method];
}

/* The lock must be held. */
static struct gm_plans *make(const struct gm_copy_key *key, gpumem_mapped_method method) {
    struct gm_plans *plans = calloc(1, sizeof *plans);
    struct gm_copy_plan plan = default_of(method);
    if (!plans)
        return NULL;
    plans->key = *key;
    bool found = read_file(key, &plan);
    if (gm_plans_take(plans, &plan, found ? GPUMEM_MEASURED_BEFORE : GPUMEM_MEASURED_NEVER) !=
        GPUMEM_OK) {
        free(plans);
        return NULL;
    }
    plans->next = all;
    all = plans;
    return plans;
}

struct gm_plans *gm_plans_of(gpumem_device *device, gpumem_mapped_method method) {
    struct gm_copy_key key;
    fill_key(device, method, &key);
    pthread_mutex_lock(&lock);
    struct gm_plans *plans = all;
    while (plans && !same(&plans->key, &key))
        plans = plans->next;
    if (!plans)
        plans = make(&key, method);
    if (!plans)
        plans = without_memory(method);
    pthread_mutex_unlock(&lock);
    return plans;
}

void gm_plans_for_tests(void) {
    static struct gm_plans *forgotten; /* live resources still use them */
    while (all) {
        struct gm_plans *plans = all;
        all = plans->next;
        plans->next = forgotten;
        forgotten = plans;
    }
}
