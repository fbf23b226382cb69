/* The functions that a loaded object defines: found in its dynamic section, given other values. */
#include "audit.h"

#include "base/descriptor.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct symbols {
    const Elf64_Sym *table;
    const char *names;
    const uint32_t *gnu_hash;
    const Elf64_Word *hash;
};

/* Some versions of the linker have added the object's address already. */
static const void *address_of(const struct link_map *map, Elf64_Addr value) {
    return (const void *)(value < map->l_addr ? value + map->l_addr : value); /* NOLINT */
}

static struct symbols symbols_of(const struct link_map *map) {
    struct symbols found = {0};
    for (const Elf64_Dyn *entry = map->l_ld; entry && entry->d_tag != DT_NULL; entry++) {
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

static bool is_function(const Elf64_Sym *symbol) {
    return symbol->st_shndx != SHN_UNDEF && symbol->st_value != 0 &&
           ELF64_ST_TYPE(symbol->st_info) != STT_GNU_IFUNC;
}

static bool defines(const struct symbols *in, uint32_t index, const char *name) {
    const Elf64_Sym *symbol = &in->table[index];
    return is_function(symbol) && strcmp(in->names + symbol->st_name, name) == 0;
}

static uint32_t gnu_hash_of(const char *name) {
    uint32_t hash = 5381;
    while (*name)
        hash = hash * 33 + (unsigned char)*name++;
    return hash;
}

/* Header: buckets, first index, words of the filter, its shift; filter; buckets; chains. */
static const Elf64_Sym *find_gnu(const struct symbols *in, const char *name) {
    const uint32_t *table = in->gnu_hash;
    uint32_t buckets = table[0], first = table[1], words = table[2];
    const uint32_t *bucket = table + 4 + words * (sizeof(Elf64_Addr) / sizeof *table);
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
static const Elf64_Sym *find_each(const struct symbols *in, const char *name) {
    for (uint32_t index = 1; index < in->hash[1]; index++)
        if (defines(in, index, name))
            return &in->table[index];
    return NULL;
}

void *audit_find(const struct link_map *map, const char *name) {
    const struct symbols in = symbols_of(map);
    const Elf64_Sym *symbol = NULL;
    if (in.table && in.names && in.gnu_hash)
        symbol = find_gnu(&in, name);
    else if (in.table && in.names && in.hash)
        symbol = find_each(&in, name);
    return symbol ? (void *)(map->l_addr + symbol->st_value) : NULL; /* NOLINT */
}

bool audit_is_own_call(const struct link_map *map, const void *return_address) {
    struct link_map *caller = NULL, *this_library = NULL;
    Dl_info info;
    if (!dladdr1(return_address, &info, (void **)&caller, RTLD_DL_LINKMAP))
        return false;
    return caller == map || (dladdr1((const void *)(uintptr_t)audit_find, &info,
                                     (void **)&this_library, RTLD_DL_LINKMAP) &&
                             caller == this_library);
}

/* ---- Other values ---------------------------------------------------------------------------- */

/* How the page that holds the address is protected, or -1. */
static int protection_of(uintptr_t address) {
    FILE *maps = gm_fd_stream("/proc/self/maps", "r");
    char line[512], rights[5];
    int found = -1;
    uintptr_t low, high;
    while (maps && found < 0 && fgets(line, sizeof line, maps))
        if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s", &low, &high, rights) == 3 &&
            low <= address && address < high)
            found = (rights[0] == 'r' ? PROT_READ : 0) | (rights[1] == 'w' ? PROT_WRITE : 0) |
                    (rights[2] == 'x' ? PROT_EXEC : 0);
    if (maps)
        fclose(maps);
    return found;
}

struct redefinition {
    const struct link_map *map;
    struct symbols in;
    int copy, protection;
    audit_replace *replace;
};

/* The table is a private mapping of the file: what is written is this process's alone. */
static void set_value(const struct redefinition *of, Elf64_Sym *symbol, uintptr_t front) {
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t begin = (uintptr_t)symbol & ~(page - 1);
    size_t size = (uintptr_t)(symbol + 1) - begin;
    if (mprotect((void *)begin, size, of->protection | PROT_WRITE) != 0) /* NOLINT */
        return;
    symbol->st_value = front - of->map->l_addr;
    mprotect((void *)begin, size, of->protection); /* NOLINT */
}

static void redefine(const struct redefinition *of, uint32_t index) {
    const Elf64_Sym *symbol = &of->in.table[index];
    if (!is_function(symbol))
        return;
    uintptr_t front =
        of->replace(of->copy, of->in.names + symbol->st_name, of->map->l_addr + symbol->st_value);
    if (front)
        set_value(of, (Elf64_Sym *)symbol, front);
}

static void redefine_gnu(const struct redefinition *of) {
    const uint32_t *table = of->in.gnu_hash;
    uint32_t buckets = table[0], first = table[1], words = table[2];
    const uint32_t *bucket = table + 4 + words * (sizeof(Elf64_Addr) / sizeof *table);
    const uint32_t *chain = bucket + buckets;
    for (uint32_t i = 0; i < buckets; i++)
        for (uint32_t index = bucket[i]; index >= first && index != 0; index++) {
            redefine(of, index);
            if (chain[index - first] & 1)
                break;
        }
}

void audit_redefine(const struct link_map *map, int copy, audit_replace *replace) {
    struct redefinition of = {map, symbols_of(map), copy, -1, replace};
    if (!of.in.table || !of.in.names || (of.protection = protection_of((uintptr_t)of.in.table)) < 0)
        return;
    if (of.in.gnu_hash)
        redefine_gnu(&of);
    else if (of.in.hash)
        for (uint32_t index = 1; index < of.in.hash[1]; index++)
            redefine(&of, index);
}
