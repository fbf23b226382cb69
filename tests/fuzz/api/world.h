/*
 * What calls of the api target are made with: handles and addresses that earlier calls gave (live
 * or stale by now), values of the wrong kind, NULL, random ones, and memory of the harness.
 */
#ifndef TESTS_FUZZ_API_WORLD_H
#define TESTS_FUZZ_API_WORLD_H

#include "input.h"

#include <gpumem/driver.h>
#include <stdbool.h>

#define CU_FN(symbol, name, version, kind, params, args) CUresult CUDAAPI symbol params;
#include <gpumem/functions.def>

enum kind { CONTEXTS, STREAMS, EVENTS, POOLS, HANDLES, ADDRESSES, DESCRIPTORS, KINDS };

#define DEVICES 2
/* Most calls of one input, and so a bound for what it can make. */
#define CALLS     160
#define REMEMBER  (8 * CALLS)
#define MIB       ((size_t)1 << 20)
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
};

extern struct world world;
extern unsigned char *arena; /* page aligned; no byte of it is ever above 0x7f */
extern uint64_t *gates;      /* FLAGS words of pinned memory */

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

/* ---- Calls ---------------------------------------------------------------------------------- */

typedef void (*call_fn)(void);
struct calls {
    const call_fn *list;
    unsigned count;
};
extern const struct calls context_calls, memory_calls, vmm_calls, pool_calls, copy_calls,
    stream_calls, share_calls;

/* Around a call that may block: the gates' keeper opens them when it lasts. */
void enter_call(void);
void leave_call(void);

/* ---- Begin and end -------------------------------------------------------------------------- */

void world_start(void);
/* Frees all that the input made, and aborts when softgpu's state is not what it was. */
void world_end(void);

#endif
