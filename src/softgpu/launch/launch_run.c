#include "softgpu/launch/launch_run.h"

#include "softgpu/launch/launch_events.h"

#include "softgpu/address/range.h"
#include "softgpu/core/chapter.h"
#include "softgpu/core/config.h"
#include "softgpu/device/device.h"
#include "softgpu/engine/engine.h"
#include "softgpu/launch/launch_texture.h"
#include "softgpu/module/module.h"
#include "softgpu/stream/schedule.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

/* Instructions of warps in a slice: some tens of microseconds, so that others get their turn. */
#define SLICE 20000

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
    struct sg_launch_textures *textures;
    bool done;
    enum sg_early early;
    /* The next kernel of the stream, which may run beside this one and has begun early; its
     * operation comes after this one's, so it outlives it. */
    struct running *dependent;
    struct sg_launch_progress *progress; /* what events of the launch look at; or NULL */
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

static CUresult find_variables(struct ready *ready, const struct sg_module *module) {
    CUresult result;
    for (size_t i = 0; i < ready->program->variable_count; i++) {
        const struct sg_program_variable *variable = &ready->program->variables[i];
        if (variable->place == SG_PLACE_TEXTURE && !variable->sampler &&
            (result = sg_launch_reference(module, variable->name, &ready->variables[i])) !=
                CUDA_SUCCESS)
            return result;
        if (variable->place != SG_PLACE_IMAGE)
            continue;
        const struct sg_module_variable *found = &module->variables[variable->image];
        ready->variables[i] = found->range ? found->range->start + found->offset : 0;
    }
    return CUDA_SUCCESS;
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
    struct ready *ready = calloc(1, sizeof *ready + program->variable_count * sizeof(uint64_t));
    result =
        ready ? sg_code_make(program, sg_level_best(), &ready->code) : CUDA_ERROR_OUT_OF_MEMORY;
    if (result == CUDA_ERROR_NOT_SUPPORTED) {
        (void)sg_engine_can(program, why, sizeof why);
        result = refuse(function, why);
    }
    if (result == CUDA_SUCCESS) {
        ready->program = program;
        result = find_variables(ready, function->module);
    }
    if (result != CUDA_SUCCESS) {
        if (ready)
            sg_code_free(ready->code);
        free(ready);
        sg_program_free(program);
        return result;
    }
    ready->refs = 1;
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

/* What a kernel calls of the device runtime depends on limits, which cannot change any more. */
static void fix_limits(struct sg_context *context, const struct sg_program *program) {
    static const struct {
        const char *function;
        CUlimit limit;
    } uses[] = {{"vprintf", CU_LIMIT_PRINTF_FIFO_SIZE},
                {"malloc", CU_LIMIT_MALLOC_HEAP_SIZE},
                {"free", CU_LIMIT_MALLOC_HEAP_SIZE}};
    for (size_t f = 0; f < program->function_count; f++)
        for (size_t i = 0; i < sizeof uses / sizeof uses[0]; i++)
            if (program->functions[f].instructions == 0 &&
                strcmp(program->functions[f].name, uses[i].function) == 0)
                context->limit_fixed[uses[i].limit] = true;
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
        [SG_FAULT_TEXTURE] = CUDA_ERROR_LAUNCH_FAILED,
        [SG_FAULT_SURFACE] = CUDA_ERROR_LAUNCH_FAILED,
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

static CUresult advance(struct running *running) {
    if (!running->done)
        running->done = sg_grid_advance(running->grid, SLICE);
    const struct sg_grid_fault *fault = sg_grid_fault(running->grid);
    if (!fault)
        return CUDA_SUCCESS;
    report(running, fault);
    return error_of(fault->kind);
}

static CUresult run(struct sg_op *op) {
    struct running *running = running_of(op);
    /* At the head of its stream with nothing to wait for: what it depends on has ended. */
    sg_grid_release(running->grid);
    CUresult result = advance(running);
    if (result == CUDA_SUCCESS && running->dependent && !running->done)
        result = advance(running->dependent);
    op->spins = !running->done && sg_grid_spins(running->grid);
    if (op->spins) /* the processor, too, to whom it waits for */
        sched_yield();
    return result;
}

static bool waits_for_nothing(const struct sg_op *op) {
    for (unsigned i = 0; i < op->wait_count; i++)
        if (!sg_token_complete(op->waits[i]))
            return false;
    return true;
}

/* The next operation of the stream, if it is a kernel that may begin before this one has ended. */
static struct running *dependent_of(const struct sg_op *op, const struct running *running) {
    struct sg_op *next = op->next;
    if (!next || next->run != run || !waits_for_nothing(next))
        return NULL;
    struct running *dependent = running_of(next);
    switch (dependent->early) {
    case SG_EARLY_TRIGGERED:
        return sg_grid_triggered(running->grid) ? dependent : NULL;
    case SG_EARLY_BEGUN:
        return sg_grid_all_begun(running->grid) ? dependent : NULL;
    default:
        return NULL;
    }
}

/*
 * A context ends when its work has ended. A kernel that only waits for memory that nothing writes
 * never would: it has this long, from when any kernel last did something else or any operation
 * ended.
 */
#define LAST_SPIN 500000000u /* ns */

static bool is_given_up(const struct sg_op *op, const struct running *running) {
    static uint64_t moved, completions;
    uint64_t now = sg_now();
    if (op->stream->context->alive || !op->spins || completions != sg_completions)
        moved = now;
    completions = sg_completions;
    if (now - moved < LAST_SPIN)
        return false;
    sg_log(SG_LOG_WARNING,
           "kernel %s was ended with its context: it waited for memory that nothing writes",
           running->ready->program->name);
    return true;
}

static bool goes_on(struct sg_op *op) {
    struct running *running = running_of(op);
    if (running->progress)
        sg_launch_progress_set(running->progress, sg_grid_all_begun(running->grid),
                               sg_grid_triggered(running->grid));
    if (running->done || is_given_up(op, running))
        return false;
    if (!running->dependent)
        running->dependent = dependent_of(op, running);
    return true;
}

static void free_running(struct running *running) {
    if (running->progress)
        sg_launch_progress_unref(running->progress);
    sg_grid_end(running->grid);
    sg_launch_textures_end(running->textures);
    unref(running->ready);
    free(running);
}

static void finish(struct sg_op *op) {
    struct running *running = running_of(op);
    if (running->progress)
        sg_launch_progress_set(running->progress, true, true);
    free_running(running);
}

/* A block of 1 in all dimensions stands for the shape that the function requires. */
static const unsigned *block_of(const struct sg_image_function *image,
                                const struct sg_launch *launch) {
    return image->required_threads[0] ? image->required_threads : launch->block;
}

/* The textures and surfaces of the module as they are bound now: later bindings are for later
 * launches. */
static CUresult take_references(const struct running *running, const struct ready *ready) {
    const struct sg_program *program = ready->program;
    CUresult result = CUDA_SUCCESS;
    for (size_t i = 0; result == CUDA_SUCCESS && i < program->variable_count; i++)
        if (program->variables[i].place == SG_PLACE_TEXTURE && ready->variables[i])
            result = sg_launch_texture_take(running->textures, ready->variables[i]);
    return result;
}

static const struct sg_texture *find_texture(void *user, uint64_t handle) {
    const struct running *running = user;
    sg_lock();
    const struct sg_texture *found = sg_launch_texture(running->textures, handle);
    sg_unlock();
    return found;
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
        running->textures = sg_launch_textures_new(function->context);
        result = running->textures ? take_references(running, ready) : result;
    }
    if (result == CUDA_SUCCESS) {
        const unsigned *block = block_of(image, launch);
        lay_out(parameters, image, launch);
        const struct sg_grid_launch grid = {
            .code = ready->code,
            .grid = {launch->grid[0], launch->grid[1], launch->grid[2]},
            .block = {block[0], block[1], block[2]},
            .dynamic_shared = launch->shared,
            .parameters = parameters,
            .parameter_bytes = image->parameter_bytes,
            .device = device->ordinal,
            .variables = ready->variables,
            .stack_limit = function->context->limits[CU_LIMIT_STACK_SIZE],
            .cooperative = launch->cooperative,
            .held = launch->early != SG_EARLY_NOT,
            .multiprocessors =
                (unsigned)device->attributes[CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT],
            .id = ++last_grid,
            .extent = find_extent,
            .texture = find_texture,
            .piece = sg_launch_piece,
            .user = running,
        };
        result = sg_grid_begin(&grid, &running->grid);
    }
    free(parameters);
    if (result != CUDA_SUCCESS) {
        sg_launch_textures_end(running ? running->textures : NULL);
        free(running);
        return result;
    }
    fix_limits(function->context, ready->program);
    ready->refs++;
    running->ready = ready;
    running->early = launch->early;
    *made = running;
    return CUDA_SUCCESS;
}

static bool wants_cluster(const struct sg_function *function, const struct sg_launch *launch) {
    for (unsigned i = 0; i < launch->attribute_count; i++)
        if (launch->attributes[i].id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
            return true;
    return function->image->cluster[0] != 0;
}

CUresult sg_launch_make(struct sg_function *function, const struct sg_launch *launch,
                        struct sg_op **made) {
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
        free_running(running);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    memcpy(op->data.bytes, &running, sizeof running);
    op->has_priority = launch->has_priority;
    op->priority = launch->priority;
    op->again = goes_on;
    op->finish = finish;
    *made = op;
    return CUDA_SUCCESS;
}

void sg_launch_discard(struct sg_op *op) {
    free_running(running_of(op));
    sg_op_free(op);
}

void sg_launch_rewind(struct sg_op *op) {
    struct running *running = running_of(op);
    sg_grid_rewind(running->grid);
    running->done = false;
}

CUresult sg_launch_run(struct sg_stream *stream, struct sg_function *function,
                       const struct sg_launch *launch) {
    struct sg_launch_events events;
    struct sg_op *op;
    CUresult result = sg_launch_events_make(stream->context, launch, &events);
    if (result != CUDA_SUCCESS)
        return result;
    result = sg_launch_make(function, launch, &op);
    if (result == CUDA_SUCCESS) {
        struct running *running = running_of(op);
        running->progress = sg_launch_events_progress(&events);
        result = sg_stream_submit(stream, op);
        if (result != CUDA_SUCCESS) /* the operation is gone, without its finish */
            free_running(running);
    }
    if (result != CUDA_SUCCESS) {
        sg_launch_events_discard(&events);
        return result;
    }
    sg_launch_events_queue(&events);
    sg_schedule_chance();
    return CUDA_SUCCESS;
}
