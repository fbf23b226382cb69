/* Where every input begins and ends: the state of softgpu, the same each time. */
#include "world.h"

#include "leaked_descriptors.h"

#include "softgpu/context/context.h"
#include "softgpu/device/device.h"

#include <fcntl.h>
#include <gpumem/softgpu.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

unsigned char *arena;
uint64_t *gates;

const softgpu_control *softgpu_get_control(int version);
static const softgpu_control *soft;
static CUcontext keeper; /* owns the gates; no input knows it */
static char *state_at_start;
static unsigned descriptors_at_start;
static int foreign[5]; /* of no exported memory; the last of another process's pool */

static void require(bool true_here, const char *what) {
    if (true_here)
        return;
    fprintf(stderr, "api: %s\n", what);
    abort();
}

/* ---- Gates ---------------------------------------------------------------------------------- */

static atomic_uint calls; /* odd while one runs */
static atomic_bool drain;

void enter_call(void) {
    atomic_fetch_add(&calls, 1);
}

void leave_call(void) {
    atomic_fetch_add(&calls, 1);
}

/* Multicast objects of this input: what is bound to one waits until all devices have joined. */
static _Atomic uint64_t objects[16];
static atomic_uint object_count;

void remember_multicast(uint64_t handle) {
    atomic_store(&objects[atomic_fetch_add(&object_count, 1) % 16], handle);
}

static void complete_objects(void) {
    for (unsigned i = 0; i < 16; i++)
        for (CUdevice device = 0; device < DEVICES; device++)
            if (atomic_load(&objects[i]))
                cuMulticastAddDevice(atomic_load(&objects[i]), device);
}

static void open_gates(void) {
    for (unsigned i = 0; i < FLAGS; i++)
        __atomic_store_n(&gates[i], GATE_BITS + i, __ATOMIC_RELEASE);
    for (unsigned i = 0; i < SEMAPHORES; i++)
        __atomic_store_n(&semaphores[i]->value, i ? FENCES : 1, __ATOMIC_RELEASE);
}

/* A call that has not returned after two looks waits for a gate, or is stuck: again and again,
 * because work that is released may write to a gate. */
static void *keep_gates(void *unused) {
    (void)unused;
    unsigned last = 0;
    for (;;) {
        usleep(300);
        unsigned now = atomic_load(&calls);
        bool stuck = now & 1 && now == last;
        if (stuck || atomic_load(&drain))
            open_gates();
        if (stuck)
            complete_objects();
        last = now;
    }
    return NULL;
}

/* ---- Start ---------------------------------------------------------------------------------- */

static void make_foreign(void) {
    int ends[2];
    require(pipe2(ends, O_CLOEXEC) == 0, "no pipe");
    foreign[0] = open("/dev/null", O_RDWR | O_CLOEXEC);
    foreign[1] = memfd_create("not exported", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    foreign[2] = ends[0];
    foreign[3] = ends[1];
    require(foreign[0] > 0 && foreign[1] > 0 && ftruncate(foreign[1], 4 << 20) == 0,
            "no descriptors");
}

/* ---- Another process ------------------------------------------------------------------------ */

/* What it exports, for inputs to open and to damage. */
static struct offer {
    CUipcMemHandle memory;
    CUipcEventHandle event;
    CUmemPoolPtrExportData pointer;
    int pool;
} offer;

static void make_offer(int to) {
    CUcontext context;
    CUdeviceptr memory, from_pool;
    CUevent event;
    CUmemoryPool pool;
    CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                            .handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                            .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    require(cuInit(0) == CUDA_SUCCESS && cuCtxCreate_v2(&context, 0, 0) == CUDA_SUCCESS &&
                cuMemAlloc_v2(&memory, 100000) == CUDA_SUCCESS &&
                cuIpcGetMemHandle(&offer.memory, memory) == CUDA_SUCCESS &&
                cuEventCreate(&event, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING) ==
                    CUDA_SUCCESS &&
                cuIpcGetEventHandle(&offer.event, event) == CUDA_SUCCESS &&
                cuMemPoolCreate(&pool, &props) == CUDA_SUCCESS &&
                cuMemAllocFromPoolAsync(&from_pool, 100000, pool, NULL) == CUDA_SUCCESS &&
                cuStreamSynchronize(NULL) == CUDA_SUCCESS &&
                cuMemPoolExportToShareableHandle(&offer.pool, pool,
                                                 CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                                                 0) == CUDA_SUCCESS &&
                cuMemPoolExportPointer(&offer.pointer, from_pool) == CUDA_SUCCESS,
            "the other process cannot export");
    require(write(to, &offer, sizeof offer) == (ssize_t)sizeof offer, "no word of it");
}

/* Before this process begins to use the driver. */
static void start_other(void) {
    int ends[2];
    char path[64];
    require(pipe2(ends, O_CLOEXEC) == 0, "no pipe");
    pid_t parent = getpid(), other = fork();
    require(other >= 0, "no other process");
    if (other == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
            _exit(1);
        make_offer(ends[1]);
        for (;;)
            pause();
    }
    close(ends[1]);
    require(read(ends[0], &offer, sizeof offer) == (ssize_t)sizeof offer, "no offer");
    close(ends[0]);
    snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)other, offer.pool);
    foreign[4] = open(path, O_RDWR | O_CLOEXEC);
    require(foreign[4] > 0, "no pool of the other process");
}

