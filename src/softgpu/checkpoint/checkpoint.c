/*
 * Locking, checkpointing and restoring a process, this one or another of the same user.
 *
 * On hardware, a checkpoint moves the contents of device memory to the host, so that the process
 * holds nothing of the device in the meantime. softgpu's memory is already host memory of the
 * process: its bytes remain where they are, nothing is given back, and only what the process may do
 * changes.
 *
 * These calls neither take the lock nor pass the gate: a locked process can be unlocked from any
 * thread.
 */
#include "softgpu/checkpoint/find.h"
#include "softgpu/checkpoint/futex.h"
#include "softgpu/core/calls.h"
#include "softgpu/core/config.h"
#include "softgpu/device/device.h"
#include "softgpu/process/process.h"

#include <errno.h>
#include <linux/membarrier.h>
#include <string.h>

/* Longest sleep of a waiting caller: the process it waits for wakes it, unless that dies. */
#define LOOK_AFTER 50000000u /* ns */

/* Refused within a call: the process would wait for itself. */
static CUresult begin(int pid, struct sg_control **control) {
    CUresult result = sg_control_open(pid, control);
    if (result != CUDA_SUCCESS)
        return result;
    if (sg_control_is_own(*control) && sg_thread()->calls > 0)
        return CUDA_ERROR_ILLEGAL_STATE;
    sg_gate_look_after(*control);
    return CUDA_SUCCESS;
}

static bool all_zero(const void *bytes, size_t size) {
    const unsigned char *at = bytes;
    for (size_t i = 0; i < size; i++)
        if (at[i])
            return false;
    return true;
}

static CUresult move(int pid, uint32_t from, uint32_t to) {
    struct sg_control *control;
    CUresult result = begin(pid, &control);
    if (result != CUDA_SUCCESS)
        return result;
    if (!atomic_compare_exchange_strong(&control->state, &from, to))
        result = CUDA_ERROR_ILLEGAL_STATE;
    else if (to == CU_PROCESS_STATE_RUNNING)
        sg_futex_wake(&control->state);
    sg_control_close(control);
    return result;
}

CUresult sg_cuCheckpointProcessGetState(int pid, CUprocessState *state) {
    struct sg_control *control;
    if (!state)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = begin(pid, &control);
    if (result == CUDA_ERROR_ILLEGAL_STATE) { /* within a call, which the gate has let pass */
        *state = CU_PROCESS_STATE_RUNNING;
        return CUDA_SUCCESS;
    }
    if (result != CUDA_SUCCESS)
        return result;
    uint32_t now = atomic_load(&control->state);
    *state = now == SG_STATE_LOCKING     ? CU_PROCESS_STATE_RUNNING
             : now == SG_STATE_RESTORING ? CU_PROCESS_STATE_CHECKPOINTED
                                         : (CUprocessState)now;
    sg_control_close(control);
    return CUDA_SUCCESS;
}

/* ---- Locking --------------------------------------------------------------------------------- */

static bool is_gone(const struct sg_control *control) {
    char state;
    uint64_t started;
    return !sg_process_status(control->pid, &state, &started) || started != control->started ||
           state == 'Z' || state == 'X';
}

static bool is_quiet(struct sg_control *control) {
    return atomic_load(&control->calls) == 0 && atomic_load(&control->working) == 0;
}

/* Waits until no call is past the gate and no stream has work. NOT_READY if that takes longer than
 * `limit`. */
static CUresult wait_until_quiet(struct sg_control *control, uint64_t limit) {
    uint64_t begun = sg_now();
    for (;;) {
        uint32_t changes = atomic_load(&control->changes);
        if (is_quiet(control))
            return CUDA_SUCCESS;
        uint64_t spent = sg_now() - begun, rest = LOOK_AFTER;
        if (limit && spent >= limit)
            return CUDA_ERROR_NOT_READY;
        if (limit && limit - spent < rest)
            rest = limit - spent;
        sg_futex_wait(&control->changes, changes, rest);
        if (!sg_control_is_own(control) && is_gone(control))
            return CUDA_ERROR_OPERATING_SYSTEM;
    }
}

/* Writes the state and makes every thread see it; see gate.h. */
static CUresult close_gate(struct sg_control *control) {
    uint32_t running = CU_PROCESS_STATE_RUNNING;
    char state;
    uint64_t started;
    if (!sg_process_status((uint64_t)getpid(), &state, &started))
        return CUDA_ERROR_NOT_SUPPORTED;
    if (!atomic_compare_exchange_strong(&control->state, &running, SG_STATE_LOCKING))
        return CUDA_ERROR_ILLEGAL_STATE;
    atomic_store(&control->locker, 0);
    atomic_fetch_add(&control->turn, 1);
    atomic_store(&control->locker_started, started);
    atomic_store(&control->locker, (uint32_t)getpid());
    if (syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0) == 0)
        return CUDA_SUCCESS;
    sg_log(SG_LOG_WARNING, "cannot lock a process: membarrier: %s", strerror(errno));
    return CUDA_ERROR_NOT_SUPPORTED;
}

