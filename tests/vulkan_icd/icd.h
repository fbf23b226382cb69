/* Inside the test driver. */
#ifndef TESTS_VULKAN_ICD_ICD_H
#define TESTS_VULKAN_ICD_ICD_H

#include "vulkan/placed.h"
#include "vulkan_icd.h"

#include <stdbool.h>
#include <stdint.h>
#include <vulkan/vk_icd.h>

#define MOST_DEVICES 8
#define HEAP_DEVICE  0
#define HEAP_HOST    1

struct settings {
    unsigned char uuids[MOST_DEVICES][VK_UUID_SIZE];
    uint32_t devices;
    bool coherent, non_coherent, placed, reserve;
    uint32_t allocations;
    uint64_t heap, budget, atom;
    char without[256];
};
void settings_read(struct settings *settings);
bool settings_lack(const struct settings *settings, const char *name);

/* Dispatchable objects begin with a word that is the loader's. */
struct physical {
    VK_LOADER_DATA loader;
    struct instance *instance;
    uint32_t number;
};
struct instance {
    VK_LOADER_DATA loader;
    struct settings settings;
    struct physical physical[MOST_DEVICES];
    uint32_t devices; /* logical ones that are alive */
};
struct queue {
    VK_LOADER_DATA loader;
};
struct device {
    VK_LOADER_DATA loader;
    struct instance *instance;
    const struct settings *settings;
    struct queue queue;
    bool placed;       /* asked for at its creation */
    uint32_t memories; /* that are alive */
};

/* One lock for all that is shared; maps and copies are made without it. */
void icd_lock(void);
void icd_unlock(void);

/* Whether this call is to fail, and with what: first in each function that answers a VkResult. */
#define ICD_FAULT()                                                                                \
    do {                                                                                           \
        VkResult fault_ = fault_of(__func__);                                                      \
        if (fault_ != VK_SUCCESS)                                                                  \
            return fault_;                                                                         \
    } while (0)
VkResult fault_of(const char *function);
void fault_from_environment(void);
/* For functions without a result. */
void count_call(const char *function);

/* Under the lock. */
extern struct vulkan_icd_live icd_live;
extern uint64_t icd_allocated; /* bytes, by all devices of the process; imports are not counted */
/* May be called with the lock held or not. */
void violation(const char *format, ...) __attribute__((format(printf, 1, 2)));

#define ICD_FN(name) extern __typeof__(*(PFN_##name)0) icd_##name;
#include "functions.def"

/* By name, NULL for what the settings leave out; `settings` may be NULL. */
PFN_vkVoidFunction icd_find(const struct settings *settings, const char *name);

#endif
