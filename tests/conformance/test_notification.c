/* Notifications of a device whose memory does not suffice. */
#include "harness.h"

#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t told = PTHREAD_COND_INITIALIZER;

struct heard {
    unsigned calls;
    unsigned long long missing;
    CUasyncCallbackHandle handle;
    CUresult registers, driver;
    pthread_t thread;
};

static void CUDAAPI hear(CUasyncNotificationInfo *info, void *user, CUasyncCallbackHandle handle) {
    struct heard *heard = user;
    CUasyncCallbackHandle another;
    int count;
    pthread_mutex_lock(&lock);
    if (info->type == CU_ASYNC_NOTIFICATION_TYPE_OVER_BUDGET)
        heard->missing = info->info.overBudget.bytesOverBudget;
    heard->handle = handle;
    heard->thread = pthread_self();
    heard->registers = cu.cuDeviceRegisterAsyncNotification(dev, hear, user, &another);
    heard->driver = cu.cuDeviceGetCount(&count);
    heard->calls++;
    pthread_cond_broadcast(&told);
    pthread_mutex_unlock(&lock);
}

static void wait_for(const struct heard *heard, unsigned calls) {
    pthread_mutex_lock(&lock);
    while (heard->calls < calls)
        pthread_cond_wait(&told, &lock);
    pthread_mutex_unlock(&lock);
}

TEST(a_callback_is_registered_and_unregistered) {
    struct heard heard;
    CUasyncCallbackHandle one = NULL, two = NULL;
    OK_CU(cu.cuDeviceRegisterAsyncNotification(dev, hear, &heard, &one));
    OK_CU(cu.cuDeviceRegisterAsyncNotification(dev, hear, &heard, &two));
    assert_non_null(one);
    assert_non_null(two);
    assert_ptr_not_equal(one, two);
    OK_CU(cu.cuDeviceUnregisterAsyncNotification(dev, one));
    OK_CU(cu.cuDeviceUnregisterAsyncNotification(dev, two));
}

TEST(a_callback_reports_refused_allocations) {
    NEEDS_SOFTGPU("tells of memory that it refuses");
    struct heard heard = {.driver = CUDA_ERROR_UNKNOWN};
    CUasyncCallbackHandle handle = NULL;
    OK_CU(cu.cuDeviceRegisterAsyncNotification(dev, hear, &heard, &handle));
    assert_non_null(handle);
    size_t left, total;
    OK_CU(cu.cuMemGetInfo_v2(&left, &total));
    const size_t page = (size_t)2 << 20;
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .location = device_location(dev)};
    CUmemGenericAllocationHandle memory;
    left &= ~(page - 1);
    FAILS_CU(OUT_OF_MEMORY, cu.cuMemCreate(&memory, left + 3 * page, &prop, 0));
    wait_for(&heard, 1);
    uint64_t used, limit;
    assert_int_equal(soft->memory_info(0, &used, &limit), 0);
    assert_int_equal(heard.missing, left + 3 * page - (limit - used));
    assert_ptr_equal(heard.handle, handle);
    MEMBERS(heard, (registers, CUDA_ERROR_NOT_PERMITTED), (driver, CUDA_SUCCESS));
    assert_false(pthread_equal(heard.thread, pthread_self()));
    OK_CU(cu.cuDeviceUnregisterAsyncNotification(dev, handle));
    FAILS_CU(OUT_OF_MEMORY, cu.cuMemCreate(&memory, left + 3 * page, &prop, 0));
    FAILS_CU(INVALID_VALUE, cu.cuDeviceUnregisterAsyncNotification(dev, handle));
    assert_int_equal(heard.calls, 1);
}

TEST_WHERE(a_callback_is_shown_as_a_leak, NEEDS_SOFTGPU("reports leaks")) {
    CUasyncCallbackHandle handle;
    OK_CU(cu.cuDeviceRegisterAsyncNotification(dev, hear, NULL, &handle));
    char *leaks = soft->leak_report();
    assert_non_null(strstr(leaks, "notification callback"));
    soft->free_text(leaks);
    OK_CU(cu.cuDeviceUnregisterAsyncNotification(dev, handle));
}