static void make_gates(void) {
    void *memory = NULL;
    pthread_t thread;
    require(cuInit(0) == CUDA_SUCCESS, "cuInit");
    require(cuCtxCreate_v2(&keeper, 0, 0) == CUDA_SUCCESS, "no context");
    require(cuMemHostAlloc(&memory, FLAGS * sizeof *gates, CU_MEMHOSTALLOC_PORTABLE) ==
                CUDA_SUCCESS,
            "no pinned memory");
    gates = memory;
    CUcontext popped;
    cuCtxPopCurrent_v2(&popped);
    require(pthread_create(&thread, NULL, keep_gates, NULL) == 0, "no thread");
    pthread_detach(thread);
}

static void begin(void) {
    setenv("SOFTGPU_DEVICES", "2", 1);
    setenv("SOFTGPU_MEMORY", "64M", 1);
    setenv("SOFTGPU_LOG", "off", 1);
    setenv("SOFTGPU_KERNELS", "1", 1);
    setenv("CUDA_COREDUMP_FILE", "/dev/null", 1);
    arena = mmap(NULL, ARENA, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    require(arena != MAP_FAILED, "no arena");
    soft = softgpu_get_control(SOFTGPU_CONTROL_VERSION);
    start_other();
    make_foreign();
    start_objects();
    make_gates();
}

/* Every call once in a context, so that what is made once for a process is there. */
static void warm_up(void) {
    CUcontext context;
    for (CUdevice device = DEVICES; device-- > 0;) {
        CUdeviceptr memory;
        cuDevicePrimaryCtxRetain(&context, device);
        cuCtxSetCurrent(context);
        cuMemAlloc_v2(&memory, 4 * MIB);
        cuIpcGetMemHandle(&world.ipc_memory, memory);
    }
    CUevent event = NULL;
    cuEventCreate(&event, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING);
    cuIpcGetEventHandle(&world.ipc_event, event);
    for (unsigned i = 0; i < target.count; i++)
        for (unsigned j = 0; j < target.chapters[i]->count; j++)
            target.chapters[i]->list[j]();
}

/* ---- End ------------------------------------------------------------------------------------ */

static void pop_all(void) {
    CUcontext popped;
    while (cuCtxPopCurrent_v2(&popped) == CUDA_SUCCESS)
        continue;
}

static void end_contexts(void) {
    for (unsigned i = 0; i < world.counts[CONTEXTS]; i++)
        while (cuCtxDestroy_v2((CUcontext)(uintptr_t)world.values[CONTEXTS][i]) == CUDA_SUCCESS)
            continue;
    for (CUdevice device = 0; device < DEVICES; device++) {
        while (cuDevicePrimaryCtxRelease_v2(device) == CUDA_SUCCESS)
            continue;
        cuDevicePrimaryCtxReset_v2(device);
        cuDevicePrimaryCtxSetFlags_v2(device, 0);
    }
}

/* A device that has faulted stays so for the life of the process: here the next input gets a new
 * one. */
static void mend_devices(void) {
    cuCtxPushCurrent_v2(keeper);
    for (int i = 0; i < DEVICES; i++)
        sg_device(i)->fault = CUDA_SUCCESS;
    sg_context_peek()->sticky = CUDA_SUCCESS;
    pop_all();
}

static void free_memory(void) {
    for (unsigned i = 0; i < world.map_count; i++)
        cuMemUnmap(world.maps[i].address, world.maps[i].size);
    for (unsigned i = 0; i < world.reservation_count; i++) {
        cuMemUnmap(world.reservations[i].address, world.reservations[i].size);
        cuMemAddressFree(world.reservations[i].address, world.reservations[i].size);
    }
    for (unsigned i = 0; i < world.counts[HANDLES]; i++)
        for (unsigned j = 0; j < CALLS; j++)
            if (cuMemRelease(world.values[HANDLES][i]) != CUDA_SUCCESS)
                break;
    for (unsigned i = 0; i < world.counts[ADDRESSES]; i++) {
        cuMemFree_v2(world.values[ADDRESSES][i]);
        cuIpcCloseMemHandle(world.values[ADDRESSES][i]);
    }
}

static void mend_pool(CUmemoryPool pool) {
    uint64_t none = 0;
    int one = 1;
    cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &none);
    cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES, &one);
    cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, &one);
    cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES, &one);
    for (int device = 0; device < DEVICES; device++) {
        CUmemAccessDesc access = {.location = {CU_MEM_LOCATION_TYPE_DEVICE, device}};
        cuMemPoolSetAccess(pool, &access, 1); /* its own device's access stays */
    }
    CUmemAccessDesc host = {.location = {CU_MEM_LOCATION_TYPE_HOST, 0}};
    cuMemPoolSetAccess(pool, &host, 1); /* managed pools keep what they were told of the CPU, too */
    cuMemPoolTrimTo(pool, 0);
}

