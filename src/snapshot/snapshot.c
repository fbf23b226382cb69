/* The snapshot of a device or a library: its parts, and what each of them reports. */
#include "snapshot/snapshot.h"

#include "base/cancel.h"
#include "base/options.h"
#include "memory/core/current_context.h"
#include "memory/core/driver_error.h"
#include "memory/object/resource.h"

#include <errno.h>
#include <gpumem/snapshot.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SCHEMA_VERSION 1
#define PIECE          ((size_t)64 << 10)

/* ---- A device -------------------------------------------------------------------------------- */

static void write_identity(struct gm_json *json, gpumem_device *device) {
    gpumem_device_info info = {.size = sizeof info};
    gm_json_integer(json, "ordinal", device->ordinal);
    if (gpumem_device_get_info(device->library, device->ordinal, &info) != GPUMEM_OK) {
        gm_json_null(json, "name"); /* a device that has failed may refuse even this */
        return;
    }
    char uuid[33];
    for (unsigned i = 0; i < sizeof info.uuid; i++)
        snprintf(uuid + 2 * i, 3, "%02x", info.uuid[i]);
    gm_json_string(json, "name", info.name);
    gm_json_string(json, "uuid", uuid);
    gm_json_string(json, "pci_bus_id", info.pci_bus_id[0] ? info.pci_bus_id : NULL);
    gm_json_number(json, "memory_bytes", info.memory_bytes);
    gm_json_number(json, "granularity", info.granularity_minimum);
}

static void write_memory(struct gm_json *json, gpumem_device *device) {
    uint64_t free_bytes = 0, total = 0;
    if (gpumem_device_get_memory(device, &free_bytes, &total) == GPUMEM_OK)
        gm_json_number(json, "free_bytes", free_bytes);
    else
        gm_json_null(json, "free_bytes");
}

static void write_statistics(struct gm_json *json, gpumem_device *device) {
    gpumem_stats stats = {.size = sizeof stats};
    if (gpumem_device_get_stats(device, &stats) == GPUMEM_OK)
        gm_snapshot_stats(json, "statistics", &stats);
}

struct part {
    struct gm_json *json;
    const gpumem_snapshot_options *options;
    const struct gm_inventory_copy *memory;
};

static void write_resource(gpumem_resource *resource, void *data) {
    const struct part *part = data;
    gm_snapshot_resource(part->json, resource, part->options, part->memory);
}

/* The device's own resources are created when first needed, and live as long as the device.
 */
static void write_hidden(gpumem_device *device, const struct part *part) {
    gpumem_resource *hidden[GM_HIDDEN_COUNT];
    pthread_mutex_lock(&device->lock);
    for (size_t i = 0; i < GM_HIDDEN_COUNT; i++)
        hidden[i] = device->hidden[i];
    pthread_mutex_unlock(&device->lock);
    for (size_t i = 0; i < GM_HIDDEN_COUNT; i++)
        if (hidden[i])
            gm_snapshot_resource(part->json, hidden[i], part->options, part->memory);
}

static void write_resources(struct gm_json *json, gpumem_device *device,
                            const gpumem_snapshot_options *options,
                            const struct gm_inventory_copy *memory) {
    struct part part = {json, options, memory};
    gm_json_open(json, "resources", '[');
    gm_resources_visit_all(device, write_resource, &part);
    write_hidden(device, &part);
    gm_json_close(json, ']');
}

static void write_device(struct gm_json *json, gpumem_device *device,
                         const gpumem_snapshot_options *options) {
    struct gm_inventory_copy memory;
    if (gm_inventory_copy(&device->inventory, &memory) != 0) {
        json->failed = 1;
        return;
    }
    gm_json_open(json, NULL, '{');
    write_identity(json, device);
    write_memory(json, device);
    write_statistics(json, device); /* this adds what threads count by themselves */
    write_resources(json, device, options, &memory);
    gm_snapshot_deferred(json, device);
    gm_snapshot_exports(json, device);
    gm_snapshot_virtual(json, device, &memory);
    gm_json_close(json, '}');
    gm_inventory_copy_free(&memory);
}

/* ---- The whole ------------------------------------------------------------------------------- */

