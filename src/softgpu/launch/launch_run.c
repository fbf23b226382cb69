#include "softgpu/launch/launch_run.h"

#include "softgpu/launch/launch_events.h"

#include "softgpu/address/range.h"
#include "softgpu/check/check.h"
#include "softgpu/context/where.h"
#include "softgpu/core/chapter.h"
#include "softgpu/core/config.h"
#include "softgpu/device/device.h"
#include "softgpu/engine/engine.h"
#include "softgpu/launch/crew.h"
#include "softgpu/launch/device_output.h"
#include "softgpu/launch/device_runtime.h"
#include "softgpu/launch/device_state.h"
#include "softgpu/launch/kernel_profile.h"
#include "softgpu/launch/kernel_report.h"
#include "softgpu/launch/kernel_watch.h"
#include "softgpu/launch/launch_texture.h"
#include "softgpu/module/module.h"
#include "softgpu/stream/leaving.h"
#include "softgpu/stream/schedule.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Warp instructions in a slice: some tens of microseconds, so that other work gets its turn. A
 * slice that several threads share is longer, to be worth waking them. */
#define SLICE      20000
#define CREW_SLICE 200000

/* A compiled kernel. Its function and its launches hold references. */
struct ready {
    unsigned refs;
    bool beyond_said; /* the log says once that a barrier's number was beyond 15 */
    struct sg_program *program;
    struct sg_code *code;
    struct sg_loaded *loaded;          /* referenced: its text, for reports */
    struct sg_kernel_profile *profile; /* NULL: the code is not counted */
    uint64_t variables[];              /* device addresses, by the program's variables */
};

struct running {
    struct ready *ready;
    const struct sg_op *op;
    struct sg_grid *grid;
    struct sg_launch_textures *textures;
    struct sg_device_runtime runtime;
    struct sg_kernel_watch watch;
    struct sg_check_launch check;
    struct sg_profiled_launch profiled;
    uint64_t number; /* of the launch */
    bool begun;      /* its first slice is over, so it is not a short kernel */
    bool done;
    enum sg_early early;
    /* The stream's next kernel, which has begun early and runs beside this one; its operation comes
     * later, so it outlives this one. */
    struct running *dependent;
    struct sg_launch_progress *progress; /* for events of the launch; or NULL */
    size_t stack_limit, stack_before;    /* the limit that the launch set, and what it was */
    struct sg_checking *checking;        /* NULL: no checker watches it */
};

static void unref(struct ready *ready) {
    if (!ready || --ready->refs > 0)
        return;
    sg_code_free(ready->code);
    sg_program_free(ready->program);
    sg_loaded_unref(ready->loaded);
    free(ready);
}

/* ---- Compiling a function -------------------------------------------------------------------- */

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

/* Explains machine code, and what to do about it. */
static void say_machine(const struct sg_loaded *program, char *why, size_t size) {
    const struct sg_image *image = program->image;
    if (program->holder && !image->refused_text)
        snprintf(why, size,
                 "machine code is not interpreted: %s. Compile for PTX too, with nvcc -gencode "
                 "arch=compute_%d,code=compute_%d",
                 program->holder, image->target, image->target);
    else if (image->refused_text)
        snprintf(why, size, "machine code is not interpreted, and the PTX beside it is refused: %s",
                 image->refused_text);
    else
        snprintf(
            why, size,
            "its image holds machine code without PTX, which is not interpreted: give nvcc "
            "-gencode arch=compute_%d,code=compute_%d too, NVRTC an architecture compute_%d or "
            "nvrtcGetPTX",
            image->target, image->target, image->target);
}

