/*
 * --check race: reports launches, copies and allocations to the race checker, and its findings as
 * hazards. Places in kernels are kept as long as the process lives, as the other side of a race may
 * have been unloaded.
 */
#include "softgpu/address/memory.h"
#include "softgpu/check/areas.h"
#include "softgpu/check/checkers.h"
#include "softgpu/check/copies.h"
#include "softgpu/check/race.h"
#include "softgpu/check/stream_order.h"
#include "softgpu/core/config.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct sg_race *race;

/* ---- names for reports ----------------------------------------------------------------------- */

/* A kernel's places: as from sg_hazard_place, without threads. */
struct kernel {
    struct kernel *next;
    const struct sg_program *program; /* to find it; may be freed */
    const char *ptx;                  /* the same */
    char *name;
    size_t count;
    struct place {
        char *text, *file, *function;
        uint32_t line, source_line;
    } * places;
};

struct launch {
    struct launch *next;
    const struct kernel *kernel; /* NULL: a copy or a set */
    unsigned grid[3], block[3];
    uint64_t stream;
};

static struct kernel *kernels;
static struct launch *launches;

static char *copied(const char *text) {
    return text ? strdup(text) : NULL;
}

static struct kernel *keep_kernel(const struct sg_check_launch *launch) {
    const struct sg_program *program = launch->program;
    for (struct kernel *k = kernels; k; k = k->next)
        if (k->program == program && k->ptx == launch->ptx &&
            k->count == program->instruction_count && strcmp(k->name, program->name) == 0)
            return k;
    struct kernel *kernel = calloc(1, sizeof *kernel);
    if (!kernel)
        return NULL;
    kernel->name = strdup(program->name);
    kernel->places = calloc(program->instruction_count + 1, sizeof *kernel->places);
    if (!kernel->name || !kernel->places) {
        free(kernel->name);
        free(kernel->places);
        free(kernel);
        return NULL;
    }
    kernel->program = program;
    kernel->ptx = launch->ptx;
    kernel->count = program->instruction_count;
    kernel->next = kernels;
    kernels = kernel;
    return kernel;
}

/* Fills the places of instructions that reports may name, at the first launch. */
static void fill_places(struct kernel *kernel, const struct sg_check_launch *launch) {
    struct sg_hazard_place place;
    for (size_t i = 0; i < kernel->count && !kernel->places[i].text; i++) {
        if (launch->program->instructions[i].space == SG_IN_NONE)
            continue;
        sg_hazard_place(launch, (uint32_t)i, NULL, 0, &place);
        kernel->places[i] = (struct place){.text = copied(place.text),
                                           .file = copied(place.file),
                                           .function = copied(place.function),
                                           .line = place.line,
                                           .source_line = place.source_line};
    }
}

static struct launch *keep_launch(const struct kernel *kernel) {
    struct launch *launch = calloc(1, sizeof *launch);
    if (!launch)
        return NULL;
    launch->kernel = kernel;
    launch->next = launches;
    launches = launch;
    return launch;
}

/* ---- findings -------------------------------------------------------------------------------- */

static void place_of(const struct sg_race_side *side, struct sg_hazard_place *place) {
    const struct launch *launch = side->name;
    *place = (struct sg_hazard_place){0};
    if (!launch->kernel)
        return;
    place->kernel = launch->kernel->name;
    if (side->instruction < launch->kernel->count) {
        const struct place *kept = &launch->kernel->places[side->instruction];
        place->line = kept->line;
        place->file = kept->file;
        place->function = kept->function;
        place->source_line = kept->source_line;
        snprintf(place->text, sizeof place->text, "%s", kept->text ? kept->text : "");
    }
    const unsigned *grid = launch->grid, *block = launch->block;
    place->block[0] = (unsigned)(side->block % grid[0]);
    place->block[1] = (unsigned)(side->block / grid[0] % grid[1]);
    place->block[2] = (unsigned)(side->block / grid[0] / grid[1]);
    place->thread[0] = side->thread % block[0];
    place->thread[1] = side->thread / block[0] % block[1];
    place->thread[2] = side->thread / block[0] / block[1];
}

static bool writes(const struct sg_race_side *side) {
    return side->kind != SG_WATCHED_READ;
}

static const char *kind_of(const struct sg_race_found *found) {
    if (found->now.kind == SG_WATCHED_ATOMIC || found->before.kind == SG_WATCHED_ATOMIC)
        return "atomic-race";
    return writes(&found->now) && writes(&found->before) ? "write-write-race" : "read-write-race";
}

static const char *what_of(const struct sg_race_found *found) {
    const struct launch *now = found->now.name, *before = found->before.name;
    if (found->one_access)
        return "lanes of one instruction write the same bytes: which of them remain is undefined";
    if (found->same_value)
        return "nothing orders this write and another, of the same value";
    if (!now->kernel && !before->kernel)
        return "nothing orders two copies or sets";
    if (!now->kernel)
        return "nothing orders a copy or set and an access of a kernel";
    if (!before->kernel)
        return "nothing orders this access and a copy or set";
    if (now == before && found->now.block == found->before.block &&
        found->now.thread / 32 == found->before.thread / 32)
        return "no bar.warp.sync orders this access and another lane's of the warp";
    return now == before ? "nothing orders this access and another thread's"
                         : "nothing orders this access and another kernel's";
}