static CUresult lock(struct sg_control *control, uint64_t limit) {
    CUresult result = close_gate(control);
    if (result == CUDA_ERROR_ILLEGAL_STATE)
        return result;
    if (result == CUDA_SUCCESS)
        result = wait_until_quiet(control, limit);
    uint32_t from = SG_STATE_LOCKING;
    uint32_t to = result == CUDA_SUCCESS ? CU_PROCESS_STATE_LOCKED : CU_PROCESS_STATE_RUNNING;
    if (!atomic_compare_exchange_strong(&control->state, &from, to))
        return result == CUDA_SUCCESS ? CUDA_ERROR_ILLEGAL_STATE : result;
    sg_futex_wake(&control->state);
    return result;
}

CUresult sg_cuCheckpointProcessLock(int pid, CUcheckpointLockArgs *args) {
    struct sg_control *control;
    if (args && (args->reserved0 || !all_zero(args->reserved1, sizeof args->reserved1)))
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = begin(pid, &control);
    if (result != CUDA_SUCCESS)
        return result;
    result = lock(control, args ? (uint64_t)args->timeoutMs * 1000000u : 0);
    sg_control_close(control);
    return result;
}

CUresult sg_cuCheckpointProcessUnlock(int pid, CUcheckpointUnlockArgs *args) {
    if (args && !all_zero(args, sizeof *args))
        return CUDA_ERROR_INVALID_VALUE;
    return move(pid, CU_PROCESS_STATE_LOCKED, CU_PROCESS_STATE_RUNNING);
}

/* ---- Checkpoint and restore ------------------------------------------------------------------ */

CUresult sg_cuCheckpointProcessCheckpoint(int pid, CUcheckpointCheckpointArgs *args) {
    if (args && !all_zero(args, sizeof *args))
        return CUDA_ERROR_INVALID_VALUE;
    return move(pid, CU_PROCESS_STATE_LOCKED, CU_PROCESS_STATE_CHECKPOINTED);
}

/* Memory stays where it is, so each device can only be restored as itself. */
static CUresult check_pairs(const CUcheckpointRestoreArgs *args) {
    if (!all_zero(args->reserved, sizeof args->reserved) || args->reserved1 ||
        (args->gpuPairsCount > 0 && !args->gpuPairs))
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < args->gpuPairsCount; i++) {
        const CUcheckpointGpuPair *pair = &args->gpuPairs[i];
        if (memcmp(&pair->oldUuid, &pair->newUuid, sizeof pair->oldUuid) != 0)
            return CUDA_ERROR_NOT_SUPPORTED;
    }
    return CUDA_SUCCESS;
}

/* Waits until the restore thread is done, however long it is kept from running. */
static CUresult wait_until_restored(struct sg_control *control) {
    while (atomic_load(&control->state) == SG_STATE_RESTORING) {
        sg_futex_wait(&control->state, SG_STATE_RESTORING, LOOK_AFTER);
        if (!sg_control_is_own(control) && is_gone(control))
            return CUDA_ERROR_OPERATING_SYSTEM;
    }
    return CUDA_SUCCESS;
}

static CUresult restore(struct sg_control *control) {
    uint32_t from = CU_PROCESS_STATE_CHECKPOINTED;
    bool alone = atomic_load(&control->restorer) == 0;
    uint32_t to = alone ? CU_PROCESS_STATE_LOCKED : SG_STATE_RESTORING;
    if (!atomic_compare_exchange_strong(&control->state, &from, to))
        return CUDA_ERROR_ILLEGAL_STATE;
    if (alone)
        return CUDA_SUCCESS;
    atomic_fetch_add(&control->requests, 1);
    sg_futex_wake(&control->requests);
    return wait_until_restored(control);
}

CUresult sg_cuCheckpointProcessRestore(int pid, CUcheckpointRestoreArgs *args) {
    struct sg_control *control;
    CUresult result = args ? check_pairs(args) : CUDA_SUCCESS;
    if (result == CUDA_SUCCESS)
        result = begin(pid, &control);
    if (result != CUDA_SUCCESS)
        return result;
    result = restore(control);
    sg_control_close(control);
    return result;
}

/* NOT_SUPPORTED for a process without a restore thread. */
static CUresult restorer_of(struct sg_control *control, int *tid) {
    uint32_t restorer;
    while ((restorer = atomic_load(&control->restorer)) == SG_RESTORER_STARTS) {
        sg_futex_wait(&control->restorer, SG_RESTORER_STARTS, LOOK_AFTER);
        if (!sg_control_is_own(control) && is_gone(control))
            return CUDA_ERROR_OPERATING_SYSTEM;
    }
    if (restorer == 0)
        return CUDA_ERROR_NOT_SUPPORTED;
    *tid = (int)restorer;
    return CUDA_SUCCESS;
}

CUresult sg_cuCheckpointProcessGetRestoreThreadId(int pid, int *tid) {
    struct sg_control *control;
    if (!tid)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = begin(pid, &control);
    if (result != CUDA_SUCCESS)
        return result;
    result = restorer_of(control, tid);
    sg_control_close(control);
    return result;
}
