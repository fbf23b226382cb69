/*
 * Locking other processes, by a coordinator that does not use the driver itself. The process that
 * is locked is a helper of the scenario, and is not checkpointed: nothing of the device moves.
 */
#include "../parity.h"

#include <limits.h>
#include <sys/wait.h>

/* Uses the device, says so, and goes when it is told to. */
HELPER(helper_target, "checkpoint-target") {
    int pid = getpid();
    char byte;
    par_record_start("checkpoint/coordinator:target");
    par_context();
    par_alloc(4096);
    par_send(par.peer_fd, &pid, sizeof(pid), -1);
    if (par_receive(par.peer_fd, &byte, 1, NULL))
        CALL(cuMemFree_v2, "unlocked", (par_alloc(4096)));
}

static void see_state(const char *cls, int pid) {
    CUprocessState state;
    CALLO(cuCheckpointProcessGetState, cls, (pid, &state), OUT_U(state));
}

static void step(const char *cls, int pid) {
    see_state(cls, pid);
    CALL(cuCheckpointProcessUnlock, cls, (pid, NULL));
    CALL(cuCheckpointProcessRestore, cls, (pid, NULL));
    CALL(cuCheckpointProcessCheckpoint, cls, (pid, NULL));
}

/* The runner's environment decides; the coordinator has opened the driver and called nothing. */
SCENARIO(coordinator, "checkpoint/coordinator") {
    int pid = 0, tid = -1, peer = par_spawn("checkpoint-target");
    CUcheckpointLockArgs reserved = {.reserved0 = 1}, timed = {.timeoutMs = 1000};
    if (!par_receive(peer, &pid, sizeof(pid), NULL)) {
        par_see("setup", "SETUP_FAILED target");
        return;
    }
    par_note("running");
    step("no-init", pid);
    CALLO(cuCheckpointProcessGetRestoreThreadId, "no-init", (pid, &tid), OUT_C(tid));
    par_see("restore-thread", "%s", tid > 0 && tid != pid ? "another" : "the process or none");
    CALL(cuCheckpointProcessLock, "no-init-reserved", (pid, &reserved));
    CALL(cuCheckpointProcessLock, "no-init", (pid, NULL));
    see_state("locked", pid);
    CALL(cuCheckpointProcessLock, "locked", (pid, NULL));
    CALL(cuCheckpointProcessRestore, "locked", (pid, NULL));
    CALL(cuCheckpointProcessUnlock, "no-init", (pid, NULL));
    see_state("unlocked", pid);
    CALL(cuCheckpointProcessLock, "no-init-timed", (pid, &timed));
    CALL(cuCheckpointProcessUnlock, "no-init-timed", (pid, NULL));
    int count;
    CALLO(cuDeviceGetCount, "no-init", (&count), OUT_I(count));
    par_send(peer, "g", 1, -1);
    par_join();
}

static void no_target(const char *cls, int pid) {
    int tid;
    see_state(cls, pid);
    CALLO(cuCheckpointProcessGetRestoreThreadId, cls, (pid, &tid), OUT_C(tid));
    CALL(cuCheckpointProcessLock, cls, (pid, NULL));
    CALL(cuCheckpointProcessUnlock, cls, (pid, NULL));
}

/* Processes that do not use the device, and numbers that are none. */
SCENARIO(no_targets, "checkpoint/no-targets") {
    no_target("no-init-itself", getpid());
    no_target("no-init-parent", getppid());
    no_target("no-init-zero", 0);
    no_target("no-init-negative", -1);
    no_target("no-init-none", INT_MAX);
    CALL(cuCheckpointProcessGetState, "no-init-null-out", (getpid(), NULL));
    CALL(cuCheckpointProcessGetRestoreThreadId, "no-init-null-out", (getpid(), NULL));
}

SCENARIO(no_targets_initialized, "checkpoint/no-targets-initialized", par_init) {
    no_target("parent", getppid());
    no_target("zero", 0);
    no_target("none", INT_MAX);
    CALL(cuCheckpointProcessGetState, "null-out", (getpid(), NULL));
    see_state("itself", getpid());
}

/* The child of a process that uses the driver asks for its parent. */
SCENARIO(forked, "checkpoint/forked", par_context) {
    par_no_restart();
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        CUprocessState state;
        par_rename("child");
        CALLO(cuCheckpointProcessGetState, "forked-parent", (getppid(), &state), OUT_U(state));
        CALLO(cuCheckpointProcessGetState, "forked-itself", (getpid(), &state), OUT_U(state));
        fflush(NULL);
        _exit(0);
    }
    waitpid(child, NULL, 0);
}
