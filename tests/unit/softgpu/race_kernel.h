/* Runs kernels on the engine with the race checker, and keeps what it finds. */
#ifndef TESTS_UNIT_SOFTGPU_RACE_KERNEL_H
#define TESTS_UNIT_SOFTGPU_RACE_KERNEL_H

#include "kernel.h"

#include "softgpu/check/race.h"

#define RACE_FOUND 64

struct race_kernel {
    const char *text; /* of a kernel "k" */
    unsigned grid[2], block[2], cluster, shared;
    bool cooperative;
    size_t words;           /* of memory, which the parameter names; all zero */
    const uint32_t *values; /* that the memory begins with; NULL: zeros */
};

struct race_findings {
    struct sg_race_found found[RACE_FOUND];
    uint32_t line[RACE_FOUND][2]; /* of the PTX: now, before */
    unsigned count;               /* also of those that are not kept */
    const struct sg_program *program;
};

/* Runs it to its end, under a schedule; the findings' program is gone. Memory is copied to `out`
 * where that is given. */
void race_run(const struct race_kernel *kernel, enum sg_grid_schedule schedule, uint64_t seed,
              struct race_findings *findings, uint32_t *out);
/* Under every schedule, and many seeds, nothing is found, and the memory's first words are the
 * expected ones. */
void race_silent(const struct race_kernel *kernel, const uint32_t *expected, size_t count);
/* Under every schedule something is found, all of it between lines of these texts (in any order;
 * the lines that hold them). */
void race_between(const struct race_kernel *kernel, const char *one, const char *other);

/* What a finder gets for `found`. */
void race_keep(void *user, const struct sg_race_found *found);
const unsigned char *race_bytes(void *user, uint64_t address, uint32_t size);

#endif
