/*
 * Text that users write for softgpu: profiles, PCI addresses, the environment. None may crash a
 * parser, and what is taken keeps the promises of the headers.
 */
#include "softgpu/device/profile.h"
#include "softgpu/core/config.h"
#include "softgpu/entry/fault.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool true_here) {
    if (!true_here)
        abort();
}

static void read_profile(const char *text) {
    struct sg_profile profile;
    char message[300];
    memset(message, 'x', sizeof message);
    if (sg_profile_parse(&profile, "a profile", text, message, sizeof message)) {
        require(profile.name[0] && memchr(profile.name, 0, sizeof profile.name));
        require(profile.memory >= SG_PAGE && profile.memory <= INT64_MAX);
        require(profile.has_pci && profile.pci.bus <= 0xff - SG_MAX_DEVICES);
        require(profile.links.performance_rank >= 0);
        sg_claims_apply(profile.attributes);
    } else {
        require(memchr(message, 0, sizeof message) && strstr(message, "a profile"));
    }
}

static void read_environment(const char *text) {
    static const char *const names[] = {
        "SOFTGPU_LOG",     "SOFTGPU_DEVICES",        "SOFTGPU_MEMORY",  "SOFTGPU_ADDRESS_SPACE",
        "SOFTGPU_WORKERS", "SOFTGPU_SCHEDULE",       "SOFTGPU_SEED",    "SOFTGPU_LEAKS",
        "SOFTGPU_POISON",  "SOFTGPU_ABORT",          "SOFTGPU_PROFILE", "SOFTGPU_FAULT",
        "SOFTGPU_UUID",    "SOFTGPU_KERNEL_WORKERS", "SOFTGPU_CHECK",   "SOFTGPU_CHECK_FORMAT"};
    const size_t count = sizeof names / sizeof names[0];
    char *copy = strdup(text), *rest = copy;
    /* A line a variable. */
    for (size_t i = 0; i < count; i++) {
        char *value = rest ? strsep(&rest, "\n") : NULL;
        if (value)
            setenv(names[i], value, 1);
        else
            unsetenv(names[i]);
    }
    struct sg_config config;
    struct sg_complaints complaints;
    sg_config_examine(&config, &complaints);
    require(complaints.count <= SG_COMPLAINT_LIMIT);
    require(config.devices >= 0 && config.devices <= SG_MAX_DEVICES);
    require(config.uuids.count >= 0 && config.uuids.count <= config.devices);
    require(config.workers >= 1 && config.workers <= 64);
    require(config.memory <= INT64_MAX && config.address_space <= INT64_MAX);
    require(config.schedule <= SG_SCHEDULE_RANDOM);
    require(config.log_level >= SG_LOG_OFF && config.log_level <= SG_LOG_DEBUG);
    require(config.profile && config.profile[0]);
    char why[512];
    bool armed = sg_fault_parse(text, why, sizeof why);
    require(armed == sg_fault_understood(text, why, sizeof why));
    sg_fault_disarm();
    for (size_t i = 0; i < count; i++)
        unsetenv(names[i]);
    free(copy);
}

static void read_visible(const char *text) {
    CUuuid uuids[4] = {0};
    int order[4];
    for (int i = 0; i < 4; i++)
        uuids[i].bytes[15] = (char)i;
    int visible = sg_visible_devices(text, 4, uuids, order);
    require(visible >= 0 && visible <= 4);
    for (int i = 0; i < visible; i++)
        require(order[i] >= 0 && order[i] < 4);
}

static void read_little(const char *text) {
    struct sg_pci pci;
    uint64_t bytes;
    if (sg_pci_parse(text, &pci))
        require(pci.domain <= 0xffff && pci.bus <= 0xff && pci.device <= 0xff &&
                pci.function <= 0xf);
    if (sg_config_size(text, &bytes))
        require(bytes <= INT64_MAX);
    int attribute = sg_attribute_find(text);
    require(attribute >= -1 && attribute < SG_ATTRIBUTE_LIMIT);
    read_visible(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static bool quiet;
    if (!quiet) {
        setenv("SOFTGPU_LOG", "off", 1);
        (void)sg_config();
        quiet = true;
    }
    if (size == 0)
        return 0;
    char *text = malloc(size);
    memcpy(text, data + 1, size - 1);
    text[size - 1] = '\0';
    switch (data[0] % 3) {
    case 0:
        read_profile(text);
        break;
    case 1:
        read_environment(text);
        break;
    default:
        read_little(text);
        break;
    }
    free(text);
    return 0;
}
