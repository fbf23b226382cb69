/* The beginning and the end of what is not memory. */
#include "world.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

softgpu_semaphore *semaphores[SEMAPHORES];
int semaphore_files[SEMAPHORES];

static void make_semaphore(unsigned which) {
    int fd = memfd_create("semaphore", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    softgpu_semaphore *made = MAP_FAILED;
    if (fd >= 0 && ftruncate(fd, SOFTGPU_SEMAPHORE_SIZE) == 0 &&
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
        made = mmap(NULL, SOFTGPU_SEMAPHORE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (made == MAP_FAILED) {
        fprintf(stderr, "api: no semaphore\n");
        abort();
    }
    memcpy(made->magic, SOFTGPU_SEMAPHORE_MAGIC, sizeof SOFTGPU_SEMAPHORE_MAGIC);
    made->version = SOFTGPU_SEMAPHORE_VERSION;
    made->kind = which ? SOFTGPU_SEMAPHORE_TIMELINE : SOFTGPU_SEMAPHORE_BINARY;
    semaphores[which] = made;
    semaphore_files[which] = fd;
}

void start_objects(void) {
    for (unsigned i = 0; i < SEMAPHORES; i++)
        make_semaphore(i);
}

#define EACH(kind, type, function)                                                                 \
    for (unsigned i = 0; i < world.counts[kind]; i++)                                              \
    function((type)(uintptr_t)world.values[kind][i])

/* Captures end with their streams, and the mode of this thread is no capture's. */
void end_objects(void) {
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
    cuThreadExchangeStreamCaptureMode(&mode);
    for (unsigned i = 0; i < world.counts[STREAMS]; i++) {
        CUgraph made = NULL;
        if (cuStreamEndCapture((CUstream)(uintptr_t)world.values[STREAMS][i], &made) ==
            CUDA_SUCCESS)
            cuGraphDestroy(made);
    }
    EACH(GREEN_CONTEXTS, CUgreenCtx, cuGreenCtxDestroy);
}

void forget_objects(void) {
    EACH(EXECS, CUgraphExec, cuGraphExecDestroy);
    EACH(GRAPHS, CUgraph, cuGraphDestroy);
    for (unsigned i = 0; i < world.counts[USER_OBJECTS]; i++)
        while (cuUserObjectRelease((CUuserObject)(uintptr_t)world.values[USER_OBJECTS][i], 1) ==
               CUDA_SUCCESS)
            continue;
    EACH(LINKS, CUlinkState, cuLinkDestroy);
    EACH(MODULES, CUmodule, cuModuleUnload);
    EACH(LIBRARIES, CUlibrary, cuLibraryUnload);
    for (unsigned i = 0; i < world.counts[TEXTURES]; i++)
        cuTexObjectDestroy(world.values[TEXTURES][i]);
    for (unsigned i = 0; i < world.counts[SURFACES]; i++)
        cuSurfObjectDestroy(world.values[SURFACES][i]);
    EACH(TEXTURE_REFERENCES, CUtexref, cuTexRefDestroy);
    EACH(MIPMAPS, CUmipmappedArray, cuMipmappedArrayDestroy);
    EACH(ARRAYS, CUarray, cuArrayDestroy);
    EACH(EXTERNAL_MEMORIES, CUexternalMemory, cuDestroyExternalMemory);
    EACH(EXTERNAL_SEMAPHORES, CUexternalSemaphore, cuDestroyExternalSemaphore);
    EACH(LOG_CALLBACKS, CUlogsCallbackHandle, cuLogsUnregisterCallback);
    for (CUdevice device = 0; device < DEVICES; device++)
        for (unsigned i = 0; i < world.counts[NOTIFICATIONS]; i++)
            cuDeviceUnregisterAsyncNotification(
                device, (CUasyncCallbackHandle)(uintptr_t)world.values[NOTIFICATIONS][i]);
}
