#include "cli.h"
#include "json.h"
#include "load.h"

#include <inttypes.h>
#include <stdio.h>

static double rate(uint64_t bytes, double seconds) {
    return seconds > 0 ? 1e-9 * (double)bytes / seconds : 0;
}

void load_print_text(const struct load_arguments *arguments, const struct load_outcome *outcome) {
    const gpumem_load_report *load = &outcome->load;
    char chunk[32], pinned[32];
    (void)arguments;
    printf("loaded    %" PRIu64 " bytes in %.4f s: %.2f GB/s\n", load->bytes, load->seconds,
           rate(load->bytes, load->seconds));
    printf("          %" PRIu64 " chunks of %s by %u readers, %" PRIu64
           " mappings, at most %s pinned (made ready in %.4f s)\n",
           load->chunks, cli_format_size(load->chunk_bytes, chunk), load->threads, load->mappings,
           cli_format_size(load->pinned_bytes, pinned), load->pinned_seconds);
    printf("checked   %016" PRIx64 " on the device and in the file, in %.4f s\n",
           outcome->device_checksum, outcome->check_seconds);
    if (outcome->shared)
        printf("shared    process %d imported %zu descriptors without a copy and checked them too, "
               "in %.4f s\n",
               (int)outcome->receiver, outcome->descriptors, outcome->share_seconds);
    printf("done      %.4f s end to end: %.2f GB/s\n", outcome->total_seconds,
           rate(load->bytes, outcome->total_seconds));
}

int load_print_json(const struct load_arguments *arguments, const struct load_outcome *outcome) {
    const gpumem_load_report *load = &outcome->load;
    char checksum[17];
    struct json json;
    json_begin(&json);
    json_open(&json, NULL, '{');
    json_string(&json, "driver_path", outcome->driver_path);
    json_bool(&json, "softgpu", outcome->softgpu);
    json_integer(&json, "driver_version", outcome->driver_version);
    json_integer(&json, "device", outcome->device.ordinal);
    json_string(&json, "device_name", outcome->device.name);
    json_string(&json, "file", arguments->path);
    json_bytes(&json, "file_bytes", arguments->path);
    json_unsigned(&json, "bytes", load->bytes);
    json_number(&json, "load_seconds", load->seconds);
    json_number(&json, "load_gb_per_s", rate(load->bytes, load->seconds));
    json_number(&json, "pinned_seconds", load->pinned_seconds);
    json_unsigned(&json, "chunks", load->chunks);
    json_unsigned(&json, "chunk_bytes", load->chunk_bytes);
    json_unsigned(&json, "readers", load->threads);
    json_unsigned(&json, "mappings", load->mappings);
    json_unsigned(&json, "peak_pinned_bytes", load->pinned_bytes);
    snprintf(checksum, sizeof checksum, "%016" PRIx64, outcome->device_checksum);
    json_string(&json, "device_checksum", checksum);
    snprintf(checksum, sizeof checksum, "%016" PRIx64, outcome->file_checksum);
    json_string(&json, "file_checksum", checksum);
    json_number(&json, "check_seconds", outcome->check_seconds);
    json_bool(&json, "shared", outcome->shared);
    if (outcome->shared) {
        json_unsigned(&json, "descriptors", outcome->descriptors);
        json_number(&json, "share_seconds", outcome->share_seconds);
    }
    json_number(&json, "total_seconds", outcome->total_seconds);
    json_number(&json, "total_gb_per_s", rate(load->bytes, outcome->total_seconds));
    json_close(&json, '}');
    return json_print(&json);
}
