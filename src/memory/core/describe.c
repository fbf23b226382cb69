#include "memory/core/describe.h"

void gm_describe_set(gpumem_resource *resource, const struct gm_describe_ops *ops) {
    atomic_store_explicit(&resource->describe, ops, memory_order_release);
}

const char *gm_describe_piece(const struct gm_span *span) {
    return span->is_free ? "free" : "in_use";
}

void gm_describe_pieces(struct gm_json *json, const struct gm_spans *spans,
                        const char *(*state)(const struct gm_span *)) {
    gm_json_open(json, "pieces", '[');
    for (const struct gm_span *span = spans->first, *next; span; span = next) {
        const char *name = state(span); /* one of a few literals: comparing pointers suffices */
        uint64_t count = 1;
        for (next = span->after; next && next->bytes == span->bytes && state(next) == name;
             next = next->after)
            count++;
        gm_json_open(json, NULL, '{');
        gm_json_number(json, "offset", span->offset);
        gm_json_number(json, "bytes", span->bytes);
        if (count > 1)
            gm_json_number(json, "count", count);
        gm_json_string(json, "state", name);
        gm_json_close(json, '}');
    }
    gm_json_close(json, ']');
}
