/*
 * Reads ELF files and fat binaries by their public layouts. Nothing in a file is trusted: offsets
 * and sizes are compared with the file's, and every loop advances through it.
 */
#include "device_code.h"

#include <elf.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#ifndef EM_CUDA
#define EM_CUDA 190
#endif

enum { WINDOW = 64 * 1024 };
#define MOST_READ ((uint64_t)64 << 30) /* of one file */

bool source_read(const struct source *source, uint64_t offset, void *to, size_t size) {
    if (offset > source->size || size > source->size - offset)
        return false;
    for (char *at = to; size;) {
        ssize_t got = pread(source->fd, at, size, (off_t)(source->begin + offset));
        if (got <= 0)
            return false;
        at += got;
        offset += (uint64_t)got;
        size -= (size_t)got;
    }
    return true;
}

char *device_code_target(const struct target *target, char *text) {
    char suffix[2] = {target->suffix};
    snprintf(text, 32, "%s_%d%s", target->ptx ? "compute" : "sm", target->architecture, suffix);
    return text;
}

/* ---- Fat binaries ---------------------------------------------------------------------------- */

/* A header of 16 bytes (u32 magic, u16 version, u16 its size, u64 bytes that follow), then entries,
 * each a header (offsets below) and a payload, as fatbinary of CUDA 12 and 13 writes them. */
#define FATBIN_MAGIC 0xba55ed50u
enum {
    KIND_PTX = 1,
    KIND_ELF = 2,
    ENTRY_HEAD = 64,
    SPECIFIC = 0x100000,
    FAMILY = 0x200000,
    COMPRESSED = 0xa000
};

struct fatbin_head {
    uint32_t magic;
    uint16_t version, size;
    uint64_t follows;
};

static uint64_t number(const unsigned char *at, unsigned bytes) {
    uint64_t value = 0;
    memcpy(&value, at, bytes);
    return value;
}

static bool runs_on(const struct target *target, int capability, int newest_ptx) {
    int architecture = target->architecture;
    if (!target->ptx || target->version > newest_ptx || capability < architecture)
        return false;
    if (target->suffix == 'a')
        return capability == architecture;
    return target->suffix != 'f' || capability / 10 == architecture / 10;
}

/* Counts an image; those beyond MOST_TARGETS kinds are left out. Returns NULL then. */
static struct target *count_image(struct device_code *code, const struct profiles *profiles,
                                  struct target image) {
    for (size_t i = 0; i < code->target_count; i++) {
        struct target *each = &code->targets[i];
        if (each->ptx == image.ptx && each->architecture == image.architecture &&
            each->suffix == image.suffix && each->version == image.version) {
            each->images++;
            return each;
        }
    }
    if (code->target_count == MOST_TARGETS)
        return NULL;
    image.images = 1;
    for (size_t i = 0; i < profiles->count; i++)
        image.runs_on[i] = runs_on(&image, profiles->profile[i].capability, profiles->newest_ptx);
    code->targets[code->target_count] = image;
    return &code->targets[code->target_count++];
}

static struct target image_of(const unsigned char head[ENTRY_HEAD]) {
    uint64_t flags = number(head + 40, 4);
    bool ptx = number(head, 2) == KIND_PTX;
    return (struct target){
        .ptx = ptx,
        .architecture = (int)number(head + 28, 2),
        .suffix = flags & SPECIFIC ? 'a'
                  : flags & FAMILY ? 'f'
                                   : 0,
        .version =
            ptx ? (int)(10 * (number(head + 26, 2) & 0xff) + (number(head + 24, 2) & 0xff)) : 0,
    };
}

/* nvcc's linker adds an image without a function to each program. Only one that is stored as it is
 * can be looked into here. */
static bool is_empty(const struct source *source, const unsigned char head[ENTRY_HEAD], uint64_t at,
                     uint64_t size) {
    static unsigned char image[WINDOW];
    return number(head, 2) == KIND_ELF && !(number(head + 40, 4) & COMPRESSED) &&
           size <= sizeof image && source_read(source, at, image, (size_t)size) &&
           !memmem(image, (size_t)size, ".text.", 6);
}

