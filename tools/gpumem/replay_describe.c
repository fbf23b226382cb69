/* Descriptions of resources: LAYER[:OPTION=VALUE...], with those below it after slashes. */
#include "cli.h"
#include "replay.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct kind_row {
    const char *name;
    enum replay_layer_kind kind;
    bool base; /* has nothing below it */
} kinds[] = {
    {"caching", REPLAY_CACHING, false}, {"limit", REPLAY_LIMIT, false},
    {"log", REPLAY_LOGGING, false},     {"pool", REPLAY_POOL, true},
    {"virtual", REPLAY_VIRTUAL, true},  {"pinned", REPLAY_PINNED, true},
    {"driver", REPLAY_DRIVER, true},
};

/* Shorter names of what is asked for most. */
#define OVER_VIRTUAL "caching-virtual"

enum value { BYTES, RATIO, FLAG };

#define AT(member) offsetof(struct replay_layer, member)
static const struct option_row {
    enum replay_layer_kind kind;
    enum value value;
    const char *name;
    size_t offset;
} options[] = {
    {REPLAY_CACHING, BYTES, "segment_bytes", AT(caching.segment_bytes)},
    {REPLAY_CACHING, BYTES, "maximum_small_bytes", AT(caching.maximum_small_bytes)},
    {REPLAY_CACHING, BYTES, "thread_bytes", AT(caching.thread_bytes)},
    {REPLAY_CACHING, BYTES, "maximum_bytes", AT(caching.maximum_bytes)},
    {REPLAY_CACHING, BYTES, "idle_bytes", AT(caching.idle_bytes)},
    {REPLAY_CACHING, RATIO, "committed_ratio", AT(caching.committed_ratio)},
    {REPLAY_CACHING, BYTES, "reserve_bytes", AT(caching.reserve_bytes)},
    {REPLAY_CACHING, FLAG, "never_waits", AT(caching.never_waits)},
    {REPLAY_LIMIT, BYTES, "maximum_bytes", AT(limit)},
    {REPLAY_POOL, BYTES, "maximum_bytes", AT(pool.maximum_bytes)},
    {REPLAY_POOL, BYTES, "release_threshold", AT(pool.release_threshold)},
    {REPLAY_VIRTUAL, BYTES, "maximum_chunk_bytes", AT(virtual_memory.maximum_chunk_bytes)},
    {REPLAY_VIRTUAL, BYTES, "cache_bytes", AT(virtual_memory.cache_bytes)},
};
_Static_assert(sizeof(size_t) == sizeof(uint64_t), "sizes are written as 64 bits");

static bool parse_ratio(const char *text, double *ratio) {
    char *end;
    *ratio = strtod(text, &end);
    return *text >= '0' && *text <= '9' ? !*end && *ratio >= 1 : strcmp(text, "inf") == 0;
}

static bool set_option(struct replay_layer *layer, const struct option_row *row,
                       const char *value) {
    void *member = (char *)layer + row->offset;
    uint64_t bytes = 0;
    double ratio = 0;
    if (row->value == FLAG) {
        *(bool *)member = true;
        return !value;
    }
    if (!value)
        return false;
    bool valid = row->value == BYTES ? cli_parse_size(value, &bytes) : parse_ratio(value, &ratio);
    if (row->value == BYTES)
        memcpy(member, &bytes, sizeof bytes);
    else
        memcpy(member, &ratio, sizeof ratio);
    return valid;
}

/* `text` is an option of a layer, which the function takes apart. */
static bool take_option(struct replay_layer *layer, char *text) {
    char *value = strchr(text, '=');
    if (value)
        *value++ = 0;
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
        if (options[i].kind != layer->kind || strcmp(options[i].name, text) != 0)
            continue;
        if (set_option(layer, &options[i], value))
            return true;
        (void)cli_error(CLI_USAGE, "replay: '%s' is not a value of %s", value ? value : "", text);
        return false;
    }
    (void)cli_error(CLI_USAGE, "replay: '%s' is not an option of that resource", text);
    return false;
}

static const struct kind_row *add_layer(struct replay_description *description, const char *name) {
    if (description->count == REPLAY_LAYERS_MOST)
        return NULL;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (strcmp(kinds[i].name, name) != 0)
            continue;
        struct replay_layer *layer = &description->layers[description->count++];
        *layer = (struct replay_layer){.kind = kinds[i].kind};
        layer->caching.size = sizeof layer->caching;
        layer->pool.size = sizeof layer->pool;
        layer->pool.pool = GPUMEM_POOL_OWN;
        layer->virtual_memory.size = sizeof layer->virtual_memory;
        return &kinds[i];
    }
    return NULL;
}

/* Whether a layer can stand there: something is below each wrapper, and nothing below memory. */
static bool fits(const struct kind_row *row, bool over_virtual, bool last, size_t count) {
    if (row->kind == REPLAY_DRIVER && count > 1)
        return false;
    return last ? row->base || row->kind == REPLAY_CACHING : !row->base && !over_virtual;
}

/* One layer, and below a last cache what its name says; false after printing why. */
static bool take_layer(struct replay_description *description, char *text, bool last) {
    char *option, *rest = text, *name = strsep(&rest, ":");
    bool over_virtual = strcmp(name, OVER_VIRTUAL) == 0;
    const struct kind_row *row = add_layer(description, over_virtual ? "caching" : name);
    if (!row || !fits(row, over_virtual, last, description->count)) {
        (void)cli_error(CLI_USAGE, "replay: '%s' is not a resource%s; try 'gpumem help replay'",
                        name, row ? " at this place" : "");
        return false;
    }
    struct replay_layer *layer = &description->layers[description->count - 1];
    while ((option = strsep(&rest, ":")) != NULL)
        if (!take_option(layer, option))
            return false;
    return !last || row->base || add_layer(description, over_virtual ? "virtual" : "pool");
}

bool replay_describe(const char *text, size_t length, struct replay_description *description) {
    *description = (struct replay_description){0};
    if (length >= sizeof description->name) {
        (void)cli_error(CLI_USAGE, "replay: '%.40s...' is too long for a resource", text);
        return false;
    }
    memcpy(description->name, text, length);
    char copy[sizeof description->name], *rest = copy, *layer;
    memcpy(copy, description->name, sizeof copy);
    while ((layer = strsep(&rest, "/")) != NULL)
        if (!take_layer(description, layer, !rest))
            return false;
    /* Memory below others is not exported, and its handles are as large as needed. */
    if (description->count > 1)
        description->layers[description->count - 1].virtual_memory.handle_type = GPUMEM_HANDLE_NONE;
    return true;
}

bool replay_set_limit(struct replay_description *description, uint64_t bytes) {
    for (size_t i = 0; i < description->count; i++) {
        struct replay_layer *layer = &description->layers[i];
        if (layer->kind == REPLAY_CACHING)
            layer->caching.maximum_bytes = bytes;
        else if (layer->kind == REPLAY_POOL || layer->kind == REPLAY_DRIVER)
            layer->pool.maximum_bytes = bytes;
        else
            continue;
        return true;
    }
    return false;
}
