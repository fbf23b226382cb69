#include "softgpu/launch/launch_run.h"

#include "softgpu/address/range.h"
#include "softgpu/core/chapter.h"
#include "softgpu/core/config.h"
#include "softgpu/device/device.h"
#include "softgpu/engine/engine.h"
#include "softgpu/launch/crew.h"
#include "softgpu/module/module.h"

#include <stdlib.h>
#include <string.h>

/* Instructions of warps in a slice: some tens of microseconds, so that others get their turn. Where
 * several threads run it, their coming and going must be worth it. */
#define SLICE      20000
#define CREW_SLICE 200000

/* A kernel made ready to run, with those who use it counted: its function, and launches. */
struct ready {
    unsigned refs;
    struct sg_program *program;
    struct sg_code *code;
    uint64_t variables[]; /* device addresses, by the program's variables */
};

struct running {
    struct ready *ready;
    struct sg_grid *grid;
    bool begun; /* its first slice is over: it is no short one */
    bool done;
};

static void unref(struct ready *ready) {
    if (!ready || --ready->refs > 0)
        return;
    sg_code_free(ready->code);
    sg_program_free(ready->program);
    free(ready);
}

/* ---- Making a function ready ----------------------------------------------------------------- */

static CUresult refuse(struct sg_function *function, const char *why) {
    if (!function->refusal_said)
        sg_log(SG_LOG_WARNING, "kernel %s was not launched: %s", function->image->name, why);
    function->refusal_said = true;
    return CUDA_ERROR_NOT_SUPPORTED;
}

static void find_variables(struct ready *ready, const struct sg_module *module) {
    for (size_t i = 0; i < ready->program->variable_count; i++) {
        const struct sg_program_variable *variable = &ready->program->variables[i];
        if (variable->place != SG_PLACE_IMAGE)
            continue;
        const struct sg_module_variable *found = &module->variables[variable->image];
        ready->variables[i] = found->range ? found->range->start + found->offset : 0;
    }
}

static CUresult make_ready(struct sg_function *function) {
    char why[256] = "its image holds machine code without PTX";
    struct sg_program *program = NULL;
    const struct sg_image *image = function->module->program->image;
    struct sg_image_log log = {.error = why, .error_size = sizeof why};
    CUresult result = sg_program_make(image, function->image->name, &log, &program);
    if (result == CUDA_ERROR_OUT_OF_MEMORY)
        return result;
    why[strcspn(why, "\n")] = 0;
    if (result != CUDA_SUCCESS)
        return refuse(function, why);
    struct ready *ready = NULL;
    if (!sg_engine_can(program, why, sizeof why))
        result = refuse(function, why);
    else if (!(ready = calloc(1, sizeof *ready + program->variable_count * sizeof(uint64_t))))
        result = CUDA_ERROR_OUT_OF_MEMORY;
    else
        result = sg_code_make(program, sg_level_best(), &ready->code);
    if (result != CUDA_SUCCESS) {
        free(ready);
        sg_program_free(program);
        return result;
    }
    ready->refs = 1;
    ready->program = program;
    find_variables(ready, function->module);
    function->engine = ready;
    return CUDA_SUCCESS;
}

static void forget(struct sg_function *function) {
    unref(function->engine);
    function->engine = NULL;
}

void sg_launch_run_begin(void) {
    sg_function_engine_end = forget;
}

/* ---- Parameters ------------------------------------------------------------------------------ */

static void copy_extra(unsigned char *to, size_t room, void *const *extra) {
    const void *buffer = NULL;
    size_t size = 0;
    for (; *extra != CU_LAUNCH_PARAM_END; extra += 2) {
        if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER)
            buffer = extra[1];
        else if (*extra == CU_LAUNCH_PARAM_BUFFER_SIZE)
            size = *(const size_t *)extra[1];
    }
    if (buffer)
        memcpy(to, buffer, size < room ? size : room);
}

/* What check_parameters has found good. */
static void lay_out(unsigned char *to, const struct sg_image_function *image,
                    const struct sg_launch *launch) {
    memset(to, 0, image->parameter_bytes);
    if (launch->extra && !launch->params)
        copy_extra(to, image->parameter_bytes, launch->extra);
    for (unsigned i = 0; launch->params && i < image->parameter_count; i++)
        memcpy(to + image->parameters[i].offset, launch->params[i], image->parameters[i].size);
}

/* ---- The operation --------------------------------------------------------------------------- */

/* The allocation around an address: pages are too coarse for bounds. */
static bool find_extent(void *user, uint64_t address, uint64_t *low, uint64_t *length) {
    (void)user;
    sg_lock();
    const struct sg_range *range = sg_range_find(address);
    bool found = range != NULL;
    if (found) {
        *low = range->start;
        *length = range->size;
    }
    sg_unlock();
    return found;
}