/* The entries of one fat binary, whose end is known to be in the file. */
static void read_entries(const struct source *source, uint64_t at, uint64_t end,
                         const struct profiles *profiles, struct device_code *code, bool parts) {
    bool runs[MOST_PROFILES] = {false}, has_ptx = false, has_any = false;
    unsigned char head[ENTRY_HEAD];
    while (at < end) {
        uint64_t head_size, payload, kind;
        if (end - at < sizeof head || !source_read(source, at, head, sizeof head)) {
            code->damaged = true;
            break;
        }
        kind = number(head, 2);
        head_size = number(head + 4, 4);
        payload = number(head + 8, 8);
        if (head_size < ENTRY_HEAD || head_size > end - at || payload > end - at - head_size) {
            code->damaged = true;
            break;
        }
        at += head_size + payload;
        if ((kind != KIND_PTX && kind != KIND_ELF) || is_empty(source, head, at - payload, payload))
            continue;
        const struct target *target = count_image(code, profiles, image_of(head));
        has_any = true;
        has_ptx = has_ptx || kind == KIND_PTX;
        for (size_t i = 0; target && i < profiles->count; i++)
            runs[i] = runs[i] || target->runs_on[i];
    }
    /* What was linked of parts is linked again of their PTX: the parts are what counts. */
    if (!has_any || (parts && !has_ptx))
        return;
    code->binaries++;
    for (size_t i = 0; i < profiles->count; i++)
        code->runs[i] += runs[i];
}

/* Past zeros, which pad; at most a window of them, so that holes of a file are not read through. */
static uint64_t skip_zeros(const struct source *source, uint64_t at, uint64_t end) {
    static unsigned char window[WINDOW];
    size_t size = end - at < sizeof window ? (size_t)(end - at) : sizeof window;
    if (!source_read(source, at, window, size))
        return end;
    for (size_t i = 0; i < size; i++)
        if (window[i])
            return at + i;
    return at + size;
}

/* Fat binaries one after another, as the linker lays them. */
static void read_fatbins(const struct source *source, uint64_t at, uint64_t end,
                         const struct profiles *profiles, struct device_code *code, bool parts) {
    struct fatbin_head head;
    while ((at = skip_zeros(source, at, end)) < end) {
        if (end - at < sizeof head || !source_read(source, at, &head, sizeof head) ||
            head.magic != FATBIN_MAGIC || head.size < sizeof head || head.size > end - at ||
            head.follows > end - at - head.size) {
            code->damaged = true;
            return;
        }
        read_entries(source, at + head.size, at + head.size + head.follows, profiles, code, parts);
        at += head.size + head.follows;
    }
}

/* ---- ELF ------------------------------------------------------------------------------------- */

struct elf {
    const struct source *source;
    const struct profiles *profiles;
    struct device_code *code;
    Elf64_Ehdr head;
    uint64_t sections, budget;
    Elf64_Shdr names;
    bool has_parts, table_named, error_named, library_named;
};

static bool fails(char *why, size_t size, const char *text) {
    snprintf(why, size, "%s", text);
    return false;
}

static bool section_at(const struct elf *elf, uint64_t index, Elf64_Shdr *section) {
    return source_read(elf->source, elf->head.e_shoff + index * sizeof *section, section,
                       sizeof *section);
}

/* Cut off where it does not fit; "" if it cannot be read. */
static void read_string(const struct elf *elf, const Elf64_Shdr *table, uint64_t at, char *text,
                        size_t room) {
    uint64_t size = elf->source->size, begin = table->sh_offset;
    text[0] = '\0';
    if (begin > size || at > size - begin || at >= table->sh_size)
        return;
    uint64_t left = size - begin - at;
    size_t taken = left < room - 1 ? (size_t)left : room - 1;
    if (!source_read(elf->source, begin + at, text, taken))
        taken = 0;
    text[taken] = '\0';
}

/* Sections of a hostile file may all be the whole file: a few times its size is read, no more. */
static bool afford(struct elf *elf, uint64_t size) {
    bool enough = size <= elf->budget;
    elf->budget -= enough ? size : 0;
    elf->code->damaged |= !enough;
    return enough;
}

static bool holds_bytes(const struct elf *elf, const Elf64_Shdr *section) {
    return section->sh_type != SHT_NOBITS && section->sh_offset <= elf->source->size &&
           section->sh_size <= elf->source->size - section->sh_offset;
}

