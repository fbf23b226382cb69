#include "softgpu/launch/kernel_report.h"

#include "softgpu/address/pagetable.h"
#include "softgpu/address/range.h"
#include "softgpu/check/check.h"
#include "softgpu/check/nearest.h"
#include "softgpu/context/where.h"
#include "softgpu/core/config.h"
#include "softgpu/core/site.h"
#include "softgpu/launch/device_state.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* As recorded on an H200, which has no separate errors for the bounds of state spaces and for stack
 * overflow. A generic address may be in a space that the instruction does not accept. */
CUresult sg_kernel_error(const struct sg_grid_fault *fault) {
    static const CUresult errors[SG_FAULT_COUNT] = {
        [SG_FAULT_ADDRESS] = CUDA_ERROR_ILLEGAL_ADDRESS,
        [SG_FAULT_MISALIGNED] = CUDA_ERROR_MISALIGNED_ADDRESS,
        [SG_FAULT_SPACE] = CUDA_ERROR_ILLEGAL_ADDRESS,
        [SG_FAULT_TRAP] = CUDA_ERROR_LAUNCH_FAILED,
        [SG_FAULT_BREAKPOINT] = CUDA_ERROR_LAUNCH_FAILED,
        [SG_FAULT_ASSERT] = CUDA_ERROR_ASSERT,
        [SG_FAULT_STACK] = CUDA_ERROR_ILLEGAL_ADDRESS,
        [SG_FAULT_INSTRUCTION] = CUDA_ERROR_ILLEGAL_INSTRUCTION,
        [SG_FAULT_PC] = CUDA_ERROR_INVALID_PC,
        [SG_FAULT_BARRIER] = CUDA_ERROR_ILLEGAL_INSTRUCTION,
        [SG_FAULT_DEADLOCK] = CUDA_ERROR_LAUNCH_TIMEOUT,
        [SG_FAULT_MBARRIER] = CUDA_ERROR_ILLEGAL_INSTRUCTION,
        [SG_FAULT_MEMORY] = CUDA_ERROR_OUT_OF_MEMORY,
        [SG_FAULT_TEXTURE] = CUDA_ERROR_LAUNCH_FAILED,
        [SG_FAULT_SURFACE] = CUDA_ERROR_ILLEGAL_ADDRESS,
        [SG_FAULT_HEAP] = CUDA_ERROR_LAUNCH_FAILED,
        [SG_FAULT_TIME] = CUDA_ERROR_LAUNCH_TIMEOUT,
    };
    return fault->kind == SG_FAULT_SPACE && !fault->room ? CUDA_ERROR_INVALID_ADDRESS_SPACE
                                                         : errors[fault->kind];
}

struct report {
    char *text;
    size_t used, size;
};

