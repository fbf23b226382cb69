/*
 * Kernels of PTX that no compiler wrote, run: alone and in lock step, for as long as a bound
 * allows, over memory of which only an arena is there. Whatever the text says, the engine stays
 * inside the arena and its own memory, and a kernel that ends does so with a fault that is one.
 */
#include "softgpu/engine/engine.h"
#include "softgpu/ptx/ptx.h"

#include <stdlib.h>
#include <string.h>

#define MOST_ENTRIES 3
#define SLICES       4
#define BUDGET       3000
#define STACK        512
#define MOST_MEMORY  ((uint64_t)4 << 20) /* of a block: shared memory and frames */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static _Alignas(256) unsigned char arena[1 << 16];

static void require(bool true_here) {
    if (!true_here)
        abort();
}

static bool find_extent(void *user, uint64_t address, uint64_t *low, uint64_t *length) {
    uint64_t begin = (uint64_t)(uintptr_t)arena;
    (void)user;
    if (address - begin >= sizeof arena)
        return false;
    *low = begin;
    *length = sizeof arena;
    return true;
}

static void run(const struct sg_grid_launch *launch) {
    struct sg_grid *grid;
    if (sg_grid_begin(launch, &grid) != CUDA_SUCCESS)
        return;
    bool over = false;
    for (unsigned i = 0; i < SLICES && !over; i++)
        over = sg_grid_advance(grid, BUDGET);
    if (!over)
        sg_grid_give_up(grid);
    const struct sg_grid_fault *fault = sg_grid_fault(grid);
    if (fault) {
        require(fault->kind < SG_FAULT_COUNT && *sg_fault_name(fault->kind) != '\0');
        require(memchr(fault->report, 0, sizeof fault->report) != NULL);
    }
    sg_grid_end(grid);
}

static bool is_small(const struct sg_program *program) {
    uint64_t bytes = program->static_shared + program->dynamic_shared_offset;
    for (size_t i = 0; i < program->function_count; i++)
        bytes += program->functions[i].frame * 32;
    return bytes < MOST_MEMORY;
}

static void launch(const struct sg_program *program, const struct sg_image_function *function,
                   size_t size) {
    char why[200];
    struct sg_code *code = NULL;
    enum sg_level level = (enum sg_level)(size % SG_LEVEL_COUNT);
    bool can = sg_engine_can(program, why, sizeof why);
    if (!sg_level_usable(level))
        level = SG_LEVEL_GENERIC;
    CUresult result = sg_code_make(program, level, 0, &code);
    require((result == CUDA_SUCCESS) == can);
    unsigned char *parameters = calloc(1, function->parameter_bytes + 1);
    uint64_t *variables = calloc(program->variable_count + 1, sizeof *variables);
    if (can && parameters && variables && is_small(program)) {
        for (size_t i = 0; i + 8 <= function->parameter_bytes; i += 8)
            memcpy(parameters + i, &(uint64_t){(uint64_t)(uintptr_t)arena + 64 * i}, 8);
        for (size_t i = 0; i < program->variable_count; i++)
            variables[i] = (uint64_t)(uintptr_t)arena + 256 * i % sizeof arena;
        struct sg_grid_launch what = {.code = code,
                                      .grid = {2, 1, 1},
                                      .block = {5, 9, 1},
                                      .dynamic_shared = size % 512,
                                      .parameters = parameters,
                                      .parameter_bytes = function->parameter_bytes,
                                      .variables = variables,
                                      .stack_limit = STACK,
                                      .schedule = (unsigned char)(size / 4 % 3),
                                      .seed = size,
                                      .cluster = {1u + size / 16 % 2, 1, 1},
                                      .extent = find_extent};
        run(&what);
        what.apart = true;
        what.cooperative = true;
        run(&what);
    }
    free(variables);
    free(parameters);
    sg_code_free(code);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char error[100];
    const struct sg_image_options options = {
        .architecture = 90, .suffix = 'a', .newest_ptx = SG_PTX_NEWEST};
    struct sg_image_log log = {.error = error, .error_size = sizeof error};
    struct sg_image *image = calloc(1, sizeof *image);
    memset(arena, 0, sizeof arena);
    if (sg_ptx_read((struct sg_bytes){data, size}, &options, &log, image) == CUDA_SUCCESS) {
        for (size_t i = 0; i < image->function_count && i < MOST_ENTRIES; i++) {
            struct sg_program *program = NULL;
            if (sg_program_make(image, image->functions[i].name, &log, &program) == CUDA_SUCCESS)
                launch(program, &image->functions[i], size);
            sg_program_free(program);
        }
    }
    sg_image_free(image);
    return 0;
}
