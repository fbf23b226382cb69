/* Live allocations as text, by call site; names are looked up only now. */
#include "base/cancel.h"
#include "memory/core/driver_error.h"
#include "memory/object/deferred_frees.h"
#include "wrap/tracking.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINE_MOST 1024

/* ---- Writing --------------------------------------------------------------------------------- */

struct output {
    gpumem_write_fn write;
    void *user;
    int error;
    size_t used;
    char text[8 * LINE_MOST];
};

static void flush_output(struct output *out) {
    if (out->used && !out->error)
        out->error = out->write(out->user, out->text, out->used);
    out->used = 0;
}

static void put(struct output *out, const char *format, ...) GM_PRINTF(2, 3);
static void put(struct output *out, const char *format, ...) {
    if (sizeof out->text - out->used < LINE_MOST)
        flush_output(out);
    va_list args;
    va_start(args, format);
    int length = vsnprintf(out->text + out->used, LINE_MOST, format, args);
    va_end(args);
    out->used += length < LINE_MOST ? (size_t)length : LINE_MOST - 1;
}

static void put_quoted(struct output *out, const char *text) {
    put(out, "\"");
    for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
        if (*c == '"' || *c == '\\')
            put(out, "\\%c", *c);
        else if (*c < 0x20)
            put(out, "\\u%04x", *c);
        else
            put(out, "%c", *c);
    }
    put(out, "\"");
}

/* ---- Sites ----------------------------------------------------------------------------------- */

/* The allocations [first, first + count) of the list, all from one stack. */
struct site {
    size_t first, count;
    uint64_t bytes, committed;
};

static int same_site(const gpumem_tracked *a, const gpumem_tracked *b) {
    return a->frame_count == b->frame_count &&
           (!a->frame_count ||
            memcmp(a->frames, b->frames, a->frame_count * sizeof *a->frames) == 0);
}

static int by_stack(const void *x, const void *y) {
    const gpumem_tracked *a = x, *b = y;
    if (a->frame_count != b->frame_count)
        return a->frame_count < b->frame_count ? -1 : 1;
    int order =
        a->frame_count ? memcmp(a->frames, b->frames, a->frame_count * sizeof *a->frames) : 0;
    return order ? order : (a->number > b->number) - (a->number < b->number);
}

static int by_bytes(const void *x, const void *y) {
    const struct site *a = x, *b = y;
    if (a->bytes != b->bytes)
        return a->bytes > b->bytes ? -1 : 1;
    return (a->first > b->first) - (a->first < b->first);
}

/* `sites` has room for one per allocation. */
static size_t find_sites(struct gm_tracking_list *list, struct site *sites) {
    size_t count = 0;
    qsort(list->entries, list->count, sizeof *list->entries, by_stack);
    for (size_t i = 0; i < list->count; i++) {
        const gpumem_tracked *entry = &list->entries[i];
        if (!i || !same_site(entry, entry - 1))
            sites[count++] = (struct site){.first = i};
        struct site *site = &sites[count - 1];
        site->count++;
        site->bytes += entry->bytes;
        site->committed += entry->committed_bytes;
    }
    qsort(sites, count, sizeof *sites, by_bytes);
    return count;
}

/* ---- Names ----------------------------------------------------------------------------------- */

struct place {
    const char *function, *file; /* NULL if unknown */
    size_t function_offset, file_offset;
};

/* The call is before its return address, which may belong to another function. */
static struct place find_place(const void *address) {
    struct place place = {.function = NULL};
    uintptr_t at = (uintptr_t)address;
    Dl_info info;
    if (!at || !dladdr((const char *)address - 1, &info))
        return place;
    place.file = info.dli_fname;
    place.file_offset = at - 1 - (uintptr_t)info.dli_fbase;
    place.function = info.dli_sname;
    if (info.dli_sname)
        place.function_offset = at - 1 - (uintptr_t)info.dli_saddr;
    return place;
}

/* ---- Text ------------------------------------------------------------------------------------ */

/* "function+0x12 (file)", as far as known. */
static void name_frame(const void *address, char *text, size_t room) {
    struct place place = find_place(address);
    if (place.function)
        snprintf(text, room, "%s+0x%zx (%s)", place.function, place.function_offset, place.file);
    else if (place.file)
        snprintf(text, room, "%s+0x%zx", place.file, place.file_offset);
    else
        snprintf(text, room, "%p", address);
}

static void text_frame(struct output *out, const void *address) {
    char name[LINE_MOST - 8];
    name_frame(address, name, sizeof name);
    put(out, "    %s\n", name);
}

static void text_site(struct output *out, const gpumem_tracked *entries, const struct site *site) {
    const gpumem_tracked *first = &entries[site->first];
    put(out, "\n%llu bytes in %zu allocation%s, %llu committed, oldest %.3f s by thread %llu:\n",
        (unsigned long long)site->bytes, site->count, site->count == 1 ? "" : "s",
        (unsigned long long)site->committed, 1e-9 * (double)first->age_ns,
        (unsigned long long)first->thread);
    for (size_t i = 0; i < first->frame_count; i++)
        text_frame(out, first->frames[i]);
    if (!first->frame_count)
        put(out, "    (unknown)\n");
}

