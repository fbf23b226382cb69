#include "cli.h"
#include "json.h"
#include "load.h"
#include "terminal.h"

#include <inttypes.h>
#include <stdio.h>

/* Bytes per second; not finite, and so written as null, if no time passed. */
static double rate(uint64_t bytes, double seconds) {
    return (double)bytes / seconds;
}

static void print_shared(const struct load_outcome *outcome) {
    cli_line(stdout,
             "shared    process %d imported %zu %s without a copy and checked them too, in %.4f s",
             (int)outcome->receiver, outcome->descriptors,
             cli_plural(outcome->descriptors, "descriptor", "descriptors"), outcome->share_seconds);
}

void load_print_text(const struct load_outcome *outcome) {
    const gpumem_load_report *load = &outcome->load;
    char chunk[32], pinned[32], speed[40];
    cli_line(stdout, "loaded    %" PRIu64 " %s in %.4f s: %s", load->bytes,
             cli_plural(load->bytes, "byte", "bytes"), load->seconds,
             cli_format_rate(load->bytes, load->seconds, speed));
    cli_line(stdout,
             "          %" PRIu64 " %s of %s by %u %s, %" PRIu64
             " %s, at most %s pinned (made ready in %.4f s)",
             load->chunks, cli_plural(load->chunks, "chunk", "chunks"),
             cli_format_size(load->chunk_bytes, chunk), load->threads,
             cli_plural(load->threads, "reader", "readers"), load->mappings,
             cli_plural(load->mappings, "mapping", "mappings"),
             cli_format_size(load->pinned_bytes, pinned), load->pinned_seconds);
    cli_line(stdout, "checked   %016" PRIx64 " on the device and in the file, in %.4f s",
             outcome->device_checksum, outcome->check_seconds);
    if (outcome->shared)
        print_shared(outcome);
    cli_line(stdout, "done      %.4f s end to end: %s", outcome->total_seconds,
             cli_format_rate(load->bytes, outcome->total_seconds, speed));
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
    json_number(&json, "load_bytes_per_s", rate(load->bytes, load->seconds));
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
    json_number(&json, "total_bytes_per_s", rate(load->bytes, outcome->total_seconds));
    json_close(&json, '}');
    return json_print(&json);
}
