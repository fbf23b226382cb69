#include "memory/object/shortage.h"

#include "base/error.h"
#include "base/host_memory.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char for_device[] =
    "free or shrink buffers, or let a fallback resource take over (docs/running-out.md)";
static const char for_host[] = "use less pinned memory, or raise the limit of the control group";

static void say_device(gpumem_device *device, char *text, size_t size) {
    uint64_t free_bytes = 0, total = 0;
    if (gpumem_device_get_memory(device, &free_bytes, &total) == GPUMEM_OK)
        snprintf(text, size, "device %d has %" PRIu64 " of %" PRIu64 " bytes free; %s",
                 device->ordinal, free_bytes, total, for_device);
    else
        snprintf(text, size, "what is free on device %d is unknown; %s", device->ordinal,
                 for_device);
}

static void say_host(char *text, size_t size) {
    struct gm_host_memory memory;
    gm_host_memory_read(&memory);
    snprintf(text, size, "the host can give %" PRIu64 " bytes; %s", gm_host_memory_left(&memory),
             for_host);
}

/* Addresses that are short are not memory that is short: the message has its own advice. */
static int is_of_addresses(const struct gm_error_record *record) {
    return strcmp(record->call, "cuMemAddressReserve") == 0;
}

static int is_complete(const struct gm_error_record *record) {
    return strstr(record->message, for_device) || strstr(record->message, for_host) ||
           (is_of_addresses(record) && strstr(record->message, " bytes from the "));
}

static int can_tell(const struct gm_error_record *record, gpumem_status status) {
    return record->error.status == status && !is_complete(record) &&
           (status == GPUMEM_ERROR_OUT_OF_MEMORY ||
            (status == GPUMEM_ERROR_OUT_OF_HOST_MEMORY && record->error.driver_code));
}

gpumem_status gm_tell_shortage(gpumem_device *device, const gpumem_resource *resource,
                               uint64_t bytes, gpumem_status status) {
    struct gm_error_record record, whole;
    char what[160] = "";
    gm_error_save(&record);
    if (!can_tell(&record, status))
        return status;
    if (status == GPUMEM_ERROR_OUT_OF_HOST_MEMORY)
        say_host(what, sizeof what);
    else if (!is_of_addresses(&record))
        say_device(device, what, sizeof what);
    whole = record;
    snprintf(whole.message, sizeof whole.message, "%" PRIu64 " bytes from the %s%s: %.250s%s%s",
             bytes, resource ? resource->kind : "device", resource ? " resource" : "",
             record.message, *what ? "; " : "", what);
    gm_error_restore(&whole);
    return status;
}