/* "libcudart.so.13", and as wheels name it "libcudart-0123abcd.so.12". */
static bool is_runtime(const char *name) {
    return strncmp(name, "libcudart", 9) == 0 && (name[9] == '.' || name[9] == '-') &&
           strstr(name, ".so");
}

/* Libraries whose kernels are machine code, and which have NVIDIA's runtime inside. */
static bool is_of_nvidia(const char *name) {
    static const char *const known[] = {"libcublas",   "libcudnn",    "libcufft",    "libcurand",
                                        "libcusolver", "libcusparse", "libcutensor", "libnccl",
                                        "libnpp",      "libnvjpeg",   "libcudss"};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strncmp(name, known[i], strlen(known[i])) == 0)
            return true;
    return false;
}

static void needs(struct device_code *code, const char *library) {
    if (is_runtime(library)) {
        code->runtime = RUNTIME_SHARED;
        snprintf(code->runtime_name, sizeof code->runtime_name, "%s", library);
    } else if (is_of_nvidia(library) && code->library_count < MOST_LIBRARIES) {
        snprintf(code->libraries[code->library_count++], sizeof *code->libraries, "%s", library);
    }
}

static void read_dynamic(struct elf *elf, const Elf64_Shdr *section) {
    Elf64_Shdr strings;
    Elf64_Dyn entry;
    char name[64];
    if (!section_at(elf, section->sh_link, &strings))
        return;
    for (uint64_t at = 0; at + sizeof entry <= section->sh_size; at += sizeof entry) {
        if (!source_read(elf->source, section->sh_offset + at, &entry, sizeof entry) ||
            entry.d_tag == DT_NULL)
            return;
        if (entry.d_tag != DT_NEEDED && entry.d_tag != DT_SONAME)
            continue;
        read_string(elf, &strings, entry.d_un.d_val, name, sizeof name);
        if (entry.d_tag == DT_NEEDED && elf->code->runtime != RUNTIME_ITSELF) {
            needs(elf->code, name);
        } else if (entry.d_tag == DT_SONAME && is_runtime(name)) {
            elf->code->runtime = RUNTIME_ITSELF;
            snprintf(elf->code->runtime_name, sizeof elf->code->runtime_name, "%s", name);
        }
    }
}

/*
 * NVIDIA's runtime asks the driver for a function that only it and its kin ask for, and has the
 * names of its errors: both texts are in whatever it is linked into, stripped or not.
 */
static void search_texts(struct elf *elf, const Elf64_Shdr *section) {
    static const char table[] = "\0cuGetExportTable", library[] = "libcudart.so";
    char error[] = "\0CudaErrorInitializationError";
    error[1] = 'c'; /* not spelt out, so that this program is not taken for one that has it */
    unsigned char window[WINDOW + 64];
    size_t kept = 0;
    for (uint64_t at = 0; at < section->sh_size;) {
        size_t size = section->sh_size - at < WINDOW ? (size_t)(section->sh_size - at) : WINDOW;
        if (!source_read(elf->source, section->sh_offset + at, window + kept, size))
            return;
        at += size;
        size += kept;
        elf->table_named |= memmem(window, size, table, sizeof table) != NULL;
        elf->error_named |= memmem(window, size, error, sizeof error) != NULL;
        elf->library_named |= memmem(window, size, library, sizeof library - 1) != NULL;
        kept = size < 63 ? size : 63; /* a text may cross the windows' border */
        memmove(window, window + size - kept, kept);
    }
}

static void read_section(struct elf *elf, const Elf64_Shdr *section) {
    char name[32];
    read_string(elf, &elf->names, section->sh_name, name, sizeof name);
    if (!holds_bytes(elf, section)) {
        elf->code->damaged |= section->sh_type == SHT_PROGBITS && strstr(name, "fatbin");
        return;
    }
    bool parts = strcmp(name, "__nv_relfatbin") == 0;
    bool code = parts || strcmp(name, ".nv_fatbin") == 0;
    bool texts = strncmp(name, ".rodata", 7) == 0;
    bool dynamic = section->sh_type == SHT_DYNAMIC;
    if ((!code && !texts && !dynamic) || !afford(elf, section->sh_size))
        return;
    if (dynamic)
        read_dynamic(elf, section);
    else if (code)
        read_fatbins(elf->source, section->sh_offset, section->sh_offset + section->sh_size,
                     elf->profiles, elf->code, elf->has_parts && !parts);
    else
        search_texts(elf, section);
}

