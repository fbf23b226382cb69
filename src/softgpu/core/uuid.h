/* Devices' UUIDs: those that softgpu makes up, and those that are set. */
#ifndef SG_CORE_UUID_H
#define SG_CORE_UUID_H

#include "softgpu/core/state.h"

#include <stddef.h>

/* UUIDs of the first devices of the machine; the others have made-up ones. */
struct sg_uuids {
    CUuuid of[SG_MAX_DEVICES];
    int count;
};

/* The accepted form of a list of UUIDs, for messages. */
#define SG_UUID_ACCEPTED                                                                           \
    "UUIDs of 32 hexadecimal digits, as 736f6674-6770-8075-8000-000000000000 or without the "      \
    "dashes, GPU- before it or not, and commas between them"

/*
 * Reads a list. False with the reason in `why` ("the second UUID is all zeros"): then *uuids is
 * undefined. A zero UUID is refused because it denotes host memory in shared memory, and a
 * duplicate because memory would be opened on the wrong device.
 */
bool sg_uuids_parse(const char *text, struct sg_uuids *uuids, char *why, size_t why_size);

/* GPU-736f6674-6770-8075-8000-00000000000n: "softgpu" and the device's number, in the form that
 * RFC 9562 leaves to private use (version 8). The same in every process, as a GPU's is. */
CUuuid sg_uuid_made_up(int number);

/* The UUIDs of `count` devices, those that were set first. False with the reason if one of these
 * equals the made-up UUID of another of the devices. */
bool sg_uuids_complete(const struct sg_uuids *set, int count, CUuuid *uuids, char *why,
                       size_t why_size);

#endif
