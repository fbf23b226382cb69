#include "softgpu/check/memory_host.h"

#include "softgpu/check/areas.h"
#include "softgpu/check/check.h"
#include "softgpu/check/copies.h"
#include "softgpu/core/results.h"
#include "softgpu/core/site.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void report(const char *kind, enum sg_hazard_level level, const char *what,
                   const char *details) {
    sg_hazard_report(&(struct sg_hazard){.check = "memory",
                                         .kind = kind,
                                         .level = level,
                                         .what = what,
                                         .space = "global",
                                         .details = details[0] ? details : NULL});
}

/* "  made by …", or nothing. */
static void say_site(uint32_t site, const char *done, char *text, size_t size) {
    char where[512];
    sg_site_text(site, where, sizeof where);
    text[0] = '\0';
    if (where[0])
        snprintf(text, size, "  %s by %s\n", done, where);
}

void sg_freed_text(uint64_t address, char *text, size_t size) {
    sg_areas_lock();
    const struct sg_area *area = sg_area_freed(address);
    struct sg_area copy = area ? *area : (struct sg_area){.start = address};
    sg_areas_unlock();
    snprintf(text, size,
             "  %" PRIu64 " bytes inside of %s%zu bytes at 0x%" PRIx64 " that %s been freed\n",
             (uint64_t)(address - copy.start), copy.block ? "" : "an allocation of ", copy.size,
             (uint64_t)copy.start, copy.block ? "a kernel had allocated, and that have" : "has");
    size_t used = strlen(text);
    say_site(copy.site, "made", text + used, size - used);
}

bool sg_freed_behind_text(uint64_t address, char *text, size_t size) {
    sg_areas_lock();
    const struct sg_area *area = sg_area_freed_before(address);
    struct sg_area copy = area ? *area : (struct sg_area){.size = 0};
    sg_areas_unlock();
    if (!area)
        return false;
    snprintf(text, size,
             "  %" PRIu64 " bytes behind the end of an allocation of %zu bytes at 0x%" PRIx64
             " that has been freed\n",
             (uint64_t)(address - copy.start - copy.size), copy.size, (uint64_t)copy.start);
    size_t used = strlen(text);
    say_site(copy.site, "made", text + used, size - used);
    return true;
}

/* ---- leaks and unused memory ----------------------------------------------------------------- */

static void say_unused(const struct sg_area *area) {
    char what[128], details[560];
    if (area->used || !area->by_application || area->by_cpu || sg_config()->check_kernels)
        return; /* perhaps by kernels that are not watched */
    snprintf(what, sizeof what, "an %s of %zu bytes was never used",
             area->array ? "array" : "allocation", area->size);
    say_site(area->site, "made", details, sizeof details);
    report("unused-memory", SG_HAZARD_INFO, what, details);
}

static void say_leak(const struct sg_area *area, bool lost) {
    char what[128], details[560];
    if (area->array)
        snprintf(what, sizeof what, "an array of %zu bytes was not destroyed %s", area->size,
                 lost ? "before its context ended" : "at exit");
    else
        snprintf(what, sizeof what, "%zu bytes%s at 0x%" PRIx64 " were not freed %s", area->size,
                 area->block ? " of the heap of kernels" : "", (uint64_t)area->start,
                 lost ? "before their context ended" : "at exit");
    say_site(area->site, "made", details, sizeof details);
    report("leak", SG_HAZARD_ERROR, what, details);
}

/* Ranges that have a context and end while it does are what it still had. */
static void ends(const struct sg_area *area, bool lost) {
    if (area->by_application && lost)
        say_leak(area, true);
}

void sg_memory_host_start(void) {
    sg_areas_begin(false);
    sg_copies_begin(false);
    sg_area_ends = ends;
    sg_area_forgotten = say_unused;
}

void sg_memory_host_finish(void) {
    uint64_t from = 0;
    sg_areas_forget();
    for (;;) {
        sg_areas_lock();
        const struct sg_area *area = sg_area_from(from);
        struct sg_area copy = area ? *area : (struct sg_area){.size = 0};
        sg_areas_unlock();
        if (!area)
            return;
        from = copy.start + copy.size;
        say_unused(&copy);
        if (copy.by_application)
            say_leak(&copy, false);
    }
}

/* ---- calls ----------------------------------------------------------------------------------- */

static bool frees(const char *symbol) {
    return strncmp(symbol, "cuMemFree", 9) == 0;
}

/* After a fault every call returns its error, which is nothing new. */
static bool is_fault(CUresult result) {
    return result >= CUDA_ERROR_ILLEGAL_ADDRESS && result <= CUDA_ERROR_LAUNCH_FAILED &&
           (result == CUDA_ERROR_ILLEGAL_ADDRESS || result == CUDA_ERROR_LAUNCH_TIMEOUT ||
            result == CUDA_ERROR_ASSERT ||
            (result >= CUDA_ERROR_HARDWARE_STACK_ERROR && result <= CUDA_ERROR_LAUNCH_FAILED));
}

void sg_check_refusal(const char *symbol, uint64_t first, CUresult result) {
    char what[256], details[1200];
    if (is_fault(result))
        return;
    sg_areas_lock();
    bool twice = frees(symbol) && sg_area_freed(first) && sg_area_freed(first)->start == first;
    sg_areas_unlock();
    sg_lock();
    uint32_t site = sg_site_here();
    say_site(site, "called", details, sizeof details);
    size_t used = strlen(details);
    if (twice)
        sg_freed_text(first, details + used, sizeof details - used);
    sg_unlock();
    const char *name = sg_result_name(result);
    if (twice)
        snprintf(what, sizeof what, "0x%" PRIx64 " is freed twice", first);
    else
        snprintf(what, sizeof what, "%s answered %s", symbol, name ? name : "an unknown result");
    report(twice ? "double-free" : "api-error", twice ? SG_HAZARD_ERROR : SG_HAZARD_WARNING, what,
           details);
}