static void text_report(struct output *out, const gpumem_tracked *entries, size_t count,
                        const struct site *sites, size_t site_count) {
    uint64_t bytes = 0;
    for (size_t i = 0; i < count; i++)
        bytes += entries[i].bytes;
    put(out, "%llu bytes in %zu live allocation%s, from %zu place%s\n", (unsigned long long)bytes,
        count, count == 1 ? "" : "s", site_count, site_count == 1 ? "" : "s");
    for (size_t i = 0; i < site_count; i++)
        text_site(out, entries, &sites[i]);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void json_frame(struct output *out, const void *address) {
    struct place place = find_place(address);
    put(out, "{\"address\": \"0x%llx\"", (unsigned long long)(uintptr_t)address);
    if (place.function) {
        put(out, ", \"function\": ");
        put_quoted(out, place.function);
        put(out, ", \"function_offset\": %zu", place.function_offset);
    }
    if (place.file) {
        put(out, ", \"file\": ");
        put_quoted(out, place.file);
        put(out, ", \"file_offset\": %zu", place.file_offset);
    }
    put(out, "}");
}

static void json_entry(struct output *out, const gpumem_tracked *entry) {
    put(out,
        "{\"number\": %llu, \"pointer\": \"0x%llx\", \"bytes\": %zu, \"committed_bytes\": %zu, "
        "\"stream\": \"0x%llx\", \"thread\": %llu, \"age_ns\": %llu}",
        (unsigned long long)entry->number, entry->pointer, entry->bytes, entry->committed_bytes,
        (unsigned long long)(uintptr_t)entry->stream, (unsigned long long)entry->thread,
        (unsigned long long)entry->age_ns);
}

static void json_site(struct output *out, const gpumem_tracked *entries, const struct site *site) {
    const gpumem_tracked *first = &entries[site->first];
    put(out, "{\"bytes\": %llu, \"committed_bytes\": %llu, \"allocations\": %zu,\n  \"frames\": [",
        (unsigned long long)site->bytes, (unsigned long long)site->committed, site->count);
    for (size_t i = 0; i < first->frame_count; i++) {
        put(out, "%s\n    ", i ? "," : "");
        json_frame(out, first->frames[i]);
    }
    put(out, "],\n  \"buffers\": [");
    for (size_t i = 0; i < site->count; i++) {
        put(out, "%s\n    ", i ? "," : "");
        json_entry(out, first + i);
    }
    put(out, "]}");
}

static void json_report(struct output *out, const gpumem_tracked *entries, size_t count,
                        const struct site *sites, size_t site_count) {
    uint64_t bytes = 0;
    for (size_t i = 0; i < count; i++)
        bytes += entries[i].bytes;
    put(out, "{\"bytes\": %llu, \"allocations\": %zu, \"sites\": [", (unsigned long long)bytes,
        count);
    for (size_t i = 0; i < site_count; i++) {
        put(out, "%s\n ", i ? "," : "");
        json_site(out, entries, &sites[i]);
    }
    put(out, "]}\n");
}

/* ---- For the snapshot ------------------------------------------------------------------------ */

static void describe_entry(struct gm_json *json, const gpumem_tracked *entry) {
    char name[LINE_MOST];
    gm_json_open(json, NULL, '{');
    gm_json_number(json, "number", entry->number);
    gm_json_address(json, "address", entry->pointer);
    gm_json_number(json, "bytes", entry->bytes);
    gm_json_number(json, "committed_bytes", entry->committed_bytes);
    gm_json_number(json, "thread", entry->thread);
    gm_json_number(json, "age_ns", entry->age_ns);
    gm_json_open(json, "frames", '[');
    for (size_t i = 0; i < entry->frame_count; i++) {
        name_frame(entry->frames[i], name, sizeof name);
        gm_json_string(json, NULL, name);
    }
    gm_json_close(json, ']');
    gm_json_close(json, '}');
}

void gm_tracking_describe(gpumem_resource *resource, struct gm_json *json,
                          const gpumem_snapshot_options *options) {
    struct gm_tracking_list list;
    if (options->without_buffers)
        return;
    if (gm_tracking_read(resource, &list) != GPUMEM_OK) {
        json->failed = 1;
        return;
    }
    gm_json_open(json, "tracked", '[');
    for (size_t i = 0; i < list.count; i++)
        describe_entry(json, &list.entries[i]);
    gm_json_close(json, ']');
    gm_tracking_clear(&list);
}

/* ---- The call -------------------------------------------------------------------------------- */

static gpumem_status report(struct gm_tracking_list *list, gpumem_report_format format,
                            struct output *out) {
    struct site *sites = malloc((list->count + 1) * sizeof *sites);
    if (!sites)
        return gm_fail(GPUMEM_ERROR_OUT_OF_HOST_MEMORY, "no memory to sort %zu allocations",
                       list->count);
    size_t count = find_sites(list, sites);
    if (format == GPUMEM_REPORT_JSON)
        json_report(out, list->entries, list->count, sites, count);
    else
        text_report(out, list->entries, list->count, sites, count);
    flush_output(out);
    free(sites);
    if (out->error)
        return gm_fail_system(GPUMEM_ERROR_SYSTEM, out->error, "write",
                              "cannot write a report of live allocations");
    return GPUMEM_OK;
}

gpumem_status gpumem_tracking_report(gpumem_resource *resource, gpumem_report_format format,
                                     gpumem_write_fn write, void *user) {
    GM_UNCANCELLED;
    GM_CHECK(resource, "gpumem_tracking_report");
    GM_REQUIRE(gm_is_tracking(resource), "gpumem_tracking_report: a %s resource does not track",
               resource->kind);
    GM_REQUIRE(write, "gpumem_tracking_report: write is NULL");
    GM_REQUIRE((unsigned)format <= GPUMEM_REPORT_JSON, "gpumem_tracking_report: unknown format %d",
               (int)format);
    gm_work_off(resource->device);
    struct gm_tracking_list list;
    struct output out = {.write = write, .user = user};
    gpumem_status status = gm_tracking_read(resource, &list);
    if (status != GPUMEM_OK)
        return status;
    status = report(&list, format, &out);
    gm_tracking_clear(&list);
    return status;
}
