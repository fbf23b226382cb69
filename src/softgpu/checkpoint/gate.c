/* The process's own side of the gate: its file, and waiting. */
#include "softgpu/checkpoint/gate.h"

#include "base/descriptor.h"
#include "softgpu/checkpoint/futex.h"
#include "softgpu/core/config.h"
#include "softgpu/process/process.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* How long a thread waits before it checks that the locker is still alive. */
#define LOOK_AFTER 500000000u /* ns */

static struct sg_control private_control = {.magic = SG_CONTROL_MAGIC};
struct sg_control *sg_control = &private_control;

/* The descriptor remains open: others find the file by it. Sealed, because a process that accesses
 * a mapped file after it has shrunk is killed. */
static struct sg_control *make_file(void) {
    int fd = gm_fd_memory(SG_CONTROL_MAGIC);
    if (fd < 0)
        return NULL;
    void *map = MAP_FAILED;
    if (ftruncate(fd, sizeof(struct sg_control)) == 0 &&
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
        map = mmap(NULL, sizeof(struct sg_control), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (map != MAP_FAILED)
        return map;
    close(fd);
    return NULL;
}

/* With the lock, in a call that has announced itself in the private count. */
CUresult sg_gate_init(void) {
    char state;
    private_control.pid = (uint32_t)getpid();
    if (!sg_process_status(private_control.pid, &state, &private_control.started)) {
        sg_log(SG_LOG_INFO, "no /proc: other processes cannot lock this one");
        return CUDA_SUCCESS;
    }
    struct sg_control *file = make_file();
    if (!file) {
        sg_log(SG_LOG_WARNING, "no file for other processes to lock this one by: %s",
               strerror(errno));
        return CUDA_SUCCESS;
    }
    memcpy(file, &private_control, sizeof *file);
    sg_control = file;
    sg_restorer_start(file);
    return CUDA_SUCCESS;
}

void sg_gate_in_child(void) {
    struct sg_control now = {.magic = SG_CONTROL_MAGIC};
    atomic_store(&now.calls, atomic_load(&sg_control->calls));
    memcpy(&private_control, &now, sizeof now);
    sg_control = &private_control;
}

void sg_gate_look_after(struct sg_control *control) {
    char state;
    uint64_t started;
    uint32_t locking = SG_STATE_LOCKING, turn = atomic_load(&control->turn);
    uint32_t locker = atomic_load(&control->locker);
    uint64_t since = atomic_load(&control->locker_started);
    if (atomic_load(&control->state) != SG_STATE_LOCKING || locker == 0 ||
        turn != atomic_load(&control->turn))
        return;
    bool alive = sg_process_status(locker, &state, &started) && started == since && state != 'Z';
    if (alive || turn != atomic_load(&control->turn))
        return;
    if (atomic_compare_exchange_strong(&control->state, &locking, CU_PROCESS_STATE_RUNNING))
        sg_futex_wake(&control->state);
}

static void sleep_at_gate(void *user) {
    const uint32_t *state = user;
    sg_futex_wait(&sg_control->state, *state, LOOK_AFTER);
    sg_gate_look_after(sg_control);
}

void sg_gate_wait(void) {
    for (;;) {
        uint32_t state = atomic_load(&sg_control->state);
        if (state == CU_PROCESS_STATE_RUNNING)
            return;
        sg_gate_add(&sg_control->calls, (uint32_t)-1);
        sg_gate_changed();
        sg_call_out(false, sleep_at_gate, &state);
        sg_gate_add(&sg_control->calls, 1);
        atomic_signal_fence(memory_order_seq_cst);
    }
}

void sg_gate_changed(void) {
    if (atomic_load(&sg_control->state) != SG_STATE_LOCKING)
        return;
    atomic_fetch_add(&sg_control->changes, 1);
    sg_futex_wake(&sg_control->changes);
}
