/* Reports of where lanes are, for deadlocks and for grids that make no progress. */
#include "softgpu/engine/async.h"
#include "softgpu/engine/inside.h"
#include "softgpu/program/uniformity.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

struct text {
    char *at;
    size_t used, size;
    unsigned left_out;      /* groups that do not fit */
    uint32_t waits, parted; /* the last instruction that was looked at, and its parting branch */
};

/* Adds a whole line or nothing; leaves room for the last one. */
static void add_line(struct text *text, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static void add_line(struct text *text, const char *format, ...) {
    enum { LAST = 40 };
    char line[512];
    va_list list;
    va_start(list, format);
    int length = vsnprintf(line, sizeof line, format, list);
    va_end(list);
    if (length <= 0 || (size_t)length >= sizeof line || text->left_out ||
        text->used + (size_t)length + LAST >= text->size) {
        text->left_out++;
        return;
    }
    for (int i = 0; i <= length; i++)
        text->at[text->used + (size_t)i] = line[i];
    text->used += (size_t)length;
}

static void finish(const struct text *text) {
    if (text->left_out && text->used < text->size)
        snprintf(text->at + text->used, text->size - text->used, "and %u more\n", text->left_out);
}

static const char *file_of(const struct sg_program *program, uint64_t number) {
    for (size_t i = 0; i < program->file_count; i++)
        if (program->files[i].number == number)
            return program->files[i].name;
    return "?";
}

/* Where the threads parted of which only some wait at an instruction. */
static void add_parting(struct text *text, const struct sg_program *program, uint32_t instruction,
                        char *to, size_t size) {
    if (text->left_out)
        return;
    if (text->waits != instruction)
        text->parted = sg_parting_branch(program, instruction);
    text->waits = instruction;
    if (text->parted != SG_NO_BRANCH)
        snprintf(to, size, "; threads part at line %" PRIu32,
                 program->instructions[text->parted].line);
}

static void add_group(struct text *text, const struct sg_block *block, const struct sg_warp *warp,
                      const struct sg_group *group) {
    const struct sg_code *code = warp->grid->code;
    const struct sg_program *program = code->program;
    const struct sg_instruction *in = &program->instructions[code->steps[group->step].instruction];
    char what[64], source[256] = "", place[64] = "", parting[64] = "";
    if (group->state == SG_GROUP_BARRIER)
        snprintf(what, sizeof what, "waits for barrier %u", group->barrier);
    else if (group->state == SG_GROUP_CLUSTER)
        snprintf(what, sizeof what, "waits for the cluster's barrier");
    else if (group->state == SG_GROUP_WARP)
        snprintf(what, sizeof what, "waits for lanes %08" PRIx32, group->members & warp->live);
    else if (group->state == SG_GROUP_SLEEP)
        snprintf(what, sizeof what, "sleeps");
    else if (group->state == SG_GROUP_JOIN)
        snprintf(what, sizeof what, "waits for lanes that have parted from it");
    else
        snprintf(what, sizeof what, "runs");
    if (in->location) {
        const struct sg_program_location *location = &program->locations[in->location - 1];
        snprintf(source, sizeof source, " (%s:%" PRIu32 ")", file_of(program, location->file),
                 location->line);
    }
    if (warp->grid->blocks > 1)
        snprintf(place, sizeof place, "block %u,%u,%u ", block->place[0], block->place[1],
                 block->place[2]);
    if (group->state == SG_GROUP_BARRIER || group->state == SG_GROUP_WARP)
        add_parting(text, program, code->steps[group->step].instruction, parting, sizeof parting);
    add_line(text, "%swarp %u lanes %08" PRIx32 " line %" PRIu32 "%s: %s%s\n", place, warp->number,
             group->lanes, in->line, source, what, parting);
}

static void add_block(struct text *text, const struct sg_block *block) {
    for (unsigned w = 0; w < block->warp_count; w++)
        for (unsigned i = 0; i < block->warps[w].group_count; i++)
            add_group(text, block, &block->warps[w], &block->warps[w].groups[i]);
}

void sg_grid_places(const struct sg_grid *grid, char *to, size_t size) {
    struct text text = {.at = to, .size = size, .waits = UINT32_MAX};
    const struct sg_worker *worker;
    if (size)
        to[0] = '\0';
    for (unsigned i = 0; (worker = sg_grid_worker(grid, i)); i++)
        for (const struct sg_block *block = worker->running; block; block = block->next)
            add_block(&text, block);
    finish(&text);
}

/* Blames the first live lane for the fault. */
static bool blame_first(struct sg_block *block, enum sg_fault_kind kind, const char *report) {
    for (unsigned w = 0; w < block->warp_count; w++) {
        struct sg_warp *warp = &block->warps[w];
        if (!warp->group_count)
            continue;
        const struct sg_group *group = &warp->groups[0];
        sg_path_use(warp, group->path); /* another group may have run last */
        sg_fault_note(warp, &warp->grid->code->steps[group->step], kind,
                      (unsigned)__builtin_ctz(group->lanes), 0, 0, report);
        return true;
    }
    return false;
}

void sg_deadlock(struct sg_block *block) {
    char report[SG_REPORT_ROOM] = "";
    struct text text = {.at = report, .size = sizeof report, .waits = UINT32_MAX};
    const struct sg_cluster_run *cluster = block->cluster;
    add_block(&text, block);
    for (unsigned i = 0; cluster && i < cluster->size; i++)
        if (cluster->blocks[i] && cluster->blocks[i] != block)
            add_block(&text, cluster->blocks[i]);
    finish(&text);
    blame_first(block, SG_FAULT_DEADLOCK, report);
}

void sg_grid_give_up(struct sg_grid *grid) {
    char report[SG_REPORT_ROOM];
    const struct sg_worker *worker;
    if (sg_grid_over(grid))
        return;
    sg_grid_places(grid, report, sizeof report);
    for (unsigned i = 0; (worker = sg_grid_worker(grid, i)); i++)
        for (struct sg_block *block = worker->running; block; block = block->next)
            if (blame_first(block, SG_FAULT_TIME, report))
                return;
    sg_grid_fails(grid, SG_FAULT_TIME); /* no block is resident */
}
