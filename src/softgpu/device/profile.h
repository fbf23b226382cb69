/* A profile: what an .ini file says about a kind of device. */
#ifndef SG_DEVICE_PROFILE_H
#define SG_DEVICE_PROFILE_H

#include "softgpu/core/uuid.h"
#include "softgpu/device/device.h"

#include <stddef.h>

struct sg_pci {
    unsigned domain, bus, device, function;
};

/* What [links A B] says about two devices, where it differs from [links]. */
struct sg_pair_links {
    struct sg_links links;
    bool has_peer_access, has_performance_rank, has_native_atomics, has_partial_atomics,
        has_array_access;
};

struct sg_profile {
    char name[256];
    uint64_t memory;       /* bytes */
    struct sg_uuids uuids; /* of the first devices */
    int api_version;       /* what the driver reports; 0: what functions.def describes */
    bool has_pci;
    struct sg_pci pci; /* of the first device; the next ones have the next bus numbers */
    int attributes[SG_ATTRIBUTE_LIMIT];
    bool has_attribute[SG_ATTRIBUTE_LIMIT];
    struct sg_links links;
    struct sg_pair_links pairs[SG_MAX_DEVICES][SG_MAX_DEVICES]; /* the smaller number first */
    bool multicast, fabric;
    bool no_uuid, no_pool_descriptors; /* refused, whatever attributes say */
    struct sg_kernels kernels;
    struct sg_context_defaults context;
};

/*
 * Reads a profile from text. On error returns false with the reason in `message` ("<where>:<line>:
 * what is wrong"); *profile is then undefined. `where` names the text in messages.
 */
bool sg_profile_parse(struct sg_profile *profile, const char *where, const char *text,
                      char *message, size_t message_size);

/*
 * Finds and reads a profile. `choice` is a path if it contains a slash, else a name: "h200" is
 * compiled in, other names are files <name>.ini in the profile folders. On error returns false with
 * `message`.
 */
bool sg_profile_load(struct sg_profile *profile, const char *choice, char *message,
                     size_t message_size);

/* The folder of profiles that have names: PATH_MAX bytes are written. False if there is none. */
bool sg_profile_folder(char *folder);
/* "NAME CAPABILITY\n" for each profile that has a name, sorted by name, from malloc; NULL when out
 * of memory. A file that is no profile is left out. */
char *sg_profile_list(void);

/* The text of profiles/h200.ini, compiled in, so that the libraries alone are enough. */
const char *sg_profile_builtin(void);

/* What the profile says about the link between two devices of the machine. */
struct sg_links sg_profile_links(const struct sg_profile *profile, int a, int b);

/* "0000:0a:00.0", with function and domain optional. False if it is not a PCI address. */
bool sg_pci_parse(const char *text, struct sg_pci *pci);

/* "MULTIPROCESSOR_COUNT", or NULL for a number without a name. */
const char *sg_attribute_name(int attribute);
/* The number, or -1. */
int sg_attribute_find(const char *name);

/* Lowers attributes that claim what softgpu does not implement to what it does. */
void sg_claims_apply(int attributes[SG_ATTRIBUTE_LIMIT]);
/* Why an attribute may differ from the profile's, or NULL if it may not. */
const char *sg_claim_reason(int attribute);

/* ---- Parts of sg_devices_init, separate for tests -------------------------------------------- */

/* Half of what this machine has, or of what its control groups may use, in bytes: the same for all
 * processes of a group, however much is left. */
uint64_t sg_machine_half(void);
/* How much of `size` each of `count` devices may hand out: all of it, or its share of three
 * quarters of what the control groups have left now. At least SG_PAGE. */
uint64_t sg_machine_allows(uint64_t size, int count);
/* What can be pinned in addition to `devices` bytes of all devices: what the machine has or, under
 * control group limits, what the devices leave of the remainder, but at least a quarter of that. */
uint64_t sg_machine_pinned(uint64_t devices);
/* What the control groups can give now for a request of `wanted` bytes. UINT64_MAX if so little
 * has been requested since they were last read that it must be available. With the big lock. */
uint64_t sg_machine_left(uint64_t wanted);

/* The size of each of `count` devices: `wanted` when it is not 0, else the smaller of the profile's
 * and an equal share of `machine`. At least SG_PAGE. */
uint64_t sg_device_limit(uint64_t profile, uint64_t wanted, uint64_t machine, int count);

/*
 * Applies CUDA_VISIBLE_DEVICES (NULL if unset) to `count` devices with these UUIDs: stores the
 * visible numbers in their new order in `order` and returns how many there are. The first entry
 * that names no device, or one already named, ends the list.
 */
int sg_visible_devices(const char *list, int count, const CUuuid *uuids, int *order);

#endif