static void add(struct report *report, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static void add(struct report *report, const char *format, ...) {
    va_list list;
    if (report->used >= report->size)
        return;
    va_start(list, format);
    int length = vsnprintf(report->text + report->used, report->size - report->used, format, list);
    va_end(list);
    report->used += length > 0 ? (size_t)length : 0;
}

/* ---- places ---------------------------------------------------------------------------------- */

static void add_place(struct report *report, const struct sg_program *program, const char *ptx,
                      const struct sg_grid_fault *fault) {
    struct sg_hazard_place place = {0};
    char calls[2048];
    if (fault->line) /* 0: no block was resident */
        sg_program_place(program, ptx, fault->instruction, &place);
    if (place.file)
        add(report, "  at %s:%" PRIu32 "\n", place.file, place.source_line);
    add(report, "  PTX line %" PRIu32, fault->line);
    if (place.text[0])
        add(report, ": %.160s%s", place.text, strlen(place.text) > 160 ? "…" : "");
    if (place.function)
        add(report, "\n  in function %s", place.function);
    sg_fault_calls(program, fault, calls, sizeof calls);
    add(report, "\n%s  block %u,%u,%u thread %u,%u,%u\n", calls, fault->block[0], fault->block[1],
        fault->block[2], fault->thread[0], fault->thread[1], fault->thread[2]);
}

/* ---- allocations ----------------------------------------------------------------------------- */

static void add_site(struct report *report, const struct sg_range *range) {
    char site[512];
    sg_site_text(range->origin.site, site, sizeof site);
    if (site[0])
        add(report, ", made by %s", site);
}

static const char *rights_text(const struct sg_context *context, const struct sg_range *range,
                               bool write) {
    bool mapped;
    sg_rights rights = sg_table_get(range->start, &mapped);
    unsigned own = rights >> (2 * context->device) & (SG_READ | SG_WRITE);
    if (mapped && own == 0)
        return "which this device may not access";
    if (mapped && write && !(own & SG_WRITE))
        return "which this device may only read";
    if (!sg_range_seen(context, range))
        return "of a device to which this context has no peer access";
    return NULL;
}

static void add_inside(struct report *report, const struct sg_context *context,
                       const struct sg_range *range, const struct sg_grid_fault *fault) {
    uint64_t before_end = (uint64_t)range->start + (uint64_t)range->size - fault->address;
    const char *rights = rights_text(context, range, fault->write);
    add(report, "  %" PRIu64 " bytes before the end of an allocation of %zu bytes at 0x%" PRIx64,
        before_end, range->size, (uint64_t)range->start);
    if (rights)
        add(report, ", %s", rights);
    add_site(report, range);
    add(report, "\n");
}

static void add_nearest(struct report *report, uint64_t address) {
    char line[1024];
    sg_nearest_text(address, line, sizeof line);
    add(report, "%s", line);
}

/* Describes a place in the kernels' heap; false: the address is not in it. */
static bool add_heap(struct report *report, const struct sg_context *context, uint64_t address) {
    uint64_t start, size;
    if (!context->device_state ||
        !sg_heap_block(&context->device_state->heap, address, &start, &size))
        return false;
    if (size)
        add(report,
            "  %" PRIu64 " bytes inside of %" PRIu64 " bytes at 0x%" PRIx64
            " that a kernel has allocated\n",
            address - start, size, start);
    else
        add(report, "  in the heap of kernels, where nothing is allocated\n");
    return true;
}

static void add_allocation(struct report *report, const struct sg_context *context,
                           const struct sg_grid_fault *fault) {
    const struct sg_range *range = sg_range_find(fault->address);
    if (add_heap(report, context, fault->address))
        return;
    if (range)
        add_inside(report, context, range, fault);
    else
        add_nearest(report, fault->address);
}

void sg_kernel_say(int level, const char *text) {
    for (size_t length; *text; text += length + (text[length] == '\n')) {
        length = strcspn(text, "\n");
        if (length)
            sg_log((enum sg_log_level)level, "%.*s", (int)length, text);
    }
}

/* ---- the whole ------------------------------------------------------------------------------- */

static const char *space_text(unsigned space) {
    return space == SG_IN_SHARED  ? "shared memory"
           : space == SG_IN_LOCAL ? "local memory"
           : space == SG_IN_PARAM ? "the parameters"
                                  : "its space";
}

static void add_head(struct report *report, const struct sg_program *program,
                     const struct sg_grid_fault *fault) {
    const char *access = fault->write ? "write" : "read";
    add(report, "kernel %s: %s", program->name, sg_fault_name(fault->kind));
    if (fault->kind == SG_FAULT_SPACE && fault->room)
        add(report, ": %s of %u bytes at offset %" PRIu64 " of %s, which has %" PRIu64, access,
            fault->size, fault->address, space_text(fault->space), fault->room);
    else if (fault->kind == SG_FAULT_ADDRESS || fault->kind == SG_FAULT_MISALIGNED ||
             fault->kind == SG_FAULT_SPACE)
        add(report, ": %s of %u bytes at 0x%" PRIx64, access, fault->size, fault->address);
    else if (fault->kind == SG_FAULT_HEAP || fault->kind == SG_FAULT_INSTRUCTION ||
             fault->kind == SG_FAULT_PC)
        add(report, ": 0x%" PRIx64, fault->address);
    else if (fault->kind == SG_FAULT_BARRIER && fault->size)
        add(report, ": %" PRIu64 " is no multiple of 32 threads", fault->address);
    else if (fault->kind == SG_FAULT_BARRIER)
        add(report, ": others wait at barrier %" PRIu64 " with another count, or with none",
            fault->address);
    add(report, "\n");
}

void sg_kernel_report(const struct sg_context *context, const struct sg_program *program,
                      const char *ptx, const struct sg_grid_fault *fault, char *text, size_t size) {
    struct report report = {text, 0, size};
    if (size)
        text[0] = '\0';
    add_head(&report, program, fault);
    if (fault->kind != SG_FAULT_MEMORY)
        add_place(&report, program, ptx, fault);
    bool global = fault->kind == SG_FAULT_ADDRESS || fault->kind == SG_FAULT_HEAP ||
                  (fault->kind == SG_FAULT_MISALIGNED &&
                   (fault->space == SG_IN_GLOBAL || fault->space == SG_IN_GENERIC));
    if (global)
        add_allocation(&report, context, fault);
    if (fault->report[0]) /* for a texture it is not a whole line */
        add(&report, "%s%s", fault->report,
            fault->report[strlen(fault->report) - 1] == '\n' ? "" : "\n");
}