/* By the names of the errors; not recorded on hardware yet. */
static CUresult error_of(enum sg_fault_kind kind) {
    static const CUresult errors[SG_FAULT_COUNT] = {
        [SG_FAULT_ADDRESS] = CUDA_ERROR_ILLEGAL_ADDRESS,
        [SG_FAULT_MISALIGNED] = CUDA_ERROR_MISALIGNED_ADDRESS,
        [SG_FAULT_SPACE] = CUDA_ERROR_INVALID_ADDRESS_SPACE,
        [SG_FAULT_TRAP] = CUDA_ERROR_LAUNCH_FAILED,
        [SG_FAULT_BREAKPOINT] = CUDA_ERROR_LAUNCH_FAILED,
        [SG_FAULT_ASSERT] = CUDA_ERROR_ASSERT,
        [SG_FAULT_STACK] = CUDA_ERROR_HARDWARE_STACK_ERROR,
        [SG_FAULT_INSTRUCTION] = CUDA_ERROR_INVALID_PC,
        [SG_FAULT_DEADLOCK] = CUDA_ERROR_LAUNCH_TIMEOUT,
        [SG_FAULT_MEMORY] = CUDA_ERROR_OUT_OF_MEMORY,
    };
    return errors[kind];
}

static void report(const struct running *running, const struct sg_grid_fault *fault) {
    sg_log(
        SG_LOG_ERROR,
        "kernel %s: %s at 0x%llx (%u bytes, %s), PTX line %u, block %u,%u,%u thread %u,%u,%u%s%s",
        running->ready->program->name, sg_fault_name(fault->kind),
        (unsigned long long)fault->address, fault->size, fault->write ? "write" : "read",
        fault->line, fault->block[0], fault->block[1], fault->block[2], fault->thread[0],
        fault->thread[1], fault->thread[2], fault->report[0] ? "\n" : "", fault->report);
}

static struct running *running_of(const struct sg_op *op) {
    struct running *running;
    memcpy(&running, op->data.bytes, sizeof running);
    return running;
}

static uint64_t slice_of(const struct sg_grid *grid) {
    return sg_grid_room(grid) > 1 ? CREW_SLICE : SLICE;
}

static CUresult run(struct sg_op *op) {
    struct running *running = running_of(op);
    running->done = running->begun ? sg_crew_advance(running->grid, slice_of(running->grid))
                                   : sg_grid_advance(running->grid, SLICE);
    running->begun = true;
    const struct sg_grid_fault *fault = sg_grid_fault(running->grid);
    if (!fault)
        return CUDA_SUCCESS;
    report(running, fault);
    return error_of(fault->kind);
}

static bool goes_on(struct sg_op *op) {
    return !running_of(op)->done;
}

static void finish(struct sg_op *op) {
    struct running *running = running_of(op);
    sg_grid_end(running->grid);
    unref(running->ready);
    free(running);
}

static CUresult begin(struct ready *ready, const struct sg_function *function,
                      const struct sg_launch *launch, struct running **made) {
    static uint64_t last_grid;
    const struct sg_image_function *image = function->image;
    const struct sg_device *device = sg_device(function->context->device);
    struct running *running = calloc(1, sizeof *running);
    unsigned char *parameters = malloc(image->parameter_bytes + 1u);
    CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
    if (running && parameters) {
        lay_out(parameters, image, launch);
        const struct sg_grid_launch grid = {
            .code = ready->code,
            .grid = {launch->grid[0], launch->grid[1], launch->grid[2]},
            .block = {launch->block[0], launch->block[1], launch->block[2]},
            .dynamic_shared = launch->shared,
            .parameters = parameters,
            .parameter_bytes = image->parameter_bytes,
            .device = device->ordinal,
            .variables = ready->variables,
            .stack_limit = function->context->limits[CU_LIMIT_STACK_SIZE],
            .cooperative = launch->cooperative,
            .workers = sg_crew_size(),
            .multiprocessors =
                (unsigned)device->attributes[CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT],
            .id = ++last_grid,
            .extent = find_extent,
        };
        result = sg_grid_begin(&grid, &running->grid);
    }
    free(parameters);
    if (result != CUDA_SUCCESS) {
        free(running);
        return result;
    }
    ready->refs++;
    running->ready = ready;
    *made = running;
    return CUDA_SUCCESS;
}

static bool wants_cluster(const struct sg_function *function, const struct sg_launch *launch) {
    for (unsigned i = 0; i < launch->attribute_count; i++)
        if (launch->attributes[i].id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
            return true;
    return function->image->cluster[0] != 0;
}

CUresult sg_launch_run(struct sg_stream *stream, struct sg_function *function,
                       const struct sg_launch *launch) {
    struct running *running;
    if (wants_cluster(function, launch))
        return refuse(function, "it has clusters, which softgpu does not run");
    CUresult result = function->engine ? CUDA_SUCCESS : make_ready(function);
    if (result == CUDA_SUCCESS)
        result = begin(function->engine, function, launch, &running);
    if (result != CUDA_SUCCESS)
        return result;
    struct sg_op *op = sg_op_new(run);
    if (!op) {
        sg_grid_end(running->grid);
        unref(running->ready);
        free(running);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    memcpy(op->data.bytes, &running, sizeof running);
    op->again = goes_on;
    op->finish = finish;
    result = sg_stream_submit(stream, op);
    if (result != CUDA_SUCCESS) { /* the operation is gone, without its finish */
        sg_grid_end(running->grid);
        unref(running->ready);
        free(running);
        return result;
    }
    sg_schedule_chance();
    return CUDA_SUCCESS;
}