static void end_pools(void) {
    static const CUmemLocation places[] = {{CU_MEM_LOCATION_TYPE_DEVICE, 0},
                                           {CU_MEM_LOCATION_TYPE_DEVICE, 1},
                                           {CU_MEM_LOCATION_TYPE_HOST, 0},
                                           {CU_MEM_LOCATION_TYPE_HOST_NUMA, 0},
                                           {CU_MEM_LOCATION_TYPE_NONE, 0}};
    for (unsigned i = 0; i < world.counts[POOLS]; i++)
        cuMemPoolDestroy((CUmemoryPool)(uintptr_t)world.values[POOLS][i]);
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        for (int managed = 0; managed < 2; managed++) {
            CUmemAllocationType type =
                managed ? CU_MEM_ALLOCATION_TYPE_MANAGED : CU_MEM_ALLOCATION_TYPE_PINNED;
            CUmemLocation place = places[i];
            CUmemoryPool pool;
            if (cuMemGetDefaultMemPool(&pool, &place, type) != CUDA_SUCCESS)
                continue;
            cuMemSetMemPool(&place, type, pool);
            mend_pool(pool);
        }
    }
    for (CUdevice device = 0; device < DEVICES; device++)
        cuDeviceGraphMemTrim(device);
}

static void close_descriptors(void) {
    for (unsigned i = 0; i < world.counts[DESCRIPTORS]; i++) {
        int fd = (int)world.values[DESCRIPTORS][i];
        bool ours = false;
        for (int j = 0; j < 5; j++)
            ours = ours || fd == foreign[j];
        if (!ours)
            close(fd);
    }
}

static void check_state(void) {
    char *now = soft->state_dump();
    require(now, "no state dump");
    if (state_at_start && strcmp(now, state_at_start) != 0) {
        char *leaks = soft->leak_report();
        fprintf(stderr,
                "api: softgpu's state is not as at the start.\n-- at the start:\n%s"
                "-- now:\n%s-- leaks:\n%s",
                state_at_start, now, leaks);
        abort();
    }
    unsigned descriptors = count_descriptors(0);
    if (state_at_start && descriptors != descriptors_at_start) {
        count_descriptors(1);
        fprintf(stderr, "api: %u descriptors are open, %u were at the start\n", descriptors,
                descriptors_at_start);
        abort();
    }
    soft->free_text(now);
}

static void clean_up(void) {
    CUcontext context;
    atomic_store(&drain, true);
    soft->fault_disarm();
    soft->schedule_set(SOFTGPU_SCHEDULE_EAGER, 0);
    pop_all();
    end_objects();
    end_contexts();
    mend_devices();
    require(cuDevicePrimaryCtxRetain(&context, 0) == CUDA_SUCCESS, "no context at the end");
    cuCtxPushCurrent_v2(context);
    forget_objects();
    free_memory();
    end_pools();
    pop_all();
    cuDevicePrimaryCtxRelease_v2(0);
    close_descriptors();
    atomic_store(&drain, false);
}

static void once(void) {
    begin();
    /* Twice: what the second round makes, every later one makes and gives back. */
    for (int i = 0; i < 2; i++) {
        warm_up();
        clean_up();
    }
    state_at_start = soft->state_dump();
    descriptors_at_start = count_descriptors(0);
}

void world_start(void) {
    static bool begun;
    if (!begun)
        once();
    begun = true;
    struct input input = world.input;
    memset(&world, 0, sizeof world);
    world.input = input;
    world.ipc_memory = offer.memory;
    world.ipc_event = offer.event;
    world.pointer = offer.pointer;
    memset(arena, 0x11, ARENA);
    for (unsigned i = 0; i < FLAGS; i++)
        __atomic_store_n(&gates[i], 0, __ATOMIC_RELEASE);
    for (unsigned i = 0; i < SEMAPHORES; i++)
        __atomic_store_n(&semaphores[i]->value, 0, __ATOMIC_RELEASE);
    for (int i = 0; i < 5; i++)
        remember(DESCRIPTORS, (uint64_t)foreign[i]);
}

void world_end(void) {
    clean_up();
    check_state();
}
