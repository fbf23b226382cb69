/* Faults, counts and violations, for the tests. */
#include "icd.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORTED __attribute__((visibility("default")))

static pthread_mutex_t shared = PTHREAD_MUTEX_INITIALIZER;
/* Its own, so that a violation can be noted with the other held. */
static pthread_mutex_t noting = PTHREAD_MUTEX_INITIALIZER;
static char first_violation[256];

struct vulkan_icd_live icd_live;
uint64_t icd_allocated;

static const char *const names[] = {
#define ICD_FN(name) #name,
#include "functions.def"
};
#define NAMES (sizeof names / sizeof names[0])
static unsigned calls[NAMES], calls_that_can_fail;

static struct {
    char function[64]; /* "*": any that can fail */
    unsigned first, count, seen;
    VkResult result;
} fault;

void icd_lock(void) {
    pthread_mutex_lock(&shared);
}

void icd_unlock(void) {
    pthread_mutex_unlock(&shared);
}

void violation(const char *format, ...) {
    va_list args;
    va_start(args, format);
    pthread_mutex_lock(&noting);
    if (!first_violation[0])
        vsnprintf(first_violation, sizeof first_violation, format, args);
    pthread_mutex_unlock(&noting);
    va_end(args);
    const char *then = getenv("VULKAN_ICD_VIOLATION");
    if (then && strcmp(then, "abort") == 0) {
        fprintf(stderr, "vulkan_icd: %s\n", first_violation);
        abort();
    }
}

static void count_locked(const char *function) {
    for (size_t i = 0; i < NAMES; i++)
        if (strcmp(names[i], function) == 0)
            calls[i]++;
}

/* `function` is the implementation's own name. */
static const char *plain(const char *function) {
    return strncmp(function, "icd_", 4) == 0 ? function + 4 : function;
}

void count_call(const char *function) {
    icd_lock();
    count_locked(plain(function));
    icd_unlock();
}

VkResult fault_of(const char *function) {
    function = plain(function);
    icd_lock();
    count_locked(function);
    calls_that_can_fail++;
    bool meant = strcmp(fault.function, "*") == 0 || strcmp(fault.function, function) == 0;
    fault.seen += meant;
    bool fails = meant && fault.seen >= fault.first && fault.seen - fault.first < fault.count;
    VkResult result = fails ? fault.result : VK_SUCCESS;
    icd_unlock();
    return result;
}

static void refuse(const char *function, unsigned first, unsigned count, int result) {
    icd_lock();
    snprintf(fault.function, sizeof fault.function, "%s", function ? function : "*");
    fault.first = first;
    fault.count = count;
    fault.seen = 0;
    fault.result = (VkResult)result;
    icd_unlock();
}

/* Once for the process: an instance that is made later does not start the count again. */
void fault_from_environment(void) {
    static bool done;
    const char *text = getenv("VULKAN_ICD_FAULT");
    char function[64];
    unsigned first, count;
    int result;
    icd_lock();
    bool now = text && !done;
    done = true;
    icd_unlock();
    if (!now)
        return;
    if (sscanf(text, "%63[^:]:%u:%u:%d", function, &first, &count, &result) == 4)
        refuse(function, first, count, result);
    else
        violation("VULKAN_ICD_FAULT is not FUNCTION:FIRST:COUNT:RESULT");
}

static void reset(void) {
    icd_lock();
    memset(&fault, 0, sizeof fault);
    memset(calls, 0, sizeof calls);
    calls_that_can_fail = 0;
    icd_unlock();
    pthread_mutex_lock(&noting);
    first_violation[0] = 0;
    pthread_mutex_unlock(&noting);
}

static unsigned count_of(const char *function) {
    unsigned found = function ? 0 : calls_that_can_fail;
    icd_lock();
    for (size_t i = 0; function && i < NAMES; i++)
        if (strcmp(names[i], function) == 0)
            found = calls[i];
    icd_unlock();
    return found;
}

static struct vulkan_icd_live live(void) {
    icd_lock();
    struct vulkan_icd_live now = icd_live;
    icd_unlock();
    return now;
}

static const char *get_violation(void) {
    return first_violation[0] ? first_violation : NULL;
}

EXPORTED const struct vulkan_icd_control *vulkan_icd_control(void) {
    static const struct vulkan_icd_control control = {
        .reset = reset,
        .refuse = refuse,
        .calls = count_of,
        .live = live,
        .violation = get_violation,
    };
    return &control;
}
