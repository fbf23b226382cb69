#include "softgpu/device/device.h"

#include "softgpu/core/config.h"
#include "softgpu/core/verdict.h"
#include "softgpu/device/profile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct sg_device devices[SG_MAX_DEVICES];
static int device_count;
static uint64_t pinned_limit;

int sg_device_count(void) {
    return device_count;
}

uint64_t sg_devices_pinned_limit(void) {
    return pinned_limit;
}

struct sg_device *sg_device(int ordinal) {
    return ordinal >= 0 && ordinal < device_count ? &devices[ordinal] : NULL;
}

static struct sg_device make_device(const struct sg_profile *profile, int number,
                                    const CUuuid *uuid, uint64_t total, uint64_t limit) {
    struct sg_device device = {
        .uuid = *uuid,
        .total_memory = total,
        .limit = limit / SG_PAGE * SG_PAGE, /* whole pages: what is free can be allocated */
        .multicast = profile->multicast,
        .fabric = profile->fabric,
        .no_uuid = profile->no_uuid,
        .no_pool_descriptors = profile->no_pool_descriptors,
        .context = profile->context,
        .kernels = profile->kernels,
    };
    struct sg_pci pci = profile->pci;
    pci.bus += (unsigned)number;
    memcpy(device.name, profile->name, sizeof device.name);
    snprintf(device.pci, sizeof device.pci, "%04x:%02x:%02x.%x", pci.domain & 0xffff,
             pci.bus & 0xff, pci.device & 0x1f, pci.function & 7);
    memcpy(device.attributes, profile->attributes, sizeof device.attributes);
    device.attributes[CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID] = (int)pci.domain;
    device.attributes[CU_DEVICE_ATTRIBUTE_PCI_BUS_ID] = (int)pci.bus;
    device.attributes[CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID] = (int)pci.device;
    sg_claims_apply(device.attributes);
    for (int i = 0; i < SG_ATTRIBUTE_LIMIT; i++)
        device.has_attribute[i] =
            i < CU_DEVICE_ATTRIBUTE_MAX ? sg_attribute_name(i) != NULL : profile->has_attribute[i];
    return device;
}

bool sg_device_reaches(int device, int owner) {
    return device == owner || devices[device].links[owner].peer_access;
}

/* Features that need several devices: one device alone has no multicast objects. */
static void claim_machine(int count) {
    for (int i = 0; i < count; i++) {
        devices[i].multicast = devices[i].multicast && count > 1;
        devices[i].attributes[CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED] = devices[i].multicast;
    }
}

static int version = SG_DRIVER_VERSION;

/* cuInit reports a profile that cannot be read. */
static void read_version(void) {
    static struct sg_profile profile;
    const char *choice = sg_config()->profile;
    char message[1024];
    if (sg_config()->driver_version) {
        version = sg_config()->driver_version;
        return;
    }
    if (strcmp(choice, "h200") != 0 && sg_profile_load(&profile, choice, message, sizeof message) &&
        profile.api_version)
        version = profile.api_version;
}

int sg_driver_version(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, read_version);
    return version;
}

CUresult sg_devices_init(void) {
    static struct sg_profile profile;
    const struct sg_config *config = sg_config();
    char message[1024];
    if (!sg_profile_load(&profile, config->profile ? config->profile : "h200", message,
                         sizeof message)) {
        sg_verdict_wrong(message);
        return CUDA_ERROR_SYSTEM_NOT_READY;
    }

    int count = config->devices < SG_MAX_DEVICES ? config->devices : SG_MAX_DEVICES;
    CUuuid uuids[SG_MAX_DEVICES];
    if (!sg_uuids_complete(config->uuids.count ? &config->uuids : &profile.uuids, count, uuids,
                           message, sizeof message)) {
        sg_verdict_wrong(message);
        return CUDA_ERROR_SYSTEM_NOT_READY;
    }
    /* CUDA_DEVICE_ORDER needs no work: devices are alike, so fastest first leaves them in the order
     * of their PCI addresses. */
    int order[SG_MAX_DEVICES];
    if (config->uuids.count) /* UUIDs that were set must be visible */
        profile.no_uuid = false;
    int visible = sg_visible_devices(secure_getenv("CUDA_VISIBLE_DEVICES"), count, uuids, order);
    if (visible == 0)
        return CUDA_ERROR_NO_DEVICE;

    uint64_t total = sg_device_limit(profile.memory, config->memory, sg_machine_half(), count);
    /* A size that was requested is given, as far as it goes. */
    uint64_t limit = config->memory ? total : sg_machine_allows(total, visible);
    if (limit < total)
        sg_log(SG_LOG_WARNING, "of the %llu bytes of a device, the control group has room for %llu",
               (unsigned long long)total, (unsigned long long)limit);
    for (int i = 0; i < visible; i++) {
        devices[i] = make_device(&profile, order[i], &uuids[order[i]], total, limit);
        devices[i].ordinal = i;
    }
    for (int i = 0; i < visible; i++)
        for (int j = 0; j < visible; j++)
            devices[i].links[j] = sg_profile_links(&profile, order[i], order[j]);
    pinned_limit = sg_machine_pinned(limit * (uint64_t)visible);
    claim_machine(visible);
    device_count = visible;
    return CUDA_SUCCESS;
}