static void write_time(struct gm_json *json) {
    struct timespec now;
    struct tm utc;
    char seconds[32] = "", text[64];
    clock_gettime(CLOCK_REALTIME, &now);
    if (gmtime_r(&now.tv_sec, &utc))
        (void)strftime(seconds, sizeof seconds, "%Y-%m-%dT%H:%M:%S", &utc);
    snprintf(text, sizeof text, "%s.%06uZ", seconds, (unsigned)(now.tv_nsec / 1000));
    gm_json_string(json, "time", text);
}

static void write_head(struct gm_json *json, gpumem_library *library) {
    gpumem_library_info info = {.size = sizeof info};
    gm_json_string(json, "schema", "gpumem.snapshot");
    gm_json_integer(json, "version", SCHEMA_VERSION);
    gm_json_string(json, "gpumem", GPUMEM_VERSION_STRING);
    write_time(json);
    gm_json_integer(json, "pid", getpid());
    gm_json_string(json, "program", program_invocation_short_name);
    if (gpumem_library_get_info(library, &info) != GPUMEM_OK)
        return;
    gm_json_open(json, "driver", '{');
    gm_json_string(json, "kind", info.driver_kind);
    gm_json_string(json, "path", info.driver_path);
    gm_json_integer(json, "version", info.driver_version);
    gm_json_bool(json, "softgpu", info.softgpu);
    gm_json_close(json, '}');
}

static char *make_text(gpumem_library *library, const gpumem_snapshot_options *options,
                       size_t *bytes) {
    struct gm_error_record saved; /* what a device refuses to report is not a failure of the call */
    struct gm_json json;
    gm_error_save(&saved);
    gm_json_begin(&json);
    gm_json_open(&json, NULL, '{');
    write_head(&json, library);
    gm_json_open(&json, "devices", '[');
    if (options->device) {
        write_device(&json, options->device, options);
    } else {
        pthread_mutex_lock(&library->lock);
        for (int i = 0; i < library->device_count; i++)
            if (library->devices[i])
                write_device(&json, library->devices[i], options);
        pthread_mutex_unlock(&library->lock);
    }
    gm_json_close(&json, ']');
    gm_json_close(&json, '}');
    gm_error_restore(&saved);
    return gm_json_end(&json, bytes);
}

static gpumem_status take(gpumem_library *library, const gpumem_snapshot_options *given,
                          char **text, size_t *bytes) {
    gpumem_snapshot_options options;
    gpumem_status status = GM_OPTIONS_READ(gpumem_snapshot_options, given, &options);
    if (status != GPUMEM_OK)
        return status;
    if (options.device) {
        GM_CHECK(options.device, "gpumem_snapshot: options.device");
        GM_REQUIRE(options.device->library == library,
                   "gpumem_snapshot: options.device belongs to another opened library");
    }
    char *made = make_text(library, &options, bytes);
    if (!made)
        return gm_fail(GPUMEM_ERROR_OUT_OF_HOST_MEMORY, "no memory for a snapshot");
    *text = made;
    return GPUMEM_OK;
}

static gpumem_status hand_over(char *text, size_t bytes, gpumem_write_fn write, void *user) {
    int refused = 0;
    for (size_t done = 0; done < bytes && !refused;) {
        size_t piece = bytes - done < PIECE ? bytes - done : PIECE;
        refused = write(user, text + done, piece);
        done += piece;
    }
    free(text);
    if (!refused)
        return GPUMEM_OK;
    return gm_fail_system(GPUMEM_ERROR_SYSTEM, refused, "write", "cannot write a snapshot");
}

gpumem_status gpumem_snapshot(gpumem_library *library, const gpumem_snapshot_options *options,
                              char **text) {
    GM_UNCANCELLED;
    size_t bytes = 0;
    GM_CHECK(library, "gpumem_snapshot");
    GM_REQUIRE(text, "gpumem_snapshot: text is NULL");
    return take(library, options, text, &bytes);
}

gpumem_status gpumem_snapshot_write(gpumem_library *library, const gpumem_snapshot_options *options,
                                    gpumem_write_fn write, void *user) {
    GM_UNCANCELLED;
    char *text = NULL;
    size_t bytes = 0;
    GM_CHECK(library, "gpumem_snapshot_write");
    GM_REQUIRE(write, "gpumem_snapshot_write: write is NULL");
    gpumem_status status = take(library, options, &text, &bytes);
    return status == GPUMEM_OK ? hand_over(text, bytes, write, user) : status;
}
