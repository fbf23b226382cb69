/* Events between processes: the child opens what the parent made, by the handle's bytes. */
#include "harness.h"

#include <fcntl.h>
#include <signal.h>
#include <time.h>

/* Handles travel as hexadecimal arguments. */
static void to_text(const CUipcEventHandle *handle, char *text) {
    for (size_t i = 0; i < sizeof *handle; i++)
        sprintf(text + 2 * i, "%02x", (unsigned)((const unsigned char *)handle)[i]);
}

static CUipcEventHandle from_text(const char *text) {
    CUipcEventHandle handle;
    for (size_t i = 0; i < sizeof handle; i++) {
        unsigned byte = 0;
        sscanf(text + 2 * i, "%2x", &byte);
        ((unsigned char *)&handle)[i] = (unsigned char)byte;
    }
    return handle;
}

static CUevent make_event(void) {
    CUevent event;
    OK_CU(cu.cuEventCreate(&event, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING));
    return event;
}

/* Two pipes, so that both sides can say where they are. */
struct talk {
    int in[2], out[2]; /* to the child, from the child */
    char read_end[16], write_end[16];
};

static void talk_begin(struct talk *talk) {
    assert_int_equal(pipe(talk->in), 0);
    assert_int_equal(pipe(talk->out), 0);
    snprintf(talk->read_end, sizeof talk->read_end, "%d", talk->in[0]);
    snprintf(talk->write_end, sizeof talk->write_end, "%d", talk->out[1]);
}

static void talk_end(struct talk *talk) {
    for (int i = 0; i < 2; i++) {
        close(talk->in[i]);
        close(talk->out[i]);
    }
}

static void say(int fd) {
    assert_int_equal(write(fd, "x", 1), 1);
}

static void hear(int fd) {
    char byte;
    assert_int_equal(read(fd, &byte, 1), 1);
}

