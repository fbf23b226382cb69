#include "race_kernel.h"

void race_keep(void *user, const struct sg_race_found *found) {
    struct race_findings *findings = user;
    unsigned at = findings->count++;
    if (at >= RACE_FOUND)
        return;
    findings->found[at] = *found;
    const struct sg_program *program = findings->program;
    findings->line[at][0] =
        found->now.copy ? 0 : program->instructions[found->now.instruction].line;
    findings->line[at][1] =
        found->before.copy ? 0 : program->instructions[found->before.instruction].line;
}

const unsigned char *race_bytes(void *user, uint64_t address, uint32_t size) {
    return (const unsigned char *)(uintptr_t)address;
}

void race_run(const struct race_kernel *test, enum sg_grid_schedule schedule, uint64_t seed,
              struct race_findings *findings, uint32_t *out) {
    struct kernel kernel;
    size_t bytes = (test->words + 64) * sizeof(uint32_t);
    uint32_t *memory = aligned_alloc(256, (bytes + 255) / 256 * 256);
    assert_non_null(memory);
    memset(memory, 0, bytes);
    if (test->values)
        memcpy(memory, test->values, test->words * sizeof *memory);
    memset(findings, 0, sizeof *findings);
    const struct sg_race_options options = {
        .found = race_keep, .bytes = race_bytes, .user = findings};
    struct sg_race *race = sg_race_new(&options);
    assert_non_null(race);
    kernel_make(&kernel, test->text, sg_level_best());
    findings->program = kernel.program;
    kernel_pointer(&kernel, memory);
    kernel_shape(&kernel, test->grid[0], test->block[0]);
    kernel.launch.grid[1] = test->grid[1] ? test->grid[1] : 1;
    kernel.launch.block[1] = test->block[1] ? test->block[1] : 1;
    kernel.launch.cooperative = test->cooperative;
    kernel.launch.dynamic_shared = test->shared;
    kernel.launch.cluster[0] = test->cluster;
    kernel.launch.schedule = (unsigned char)schedule;
    kernel.launch.seed = seed;
    struct sg_race_shape shape = {.cluster = {test->cluster, 1, 1}};
    memcpy(shape.grid, kernel.launch.grid, sizeof shape.grid);
    memcpy(shape.block, kernel.launch.block, sizeof shape.block);
    const struct sg_race_operation operation = {.stream = 1, .number = 1, .name = "k"};
    struct sg_race_grid *grid = sg_race_begin(race, &operation, &shape);
    assert_non_null(grid);
    kernel_watched(&kernel, sg_level_best(), &sg_race_watch, grid);
    kernel_succeeds(&kernel);
    sg_race_end(grid);
    sg_race_free(race);
    kernel_free(&kernel);
    findings->program = NULL;
    if (out)
        memcpy(out, memory, test->words * sizeof *memory);
    free(memory);
}

#define SEEDS 24

static enum sg_grid_schedule schedule_of(int run) {
    return run == 0 ? SG_GRID_EAGER : run == 1 ? SG_GRID_LATE : SG_GRID_RANDOM;
}

void race_silent(const struct race_kernel *test, const uint32_t *expected, size_t count) {
    uint32_t *out = malloc((test->words + 1) * sizeof *out);
    assert_non_null(out);
    for (int run = 0; run < SEEDS; run++) {
        struct race_findings findings;
        race_run(test, schedule_of(run), (uint64_t)run, &findings, out);
        if (findings.count)
            fail_msg("run %d: %u found, the first between lines %u and %u of\n%s", run,
                     findings.count, findings.line[0][0], findings.line[0][1], test->text);
        for (size_t i = 0; i < count; i++)
            if (out[i] != expected[i])
                fail_msg("run %d: word %zu is %u instead of %u", run, i, out[i], expected[i]);
    }
    free(out);
}

static bool line_has(const char *text, uint32_t line, const char *what) {
    while (--line > 0)
        text = strchr(text, '\n') + 1;
    size_t length = strcspn(text, "\n");
    for (size_t i = 0; i + strlen(what) <= length; i++)
        if (memcmp(text + i, what, strlen(what)) == 0)
            return true;
    return false;
}

void race_between(const struct race_kernel *test, const char *one, const char *other) {
    for (int run = 0; run < SEEDS; run++) {
        struct race_findings findings;
        race_run(test, schedule_of(run), (uint64_t)run, &findings, NULL);
        if (findings.count == 0)
            fail_msg("run %d: nothing found in\n%s", run, test->text);
        for (unsigned i = 0; i < findings.count && i < RACE_FOUND; i++) {
            uint32_t a = findings.line[i][0], b = findings.line[i][1];
            bool as_said = (line_has(test->text, a, one) && line_has(test->text, b, other)) ||
                           (line_has(test->text, a, other) && line_has(test->text, b, one));
            if (!as_said)
                fail_msg("run %d: found between lines %u and %u of\n%s", run, a, b, test->text);
        }
    }
}