static CUresult make_ready(struct sg_function *function) {
    char why[1024];
    struct sg_program *program = NULL;
    const struct sg_image *image = function->module->program->image;
    if (function->image->lacks)
        return function->image->lacks == SG_LACKS_CALLED ? CUDA_ERROR_NOT_FOUND
                                                         : CUDA_ERROR_UNKNOWN;
    say_machine(function->module->program, why, sizeof why);
    struct sg_image_log log = {.error = why, .error_size = sizeof why};
    CUresult result = sg_program_make(image, function->image->name, &log, &program);
    if (result == CUDA_ERROR_OUT_OF_MEMORY)
        return result;
    why[strcspn(why, "\n")] = 0;
    if (result != CUDA_SUCCESS)
        return refuse(function, why);
    struct ready *ready = calloc(1, sizeof *ready + program->variable_count * sizeof(uint64_t));
    unsigned kinds = (sg_check_wants(function->image->name) ? SG_CODE_WATCHED : 0) |
                     (sg_profile_wanted() ? SG_CODE_COUNTED : 0);
    result = ready ? sg_code_make(program, sg_level_best(), kinds, &ready->code)
                   : CUDA_ERROR_OUT_OF_MEMORY;
    if (result == CUDA_ERROR_NOT_SUPPORTED) {
        (void)sg_engine_can(program, why, sizeof why);
        result = refuse(function, why);
    }
    if (result == CUDA_SUCCESS) {
        ready->program = program;
        result = find_variables(ready, function->module);
    }
    if (result == CUDA_SUCCESS && kinds & SG_CODE_COUNTED) {
        ready->profile = sg_profile_of(program, ready->code, function->module->program);
        result = ready->profile ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (result != CUDA_SUCCESS) {
        if (ready)
            sg_code_free(ready->code);
        free(ready);
        sg_program_free(program);
        return result;
    }
    ready->refs = 1;
    ready->loaded = function->module->program;
    sg_loaded_ref(ready->loaded);
    function->engine = ready;
    return CUDA_SUCCESS;
}

bool sg_launch_has_references(struct sg_function *function) {
    const struct sg_image *image = function->module->program->image;
    if (image->texture_count + image->surface_count == 0 || !sg_config()->kernels ||
        (!function->engine && make_ready(function) != CUDA_SUCCESS))
        return false;
    const struct ready *ready = function->engine;
    for (size_t i = 0; i < ready->program->variable_count; i++)
        if (ready->program->variables[i].place == SG_PLACE_TEXTURE && ready->variables[i])
            return true;
    return false;
}

static void forget(struct sg_function *function) {
    unref(function->engine);
    function->engine = NULL;
}

void sg_launch_run_begin(void) {
    sg_function_engine_end = forget;
    sg_before_host_function = sg_device_runtime_host_function;
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

/* Copies parameters that check_parameters has accepted. */
static void lay_out(unsigned char *to, const struct sg_image_function *image,
                    const struct sg_launch *launch) {
    memset(to, 0, image->parameter_bytes);
    if (launch->extra && !launch->params)
        copy_extra(to, image->parameter_bytes, launch->extra);
    for (unsigned i = 0; launch->params && i < image->parameter_count; i++)
        memcpy(to + image->parameters[i].offset, launch->params[i], image->parameters[i].size);
}

/* ---- The operation --------------------------------------------------------------------------- */

bool (*sg_launch_graph_extent)(CUdeviceptr address, uint64_t *low, uint64_t *length);

/* The range that holds an address, or, in what it is rounded up to, is before it. */
static const struct sg_range *find_range(uint64_t address, uint64_t *length) {
    const struct sg_range *range = sg_range_before(address);
    if (!range)
        return NULL;
    unsigned unit = range->variable ? SG_VARIABLE_BOUND : SG_BOUND;
    *length = sg_bounds(sg_config(), range->start, range->size, unit);
    return address - range->start < *length ? range : NULL;
}

/* The allocation around an address, as pages are too coarse for bounds. */
static bool find_extent(void *user, uint64_t address, uint64_t *low, uint64_t *length) {
    const struct running *running = user;
    sg_lock();
    const struct sg_device_state *state = running->runtime.context->device_state;
    bool found = (state && sg_heap_extent(&state->heap, address, low, length)) ||
                 sg_leaving_find(address, running->op->serial, low, length);
    const struct sg_range *range = found ? NULL : find_range(address, length);
    if (range) {
        /* Pages of plain memory say nothing about peers: that is a matter of contexts. */
        found = sg_range_seen(running->runtime.context, range);
        *low = range->start;
    } else if (!found && sg_launch_graph_extent) {
        found = sg_launch_graph_extent(address, low, length);
    }
    sg_unlock();
    return found;
}

static bool is_in_heap(void *user, uint64_t address) {
    const struct running *running = user;
    uint64_t low, length;
    sg_lock();
    const struct sg_device_state *state = running->runtime.context->device_state;
    bool is = state && sg_heap_extent(&state->heap, address, &low, &length);
    sg_unlock();
    return is;
}

static struct running *running_of(const struct sg_op *op) {
    struct running *running;
    memcpy(&running, op->data.bytes, sizeof running);
    return running;
}

/* Poisons the context here, where the report is available; the returned error then finds it so. The
 * log has the report first: who is told the error may end the process at once. */
static CUresult fail(const struct sg_op *op, const struct running *running,
                     const struct sg_grid_fault *fault) {
    struct sg_context *context = running->runtime.context;
    const struct ready *ready = running->ready;
    CUresult error = sg_kernel_error(fault);
    char *text = malloc(SG_KERNEL_REPORT);
    sg_lock();
    if (text)
        sg_kernel_report(context, ready->program, ready->loaded->image->ptx, fault, text,
                         SG_KERNEL_REPORT);
    sg_unlock();
    if (text && !sg_check_names(ready->program->name))
        sg_kernel_say(SG_LOG_ERROR, text);
    sg_lock();
    sg_coredump_report(text);
    sg_coredump_work(op->stream->id, op->number);
    sg_context_fault(op->stream->context, error);
    sg_coredump_work(0, 0);
    sg_coredump_report(NULL);
    sg_output_flush(context);
    sg_unlock();
    free(text);
    return error;
}

/* ---- Checkers -------------------------------------------------------------------------------- */

static void check_begins(const struct sg_op *op, struct running *running) {
    const struct ready *ready = running->ready;
    struct sg_check_launch launch = running->check;
    if (!running->checking || sg_checking_begun(running->checking))
        return;
    launch.program = ready->program;
    launch.ptx = ready->loaded->image->ptx;
    launch.context = running->runtime.context;
    /* It may run early, as the dependent of the operation before its own. */
    launch.op = running_of(op) == running ? op : op->next;
    launch.early = running->early != SG_EARLY_NOT;
    launch.variables = ready->variables;
    launch.extent = find_extent;
    launch.in_heap = is_in_heap;
    launch.user = running;
    sg_checking_begin(running->checking, &launch);
}

/* The error of hardware for what a checker has suppressed. */
static CUresult check_ends(const struct sg_op *op, struct running *running,
                           const struct sg_grid_fault *fault) {
    if (!running->checking || !sg_checking_begun(running->checking))
        return CUDA_SUCCESS;
    CUresult result = sg_checking_end(running->checking, fault);
    if (result == CUDA_SUCCESS || fault)
        return CUDA_SUCCESS;
    sg_lock();
    sg_context_fault(op->stream->context, result);
    sg_unlock();
    return result;
}

static uint64_t slice_of(const struct sg_grid *grid) {
    return sg_grid_room(grid) > 1 ? CREW_SLICE : SLICE;
}

static bool slice(struct running *running) {
    bool begun = running->begun;
    running->begun = true;
    return begun ? sg_crew_advance(running->grid, slice_of(running->grid))
                 : sg_grid_advance(running->grid, SLICE);
}

static CUresult advance(const struct sg_op *op, struct running *running) {
    check_begins(op, running);
    sg_profile_slice_begins(&running->profiled);
    if (!running->done)
        running->done = slice(running);
    if (!running->done)
        running->done = sg_kernel_watch(&running->watch, running->grid, running->ready->program);
    sg_profile_slice_ends(&running->profiled, running->done);
    const struct sg_grid_fault *fault = sg_grid_fault(running->grid);
    CUresult checked = running->done ? check_ends(op, running, fault) : CUDA_SUCCESS;
    return fault ? fail(op, running, fault) : checked;
}

static CUresult run(struct sg_op *op) {
    struct running *running = running_of(op);
    /* The operation is at the head of its stream, so everything that it depends on has ended. */
    sg_grid_release(running->grid);
    CUresult result = advance(op, running);
    if (result == CUDA_SUCCESS && running->dependent && !running->done)
        result = advance(op, running->dependent);
    op->spins = !running->done && sg_grid_spins(running->grid);
    if (op->spins) /* yields the processor to what it waits for */
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
 * A context ends when its work has ended. A kernel that only polls memory that nothing writes never
 * would. It is given up this long after any kernel last made progress or any operation ended.
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

static void say_awaited(const struct sg_op *op, struct running *running) {
    struct sg_context *context = op->stream->context;
    struct sg_watched_launch launch = {.number = running->number, .stream = op->stream->id};
    memcpy(launch.grid, running->check.grid, sizeof launch.grid);
    memcpy(launch.block, running->check.block, sizeof launch.block);
    sg_kernel_awaited(&running->watch, !context->alive || sg_context_owner(context)->freeing > 0,
                      running->grid, running->ready->program, &launch);
}

static bool goes_on(struct sg_op *op) {
    struct running *running = running_of(op);
    if (!running->done)
        say_awaited(op, running);
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
    sg_checking_free(running->checking);
    sg_profile_add(&running->profiled, running->grid);
    sg_grid_end(running->grid);
    sg_launch_textures_end(running->textures);
    sg_conditions_unref(running->runtime.conditions);
    unref(running->ready);
    free(running);
}

static void warn_beyond(struct running *running) {
    struct ready *ready = running->ready;
    uint32_t number, line;
    if (ready->beyond_said || !sg_grid_beyond(running->grid, &number, &line))
        return;
    ready->beyond_said = true;
    sg_log(SG_LOG_WARNING,
           "kernel %s names barrier %u at line %u of its PTX: there are 0 to 15, and its low bits "
           "are taken, as hardware does",
           ready->program->name, number, line);
}

static void finish(struct sg_op *op) {
    struct running *running = running_of(op);
    warn_beyond(running);
    if (running->progress)
        sg_launch_progress_set(running->progress, true, true);
    free_running(running);
}

/* A block of 1 x 1 x 1 stands for the shape that the function requires. */
static const unsigned *block_of(const struct sg_image_function *image,
                                const struct sg_launch *launch) {
    return image->required_threads[0] ? image->required_threads : launch->block;
}

/* Takes the module's textures and surfaces as they are bound now: later bindings affect later
 * launches only. */
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

/* The cluster that check_cluster has accepted. */
static struct sg_cluster cluster_of(const struct sg_function *function,
                                    const struct sg_launch *launch) {
    struct sg_cluster cluster;
    (void)sg_cluster_read(launch->attributes, launch->attribute_count, &cluster);
    (void)sg_cluster_check(function, launch->grid, &cluster);
    return cluster;
}

static unsigned char grid_schedule(void) {
    enum sg_schedule schedule = sg_config()->schedule;
    return schedule == SG_SCHEDULE_RANDOM ? SG_GRID_RANDOM
           : schedule == SG_SCHEDULE_LATE ? SG_GRID_LATE
                                          : SG_GRID_EAGER;
}

/* Each launch has a seed of its own. */
static uint64_t next_seed(void) {
    static uint64_t launches;
    return sg_config()->seed + ++launches;
}

static void call_runtime(void *user, struct sg_device_call *call) {
    struct running *running = user;
    sg_device_runtime_call(&running->runtime, call);
}

/* A launch raises the limit to what its kernel is known to need of a thread's local memory. */
static size_t stack_limit(const struct sg_function *function) {
    size_t limit = function->context->limits[CU_LIMIT_STACK_SIZE];
    size_t needed = ((size_t)function->image->local + 15) & ~(size_t)15;
    return needed > limit ? needed : limit;
}

/* What of it is left to recursion, calls through registers and alloca. */
static size_t stack_left(const struct sg_function *function) {
    size_t limit = stack_limit(function), needed = function->image->local;
    return limit > needed + 16 ? limit - needed : 16;
}

static CUresult begin(struct ready *ready, const struct sg_function *function,
                      const struct sg_launch *launch, struct running **made) {
    static uint64_t last_grid;
    const struct sg_image_function *image = function->image;
    const struct sg_device *device = sg_device(function->context->device);
    struct running *running = calloc(1, sizeof *running);
    unsigned char *parameters = malloc(image->parameter_bytes + 1u);
    struct sg_cluster cluster = cluster_of(function, launch);
    CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
    if (running && parameters) {
        running->textures = sg_launch_textures_new(function->context);
        result = running->textures ? take_references(running, ready) : result;
    }
    if (result == CUDA_SUCCESS) {
        const unsigned *block = block_of(image, launch);
        lay_out(parameters, image, launch);
        struct sg_grid_launch grid = {
            .code = ready->code,
            .grid = {launch->grid[0], launch->grid[1], launch->grid[2]},
            .block = {block[0], block[1], block[2]},
            .dynamic_shared = launch->shared,
            .parameters = parameters,
            .parameter_bytes = image->parameter_bytes,
            .device = device->ordinal,
            .variables = ready->variables,
            .stack_limit = stack_left(function),
            .cooperative = launch->cooperative,
            .workers = sg_crew_size(),
            .held = launch->early != SG_EARLY_NOT,
            .multiprocessors =
                (unsigned)device->attributes[CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT],
            .id = ++last_grid,
            .extent = find_extent,
            .texture = find_texture,
            .piece = sg_launch_piece,
            .schedule = grid_schedule(),
            .seed = next_seed(),
            .independent = sg_config()->independent_lanes,
            .cluster = {cluster.size[0], cluster.size[1], cluster.size[2]},
            .explicit_cluster = cluster.size[0] != 0,
            .device_call = call_runtime,
            .user = running,
        };
        running->runtime.context = function->context;
        running->number = grid.id;
        running->check = (struct sg_check_launch){.dynamic_shared = launch->shared,
                                                  .device = device->ordinal,
                                                  .cooperative = launch->cooperative,
                                                  .clustered = cluster.size[0] != 0};
        memcpy(running->check.grid, grid.grid, sizeof grid.grid);
        memcpy(running->check.block, grid.block, sizeof grid.block);
        memcpy(running->check.cluster, cluster.size, sizeof cluster.size);
        result = sg_device_runtime_begin(function->context, ready->program);
        if (result == CUDA_SUCCESS && sg_check_wants(image->name)) {
            result = sg_checking_new(&running->checking);
            grid.watch = sg_checking_watch();
            grid.watch_user = running->checking;
        }
        if (result == CUDA_SUCCESS)
            result = sg_grid_begin(&grid, &running->grid);
    }
    free(parameters);
    if (result != CUDA_SUCCESS) {
        sg_checking_free(running ? running->checking : NULL);
        sg_launch_textures_end(running ? running->textures : NULL);
        free(running);
        return result;
    }
    ready->refs++;
    running->ready = ready;
    running->profiled.profile = ready->profile;
    running->runtime.conditions = sg_conditions_ref(launch->conditions);
    running->early = launch->early;
    *made = running;
    return CUDA_SUCCESS;
}

CUresult sg_launch_make(struct sg_function *function, const struct sg_launch *launch,
                        struct sg_op **made) {
    struct running *running;
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
    running->op = op;
    op->has_priority = launch->has_priority;
    op->priority = launch->priority;
    op->again = goes_on;
    op->finish = finish;
    running->stack_before = function->context->limits[CU_LIMIT_STACK_SIZE];
    running->stack_limit = stack_limit(function);
    function->context->limits[CU_LIMIT_STACK_SIZE] = running->stack_limit;
    *made = op;
    return CUDA_SUCCESS;
}

/* Of a launch that is refused after all. */
static void give_up(struct running *running) {
    size_t *limit = &running->runtime.context->limits[CU_LIMIT_STACK_SIZE];
    if (running->stack_limit != running->stack_before && *limit == running->stack_limit)
        *limit = running->stack_before;
    free_running(running);
}

void sg_launch_discard(struct sg_op *op) {
    give_up(running_of(op));
    sg_op_free(op);
}

void sg_launch_rewind(struct sg_op *op) {
    struct running *running = running_of(op);
    sg_grid_rewind(running->grid);
    running->watch = (struct sg_kernel_watch){0};
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
        if (result != CUDA_SUCCESS) /* the operation was freed without its finish function */
            give_up(running);
    }
    if (result != CUDA_SUCCESS) {
        sg_launch_events_discard(&events);
        return result;
    }
    sg_launch_events_queue(&events);
    sg_schedule_chance();
    return CUDA_SUCCESS;
}
