/* Addresses and handles by name: what stays the same between two runs is which is which. */
#include "parity.h"

#include <inttypes.h>

typedef struct entry {
    uint64_t value;
    size_t range;
    char name[64];
    bool used;
} entry;

static entry table[512];
static size_t table_count;

static entry *find(uint64_t value) {
    for (size_t i = table_count; i-- > 0;) {
        const entry *e = &table[i];
        if (e->used && (e->value == value || (value > e->value && value - e->value < e->range)))
            return &table[i];
    }
    return NULL;
}

static bool name_taken(const char *name) {
    for (size_t i = 0; i < table_count; i++) {
        if (strcmp(table[i].name, name) == 0)
            return true;
    }
    return false;
}

void par_forget(uint64_t value) {
    entry *e = find(value);
    if (e != NULL && e->value == value)
        memset(e, 0, sizeof(*e));
}

void par_name(uint64_t value, size_t range, const char *name) {
    char unique[64];
    par_forget(value);
    size_t slot = 0;
    while (slot < table_count && table[slot].used)
        slot++;
    if (value == 0 || slot == sizeof(table) / sizeof(table[0]))
        return;
    snprintf(unique, sizeof(unique), "%.40s", name);
    for (int i = 2; name_taken(unique); i++)
        snprintf(unique, sizeof(unique), "%.40s.%d", name, i);
    table_count += slot == table_count ? 1 : 0;
    entry *e = &table[slot];
    e->value = value;
    e->range = range;
    e->used = true;
    snprintf(e->name, sizeof(e->name), "%s", unique);
}

/* The class of an address's alignment; beyond 2 MiB it says nothing about the driver. */
static const char *alignment(uint64_t value) {
    static const struct {
        uint64_t size;
        const char *name;
    } classes[] = {{2 << 20, "2M"}, {1 << 16, "64K"}, {4096, "4K"}, {512, "512"},
                   {256, "256"},    {16, "16"},       {4, "4"}};
    for (size_t i = 0; i < sizeof(classes) / sizeof(classes[0]); i++) {
        if (value % classes[i].size == 0)
            return classes[i].name;
    }
    return "1";
}

/* label NULL: an unknown handle leaves text empty. Small numbers are no addresses. */
void par_name_print(char *text, size_t room, uint64_t value, size_t range, const char *label) {
    const entry *e = find(value);
    text[0] = '\0';
    if (value < 4096) {
        snprintf(text, room, "0x%" PRIx64, value);
    } else if (e != NULL && e->value == value) {
        snprintf(text, room, "@%s", e->name);
    } else if (e != NULL) {
        snprintf(text, room, "@%s+%" PRIu64, e->name, value - e->value);
    } else if (label != NULL) {
        par_name(value, range, label);
        e = find(value);
        snprintf(text, room, "@%s align=%s", e != NULL ? e->name : "?", alignment(value));
    }
}
