/* The functions that a loaded object defines, read from its dynamic section. */
#include "audit.h"

#include <string.h>

struct symbols {
    const ElfW(Sym) * table;
    const char *names;
    const uint32_t *gnu_hash;
    const ElfW(Word) * hash;
};

/* Some versions of the linker have added the object's address already. */
static const void *address_of(const struct link_map *map, ElfW(Addr) value) {
    return (const void *)(value < map->l_addr ? value + map->l_addr : value); /* NOLINT */
}

static struct symbols symbols_of(const struct link_map *map) {
    struct symbols found = {0};
    for (const ElfW(Dyn) *entry = map->l_ld; entry && entry->d_tag != DT_NULL; entry++) {
        const void *at = address_of(map, entry->d_un.d_ptr);
        if (entry->d_tag == DT_SYMTAB)
            found.table = at;
        else if (entry->d_tag == DT_STRTAB)
            found.names = at;
        else if (entry->d_tag == DT_GNU_HASH)
            found.gnu_hash = at;
        else if (entry->d_tag == DT_HASH)
            found.hash = at;
    }
    return found;
}

static bool defines(const struct symbols *in, uint32_t index, const char *name) {
    const ElfW(Sym) *symbol = &in->table[index];
    return symbol->st_shndx != SHN_UNDEF && symbol->st_value != 0 &&
           ELF64_ST_TYPE(symbol->st_info) != STT_GNU_IFUNC &&
           strcmp(in->names + symbol->st_name, name) == 0;
}

static uint32_t gnu_hash_of(const char *name) {
    uint32_t hash = 5381;
    while (*name)
        hash = hash * 33 + (unsigned char)*name++;
    return hash;
}

/* Header: buckets, first index, words of the filter, its shift; filter; buckets; chains. */
static const ElfW(Sym) * find_gnu(const struct symbols *in, const char *name) {
    const uint32_t *table = in->gnu_hash;
    uint32_t buckets = table[0], first = table[1], words = table[2];
    const uint32_t *bucket = table + 4 + words * (sizeof(ElfW(Addr)) / sizeof *table);
    const uint32_t *chain = bucket + buckets;
    uint32_t hash = gnu_hash_of(name);
    uint32_t index = buckets ? bucket[hash % buckets] : 0;
    for (; index >= first && index != 0; index++) {
        uint32_t entry = chain[index - first];
        if ((entry | 1) == (hash | 1) && defines(in, index, name))
            return &in->table[index];
        if (entry & 1)
            break;
    }
    return NULL;
}

/* Header: buckets, symbols; buckets; chains. Only an object without the newer table needs it. */
static const ElfW(Sym) * find_each(const struct symbols *in, const char *name) {
    for (uint32_t index = 1; index < in->hash[1]; index++)
        if (defines(in, index, name))
            return &in->table[index];
    return NULL;
}

void *audit_find(const struct link_map *map, const char *name) {
    const struct symbols in = symbols_of(map);
    const ElfW(Sym) *symbol = NULL;
    if (in.table && in.names && in.gnu_hash)
        symbol = find_gnu(&in, name);
    else if (in.table && in.names && in.hash)
        symbol = find_each(&in, name);
    return symbol ? (void *)(map->l_addr + symbol->st_value) : NULL; /* NOLINT */
}