/* With 65,280 sections or more the first one has the count and the number of the names' section. */
static bool count_sections(struct elf *elf, char *why, size_t size) {
    Elf64_Shdr first = {0};
    elf->sections = elf->head.e_shnum;
    if (!elf->head.e_shoff)
        return true;
    if (elf->head.e_shentsize != sizeof first || !section_at(elf, 0, &first))
        return fails(why, size, "is cut off: its section headers are not in it");
    if (!elf->sections)
        elf->sections = first.sh_size;
    uint64_t names = elf->head.e_shstrndx == SHN_XINDEX ? first.sh_link : elf->head.e_shstrndx;
    if (elf->head.e_shoff > elf->source->size ||
        elf->sections > (elf->source->size - elf->head.e_shoff) / sizeof first ||
        (elf->sections && (names >= elf->sections || !section_at(elf, names, &elf->names))))
        return fails(why, size, "is cut off: its section headers are not in it");
    return true;
}

static void find_parts(struct elf *elf) {
    Elf64_Shdr section;
    char name[32];
    for (uint64_t i = 0; i < elf->sections && section_at(elf, i, &section); i++) {
        read_string(elf, &elf->names, section.sh_name, name, sizeof name);
        elf->has_parts |= strcmp(name, "__nv_relfatbin") == 0 && section.sh_size > 0;
    }
    elf->code->relocatable = elf->has_parts;
}

static void conclude(struct elf *elf) {
    struct device_code *code = elf->code;
    if (code->runtime != RUNTIME_NONE)
        return;
    if (elf->table_named && elf->error_named)
        code->runtime = RUNTIME_INSIDE;
    else if (elf->library_named)
        code->runtime = RUNTIME_OPENED;
}

/* The architecture is where ptxas writes it: since CUDA 13, and from sm_100 on, in bits 8 to 23. */
static void read_cubin(struct elf *elf) {
    bool old = elf->head.e_ident[EI_OSABI] == 0x33;
    unsigned flags = elf->head.e_flags;
    struct target image = {.architecture = (int)(old ? flags & 0xff : flags >> 8 & 0xffff)};
    elf->code->is_cubin = true;
    elf->code->binaries = 1;
    count_image(elf->code, elf->profiles, image);
}

static bool read_elf(struct elf *elf, char *why, size_t size) {
    Elf64_Shdr section;
    if (!source_read(elf->source, 0, &elf->head, sizeof elf->head))
        return fails(why, size, "is cut off: not even an ELF header");
    if (elf->head.e_ident[EI_CLASS] != ELFCLASS64 || elf->head.e_ident[EI_DATA] != ELFDATA2LSB)
        return fails(why, size, "is an ELF file, but not of 64 bits, little-endian");
    if (elf->head.e_machine == EM_CUDA) {
        read_cubin(elf);
        return true;
    }
    if (!count_sections(elf, why, size))
        return false;
    if (!elf->sections)
        return fails(why, size, "has no section headers, by which device code is found");
    find_parts(elf);
    for (uint64_t i = 0; i < elf->sections && section_at(elf, i, &section); i++)
        read_section(elf, &section);
    conclude(elf);
    return true;
}

bool device_code_read(const struct source *source, const struct profiles *profiles,
                      struct device_code *code, char *why, size_t size) {
    uint32_t magic = 0;
    *code = (struct device_code){0};
    source_read(source, 0, &magic, sizeof magic);
    if (magic == FATBIN_MAGIC) {
        code->is_fatbin = true;
        read_fatbins(source, 0, source->size, profiles, code, false);
        return !code->damaged || code->binaries || fails(why, size, "is a damaged fat binary");
    }
    struct elf elf = {.source = source, .profiles = profiles, .code = code};
    elf.budget = source->size < MOST_READ / 4 ? 4 * source->size : MOST_READ;
    if (memcmp(&magic, ELFMAG, SELFMAG) == 0)
        return read_elf(&elf, why, size);
    return fails(why, size, "is neither a program or library (ELF), nor a wheel, nor a fat binary");
}
