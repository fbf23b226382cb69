/*
 * What calls of the api target are made with: handles and addresses that earlier calls gave (live
 * or stale by now), values of the wrong kind, NULL, random ones, and memory of the harness.
 */
#ifndef TESTS_FUZZ_API_WORLD_H
#define TESTS_FUZZ_API_WORLD_H

#include "input.h"
#include "members.h"
#include "sizes.h"

#include <gpumem/driver.h>
#include <gpumem/softgpu.h>
#include <stdbool.h>

#define CU_FN(symbol, name, version, kind, params, args) CUresult CUDAAPI symbol params;
#include <gpumem/functions.def>

/* Inputs of the target of memory draw from the first seven: a new kind goes to the end. */
enum kind {
    CONTEXTS,
    STREAMS,
    EVENTS,
    POOLS,
    HANDLES,
    ADDRESSES,
    DESCRIPTORS,
    GRAPHS,
    NODES,
    EXECS,
    USER_OBJECTS,
    CONDITIONS,
    MODULES,
    FUNCTIONS,
    LIBRARIES,
    KERNELS,
    LINKS,
    ARRAYS,
    MIPMAPS,
    TEXTURE_REFERENCES,
    SURFACE_REFERENCES,
    TEXTURES,
    SURFACES,
    EXTERNAL_MEMORIES,
    EXTERNAL_SEMAPHORES,
    GREEN_CONTEXTS,
    RESOURCE_DESCRIPTIONS,
    LOG_CALLBACKS,
    NOTIFICATIONS,
    KINDS
};

#define DEVICES 2
/* Most calls of one input, and so a bound for what it can make. */
#define CALLS     160
#define REMEMBER  (8 * CALLS)
#define ARENA     MIB
#define FLAGS     16 /* words that streams wait on */
#define RANGES    (2 * CALLS)
#define GATE_BITS 0x40u

struct range {
    CUdeviceptr address;
    size_t size;
};

struct world {
    struct input input;
    uint64_t values[KINDS][REMEMBER];
    unsigned counts[KINDS];
    struct range maps[RANGES];
    unsigned map_count;
    struct range reservations[RANGES];
    unsigned reservation_count;
    /* Bytes for the other side of a share: handles as exported, perhaps changed. */
    CUipcMemHandle ipc_memory;
    CUipcEventHandle ipc_event;
    CUmemPoolPtrExportData pointer;
    CUmemFabricHandle fabric;
};

extern struct world world;
extern unsigned char *arena; /* page aligned; no byte of it is ever above 0x7f */
extern uint64_t *gates;      /* FLAGS words of pinned memory */
/* A binary one and a timeline, which their keeper signals as it opens the gates. */
#define SEMAPHORES 2
#define FENCES     0x40u /* no wait is for more */
extern softgpu_semaphore *semaphores[SEMAPHORES];
extern int semaphore_files[SEMAPHORES];

/* ---- Drawing arguments ---------------------------------------------------------------------- */

static inline uint8_t byte(void) {
    return draw8(&world.input);
}

/* A value of this kind, most often. */
uint64_t draw_value(enum kind kind);
void remember(enum kind kind, uint64_t value);

#define CTX()    ((CUcontext)(uintptr_t)draw_value(CONTEXTS))
#define STREAM() ((CUstream)(uintptr_t)draw_value(STREAMS))
#define EVENT()  ((CUevent)(uintptr_t)draw_value(EVENTS))
#define POOL()   ((CUmemoryPool)(uintptr_t)draw_value(POOLS))
#define HANDLE() ((CUmemGenericAllocationHandle)draw_value(HANDLES))

/* Handles that are pointers. */
#define OF(type, kind) ((type)(uintptr_t)draw_value(kind))

CUdevice draw_device(void);
/* Zero, small, unaligned, pages, huge; the sums of the larger ones do not fit into a device. */
size_t draw_size(void);
unsigned draw_flags(void);
CUmemLocation draw_location(void);
CUmemAllocationProp draw_prop(void);

/*
 * An address that a driver must take: of something it gave, or of the arena. *room is how many
 * bytes a host program may touch from there: all there are for what the driver can judge by itself.
 */
CUdeviceptr draw_address(size_t *room);
/* One that is never looked into before it was judged: may be anything. */
CUdeviceptr draw_any_address(void);
/* In the arena; *room bytes follow. */
void *draw_host(size_t *room);
/* A size to move, within both rooms. */
size_t draw_length(size_t room, size_t other);
/* A pattern that keeps every byte below 0x80. See draw_wait. */
uint64_t draw_pattern(void);

/* What a stream may wait for without waiting for ever. */
struct wait {
    CUdeviceptr address;
    uint64_t value;
    unsigned flags;
};
struct wait draw_wait(unsigned width);

/* A pointer to `out`, or NULL now and then. */
void *maybe(void *out);
/* Below `most`. */
size_t draw_little(size_t most);
CUstreamBatchMemOpParams draw_memory_operation(void);
/* Of memory and arrays. What the program's own memory is an end of stays in the arena. */
CUDA_MEMCPY3D draw_box(void);
CUarray_format draw_format(void);
CUDA_ARRAY3D_DESCRIPTOR draw_shape(void);
void draw_fences(CUexternalSemaphore *list, CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS *signals,
                 CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS *waits, unsigned count);
CUlaunchAttribute draw_attribute(void);
/* Room for the parameters of any kernel that is accepted. */
void **draw_kernel_parameters(void);
/* Text for a driver to read, ended by 0; the next one takes its place. */
char *draw_program(void);

/* ---- Calls ---------------------------------------------------------------------------------- */

typedef void (*call_fn)(void);
struct calls {
    const call_fn *list;
    unsigned count;
};
extern const struct calls context_calls, memory_calls, vmm_calls, pool_calls, copy_calls,
    stream_calls, share_calls;
extern const struct calls graph_calls, exec_calls, capture_calls, image_calls, kernel_calls,
    array_calls, texture_calls, managed_calls, external_calls, report_calls;

/* What a program makes calls of: memory_target.c, object_target.c. */
struct target {
    const struct calls *const *chapters;
    unsigned count;
    unsigned kinds;      /* that a value of the wrong kind is drawn from */
    void (*begin)(void); /* makes what calls are made with; may be NULL */
};
extern const struct target target;

/* A multicast object: its devices are added when a call lasts that may wait for them. */
void remember_multicast(uint64_t handle);
/* Around a call that may block: the gates' keeper opens them when it lasts. */
void enter_call(void);
void leave_call(void);

/* ---- Begin and end -------------------------------------------------------------------------- */

void world_start(void);
/* Frees all that the input made, and aborts when softgpu's state is not what it was. */
void world_end(void);

/* Graphs, programs, arrays: before and after their contexts end. */
void start_objects(void);
void end_objects(void);
void forget_objects(void);

#endif
