#include "memory/host/pinning.h"

#include "base/host_memory.h"

#include <inttypes.h>
#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ended = PTHREAD_COND_INITIALIZER;
static uint64_t under_way; /* bytes that are being pinned; under lock */

static gpumem_status refuse(size_t bytes, const struct gm_host_memory *memory) {
    uint64_t groups = gm_host_memory_groups_give(memory);
    if (groups < memory->available)
        return gm_fail(GPUMEM_ERROR_OUT_OF_HOST_MEMORY,
                       "cannot pin %zu bytes of host memory: this process's control group can give "
                       "%" PRIu64 " of its limit of %" PRIu64,
                       bytes, groups, memory->groups_level);
    return gm_fail(GPUMEM_ERROR_OUT_OF_HOST_MEMORY,
                   "cannot pin %zu bytes of host memory: the system has %" PRIu64 " available",
                   bytes, memory->available);
}

static gpumem_status take(size_t bytes) {
    for (;;) {
        struct gm_host_memory memory;
        gm_host_memory_read(&memory);
        uint64_t left = gm_host_memory_left(&memory);
        if (bytes <= left && under_way <= left - bytes) {
            under_way += bytes;
            return GPUMEM_OK;
        }
        if (bytes > left || under_way == 0)
            return refuse(bytes, &memory);
        pthread_cond_wait(&ended, &lock);
    }
}

gpumem_status gm_pinning_begin(size_t bytes) {
    int before;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    pthread_mutex_lock(&lock);
    gpumem_status status = take(bytes);
    pthread_mutex_unlock(&lock);
    pthread_setcancelstate(before, &before);
    return status;
}

void gm_pinning_end(size_t bytes) {
    pthread_mutex_lock(&lock);
    under_way -= bytes;
    pthread_cond_broadcast(&ended);
    pthread_mutex_unlock(&lock);
}