#define EXPECT(error, call)                                                                        \
    do {                                                                                           \
        CUresult got = (call);                                                                     \
        if (got != (error)) {                                                                      \
            print_error("%s answered %d, not %d\n", #call, (int)got, (int)(error));                \
            return 1;                                                                              \
        }                                                                                          \
    } while (0)

/* The parent has recorded behind a gate; the child waits in a stream of its own. */
CHILD(wait_for_parent) {
    if (argc != 4)
        return 3;
    int in, out;
    sscanf(argv[2], "%d", &in);
    sscanf(argv[3], "%d", &out);
    init_driver();
    CUevent event, after;
    CUstream stream;
    EXPECT(CUDA_SUCCESS, cu.cuIpcOpenEventHandle(&event, from_text(argv[1])));
    EXPECT(CUDA_SUCCESS, cu.cuEventCreate(&after, CU_EVENT_DISABLE_TIMING));
    EXPECT(CUDA_SUCCESS, cu.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    EXPECT(CUDA_ERROR_NOT_READY, cu.cuEventQuery(event));
    EXPECT(CUDA_SUCCESS, cu.cuStreamWaitEvent(stream, event, 0));
    EXPECT(CUDA_SUCCESS, cu.cuEventRecord(after, stream));
    EXPECT(CUDA_ERROR_NOT_READY, cu.cuEventQuery(after));
    say(out); /* now the parent opens its gate */
    EXPECT(CUDA_SUCCESS, cu.cuStreamSynchronize(stream));
    EXPECT(CUDA_SUCCESS, cu.cuEventSynchronize(event));
    EXPECT(CUDA_SUCCESS, cu.cuEventQuery(event));
    EXPECT(CUDA_SUCCESS, cu.cuEventDestroy_v2(after));
    EXPECT(CUDA_SUCCESS, cu.cuEventDestroy_v2(event));
    EXPECT(CUDA_SUCCESS, cu.cuStreamDestroy_v2(stream));
    return 0;
}

TEST(another_process_waits_for_a_recorded_event) {
    NEEDS_ATTRIBUTE(CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED);
    struct talk talk;
    struct gate gate;
    CUipcEventHandle handle;
    char text[2 * sizeof handle + 1];
    CUevent event = make_event();
    talk_begin(&talk);
    gate_make(&gate);
    CUstream stream = MADE_CU(CUstream, cuStreamCreate, CU_STREAM_NON_BLOCKING);
    gate_hold(&gate, stream);
    OK_CU(cu.cuEventRecord(event, stream));
    OK_CU(cu.cuIpcGetEventHandle(&handle, event));
    to_text(&handle, text);
    int pid = start_child("wait_for_parent", text, talk.read_end, talk.write_end, NULL);
    hear(talk.out[0]);
    gate_drain(&gate, stream);
    assert_int_equal(wait_child(pid), 0);
    gate_free(&gate);
    DESTROY_CU(stream, event);
    talk_end(&talk);
}

/* The child records behind its gate and opens it when it is told to. */
CHILD(record_for_parent) {
    if (argc != 4)
        return 3;
    int in, out;
    sscanf(argv[2], "%d", &in);
    sscanf(argv[3], "%d", &out);
    init_driver();
    CUevent event;
    CUstream stream;
    struct gate gate;
    gate_make(&gate);
    EXPECT(CUDA_SUCCESS, cu.cuIpcOpenEventHandle(&event, from_text(argv[1])));
    EXPECT(CUDA_SUCCESS, cu.cuEventQuery(event));
    EXPECT(CUDA_SUCCESS, cu.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    gate_hold(&gate, stream);
    EXPECT(CUDA_SUCCESS, cu.cuEventRecord(event, stream));
    EXPECT(CUDA_ERROR_NOT_READY, cu.cuEventQuery(event));
    say(out);
    hear(in);
    gate_release(&gate);
    EXPECT(CUDA_SUCCESS, cu.cuStreamSynchronize(stream));
    EXPECT(CUDA_SUCCESS, cu.cuEventDestroy_v2(event));
    return 0;
}

TEST(another_process_records_a_shared_event) {
    NEEDS_ATTRIBUTE(CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED);
    struct talk talk;
    CUipcEventHandle handle;
    char text[2 * sizeof handle + 1];
    CUevent event = make_event();
    talk_begin(&talk);
    OK_CU(cu.cuIpcGetEventHandle(&handle, event));
    to_text(&handle, text);
    int pid = start_child("record_for_parent", text, talk.read_end, talk.write_end, NULL);
    hear(talk.out[0]);
    FAILS_CU(NOT_READY, cu.cuEventQuery(event));
    say(talk.in[1]);
    OK_CU(cu.cuEventSynchronize(event));
    OK_CU(cu.cuEventQuery(event));
    assert_int_equal(wait_child(pid), 0);
    OK_CU(cu.cuEventDestroy_v2(event));
    talk_end(&talk);
}

/* As above, but the child ends with its work undone. */
CHILD(record_and_die) {
    if (argc != 2)
        return 3;
    init_driver();
    CUevent event;
    CUstream stream;
    struct gate gate;
    gate_make(&gate);
    EXPECT(CUDA_SUCCESS, cu.cuIpcOpenEventHandle(&event, from_text(argv[1])));
    EXPECT(CUDA_SUCCESS, cu.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    gate_hold(&gate, stream);
    EXPECT(CUDA_SUCCESS, cu.cuEventRecord(event, stream));
    _exit(0);
}

TEST(an_event_recorded_by_a_dead_process_is_complete) {
    NEEDS_SOFTGPU("nothing says what hardware does");
    CUipcEventHandle handle;
    char text[2 * sizeof handle + 1];
    CUevent event = make_event();
    OK_CU(cu.cuIpcGetEventHandle(&handle, event));
    to_text(&handle, text);
    assert_int_equal(run_child("record_and_die", text, NULL), 0);
    OK_CU(cu.cuEventSynchronize(event));
    OK_CU(cu.cuEventDestroy_v2(event));
}

/* ---- Another process under the same id ------------------------------------------------------- */

/* The kernel takes the next id after this one. False where a process may not say so. */
static bool choose_next_id(int pid) {
    char text[16];
    int length = snprintf(text, sizeof text, "%d", pid - 1);
    int fd = open("/proc/sys/kernel/ns_last_pid", O_WRONLY | O_CLOEXEC);
    bool chosen = fd >= 0 && write(fd, text, (size_t)length) == length;
    if (fd >= 0)
        close(fd);
    return chosen;
}

/* A process that ends with the pipe. */
static int fork_reader(const int pipe_fds[2]) {
    int pid = fork();
    if (pid == 0) {
        char byte;
        close(pipe_fds[1]);
        _exit(read(pipe_fds[0], &byte, 1) == 0 ? 0 : 1);
    }
    return pid;
}

static void end_reader(int pid) {
    kill(pid, SIGKILL);
    wait_child(pid);
}

/* A living process with that id, which nobody has. 0 where it cannot be had: others take ids too.
 */
static int take_id(int wanted, const int pipe_fds[2]) {
    for (int tries = 0; tries < 200 && choose_next_id(wanted); tries++) {
        int pid = fork_reader(pipe_fds);
        if (pid == wanted)
            return pid;
        end_reader(pid);
    }
    return 0;
}

static bool reached_within(CUevent event, int seconds) {
    struct timespec now, until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += seconds;
    do {
        CUresult result = cu.cuEventQuery(event);
        if (result != CUDA_ERROR_NOT_READY)
            return result == CUDA_SUCCESS;
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while (now.tv_sec < until.tv_sec);
    return false;
}

TEST(a_dead_recorder_is_not_confused_with_a_process_of_its_id) {
    NEEDS_SOFTGPU("nothing says what hardware does");
    CUipcEventHandle handle;
    char text[2 * sizeof handle + 1];
    int ends[2];
    CUevent event = make_event();
    OK_CU(cu.cuIpcGetEventHandle(&handle, event));
    to_text(&handle, text);
    int recorder = start_child("record_and_die", text, NULL);
    assert_int_equal(wait_child(recorder), 0);
    /* Processes are told apart by when they began, in steps of 10 ms. */
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    assert_int_equal(pipe(ends), 0);
    int other = take_id(recorder, ends);
    bool reached = other && reached_within(event, 20);
    if (other)
        end_reader(other);
    close(ends[0]);
    close(ends[1]);
    OK_CU(cu.cuEventDestroy_v2(event));
    if (!other)
        SKIP("this process may not choose the ids of its children");
    assert_true(reached);
}

TEST(invalid_event_handles_are_refused) {
    NEEDS_ATTRIBUTE(CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED);
    CUipcEventHandle handle, zero;
    CUevent event = make_event(), opened = NULL;
    memset(&zero, 0, sizeof zero);
    CUevent plain = new_event();
    FAILS_CU(INVALID_HANDLE, cu.cuIpcGetEventHandle(&handle, plain));
    OK_CU(cu.cuIpcGetEventHandle(&handle, event));
    FAILS_CU(INVALID_CONTEXT, cu.cuIpcOpenEventHandle(&opened, handle));
    FAILS_CU(MAP_FAILED, cu.cuIpcOpenEventHandle(&opened, zero));
    assert_null(opened);
    OK_CU(cu.cuEventDestroy_v2(event));
}