/* The allocation that contains the address, and the copy that is the other side. */
static void detail(const struct sg_race_found *found, char *text, size_t size) {
    const struct launch *now = found->now.name, *before = found->before.name;
    size_t used = 0;
    text[0] = '\0';
    if (!found->shared) {
        sg_areas_lock();
        const struct sg_area *area = sg_area_find(found->address);
        uint64_t start = area ? area->start : 0, bytes = area ? area->size : 0;
        sg_areas_unlock();
        if (bytes)
            used += (size_t)snprintf(text, size,
                                     "  %" PRIu64 " bytes inside of an allocation of %" PRIu64
                                     " bytes at 0x%" PRIx64 "\n",
                                     found->address - start, bytes, start);
    }
    if (now != before && now->stream != before->stream)
        snprintf(text + used, size - used, "  in streams %" PRIu64 " and %" PRIu64 "\n",
                 before->stream, now->stream);
}

static const char *says(const struct sg_race_side *side) {
    return side->kind == SG_WATCHED_READ    ? "read by"
           : side->kind == SG_WATCHED_WRITE ? "written by"
                                            : "changed by";
}

static void found_one(void *user, const struct sg_race_found *found) {
    char details[256];
    (void)user;
    bool minor = found->same_value || found->one_access;
    struct sg_hazard hazard = {.check = "race",
                               .kind = kind_of(found),
                               .level = minor ? SG_HAZARD_WARNING : SG_HAZARD_ERROR,
                               .other_says = says(&found->before),
                               .has_address = true,
                               .write = writes(&found->now),
                               .space = found->shared ? "shared" : "global",
                               .cluster = found->cluster,
                               .address = found->address,
                               .size = found->size,
                               .what = what_of(found),
                               .details = details};
    const struct sg_race_side *first = &found->now, *second = &found->before;
    /* A copy has no place, so the hazard has the kernel's. */
    if (found->now.copy && !found->before.copy) {
        first = &found->before;
        second = &found->now;
        hazard.write = writes(first);
    }
    place_of(first, &hazard.place);
    place_of(second, &hazard.other);
    detail(found, details, sizeof details);
    sg_hazard_report(&hazard);
}

static const unsigned char *bytes_at(void *user, uint64_t address, uint32_t size) {
    size_t span;
    (void)user;
    const unsigned char *bytes = sg_translate(0, address, size, SG_READ, &span);
    return bytes && span >= size ? bytes : NULL;
}

/* ---- copies and allocations ------------------------------------------------------------------ */

static bool is_device_memory(CUdeviceptr address) {
    sg_areas_lock();
    bool is = sg_area_find(address) != NULL;
    sg_areas_unlock();
    return is;
}

static void moved(CUdeviceptr address, size_t size, bool write) {
    const struct sg_op *op = sg_op_running;
    struct sg_race_operation operation;
    if (!op || !is_device_memory(address))
        return;
    sg_lock();
    struct launch *launch = keep_launch(NULL);
    bool good = launch && sg_stream_order_of(op, &operation);
    sg_unlock();
    if (!good)
        return;
    launch->stream = op->stream->id;
    operation.name = launch;
    sg_race_copy(race, &operation, address, size, write);
    free((void *)(uintptr_t)operation.after);
}

static void forget(CUdeviceptr address, size_t size) {
    sg_race_forget(race, address, size);
}

/* ---- launches -------------------------------------------------------------------------------- */

static void *begin(const struct sg_check_launch *checked) {
    struct sg_race_operation operation = {0};
    struct sg_race_shape shape = {0};
    if (!race)
        return NULL;
    memcpy(shape.grid, checked->grid, sizeof shape.grid);
    memcpy(shape.block, checked->block, sizeof shape.block);
    memcpy(shape.cluster, checked->cluster, sizeof shape.cluster);
    sg_lock();
    struct kernel *kernel = keep_kernel(checked);
    struct launch *launch = kernel ? keep_launch(kernel) : NULL;
    bool good = launch && sg_stream_order_of(checked->op, &operation);
    if (good) {
        fill_places(kernel, checked);
        memcpy(launch->grid, checked->grid, sizeof launch->grid);
        memcpy(launch->block, checked->block, sizeof launch->block);
        launch->stream = operation.stream;
    }
    sg_unlock();
    if (!good)
        return NULL;
    operation.name = launch;
    operation.early = checked->early;
    struct sg_race_grid *grid = sg_race_begin(race, &operation, &shape);
    free((void *)(uintptr_t)operation.after);
    return grid;
}

static CUresult end(void *state, const struct sg_grid_fault *fault) {
    (void)fault;
    sg_race_end(state);
    return CUDA_SUCCESS;
}

static void start(void) {
    const struct sg_race_options options = {
        .found = found_one, .bytes = bytes_at, .lanes = sg_config()->independent_lanes};
    race = sg_race_new(&options);
    if (!race)
        return;
    sg_areas_begin(false);
    sg_area_begins = forget;
    sg_copies_begin(false);
    sg_copies_race = moved;
    sg_stream_order_begin();
}

static void finish(void) {
    uint64_t full = race ? sg_race_full(race) : 0;
    if (full)
        sg_log(SG_LOG_WARNING,
               "check race: the memory for shadows was full %" PRIu64
               " times, and what was remembered until then was forgotten",
               full);
}

const struct sg_checker sg_race_checker = {.name = "race",
                                           .check = SG_CHECK_RACE,
                                           .watch = &sg_race_watch,
                                           .start = start,
                                           .begin = begin,
                                           .end = end,
                                           .finish = finish};
