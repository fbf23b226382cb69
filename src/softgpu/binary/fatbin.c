/*
 * Fatbins: a header of 16 bytes (u32 magic, u16 version, u16 its size, u64 bytes that follow), then
 * entries, each a header (see the offsets below) and a payload: PTX or an ELF, plain or compressed.
 * Based on the output of fatbinary of CUDA 13.0.
 */
#include "softgpu/binary/read.h"
#include "softgpu/image/reader.h"
#include "softgpu/ptx/ptx.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifndef SG_WITHOUT_LZ4
#include <lz4.h>
#endif
#ifndef SG_WITHOUT_ZSTD
#include <zstd.h>
#endif

enum { KIND_PTX = 1, KIND_ELF = 2 };

#define ENTRY_HEADER 64
#define IS_64_BIT    0x1u
#define IS_LZ4       0x2000u
#define IS_ZSTD      0x8000u
#define IS_SPECIFIC  0x100000u /* sm_90a */
#define IS_FAMILY    0x200000u /* sm_100f */

/* Compressed sizes beyond these are not trusted: no compiler's output is so uniform. */
#define MOST_TIMES ((uint64_t)4096)
#define MOST_PLAIN ((uint64_t)1 << 30)

struct entry {
    unsigned kind;
    uint32_t flags;
    int architecture;
    uint64_t plain; /* bytes when decompressed */
    struct sg_bytes payload;
};

bool sg_fatbin_extent(const void *data, size_t size, uint64_t *extent) {
    struct sg_bytes bytes = {data, size};
    if (size < 16 || sg_bytes_number(bytes, 4, 2) != 1)
        return false;
    uint64_t header = sg_bytes_number(bytes, 6, 2), follows = sg_bytes_number(bytes, 8, 8);
    *extent = header + follows;
    return follows <= (uint64_t)UINT32_MAX;
}

/* The entry at *at, which advances past it. False at the end, or at what is not an entry: *whole
 * says which. */
static bool next_entry(struct sg_bytes from, uint64_t *at, struct entry *entry, bool *whole) {
    struct sg_bytes header;
    *whole = *at == from.size;
    if (!sg_bytes_slice(from, *at, ENTRY_HEADER, &header))
        return false;
    uint64_t header_size = sg_bytes_number(header, 4, 4), size = sg_bytes_number(header, 8, 8);
    uint64_t compressed = sg_bytes_number(header, 16, 4);
    *entry = (struct entry){.kind = (unsigned)sg_bytes_number(header, 0, 2),
                            .flags = (uint32_t)sg_bytes_number(header, 40, 4),
                            .architecture = (int)(sg_bytes_number(header, 28, 4) & 0xffff),
                            .plain = sg_bytes_number(header, 56, 8)};
    if (header_size < ENTRY_HEADER || header_size > from.size ||
        !sg_bytes_slice(from, *at + header_size, size, &entry->payload))
        return false;
    /* The payload is padded; for compressed data the exact length is known. */
    if (entry->flags & (IS_LZ4 | IS_ZSTD)) {
        if (compressed > size)
            return false;
        entry->payload.size = (size_t)compressed;
    }
    *at += header_size + size;
    return true;
}

/* ---- choosing -------------------------------------------------------------------------------- */

static bool fits(const struct entry *entry, const struct sg_image_options *options) {
    int device = options->architecture;
    /* Text itself says for how many bits it is, and an H200 looks only there. */
    if (entry->kind == KIND_ELF && !(entry->flags & IS_64_BIT))
        return false;
    if (device < 0)
        return true;
    if (entry->flags & IS_SPECIFIC)
        return entry->architecture == device && options->suffix == 'a';
    if (entry->flags & IS_FAMILY)
        return entry->architecture / 10 == device / 10 && entry->architecture <= device;
    if (entry->kind == KIND_ELF && entry->architecture / 10 != device / 10)
        return false;
    return entry->architecture <= device;
}

/* Whether to prefer `entry` to `best`, of the same kind: newer, or more specific. Of equals an H200
 * took the last one for the device itself, and the first of older ones. */
static bool better(const struct entry *entry, const struct entry *best, int device) {
    if (best->kind == 0 || entry->architecture != best->architecture)
        return best->kind == 0 || entry->architecture > best->architecture;
    bool special = entry->flags & IS_SPECIFIC, before = best->flags & IS_SPECIFIC;
    return special == before ? entry->architecture == device : special;
}

/* *chosen, and as *other what is left, of kind 0 if nothing. */
static CUresult choose(struct sg_bytes bytes, const struct sg_image_options *options,
                       struct entry *chosen, struct entry *other) {
    struct entry machine = {0}, text = {0}, entry;
    uint64_t at = sg_bytes_number(bytes, 6, 2);
    bool whole;
    /* An H200's answer to a header that ends inside itself. */
    if (at < 16)
        return CUDA_ERROR_NO_BINARY_FOR_GPU;
    while (next_entry(bytes, &at, &entry, &whole)) {
        struct entry *best = entry.kind == KIND_ELF   ? &machine
                             : entry.kind == KIND_PTX ? &text
                                                      : NULL;
        if (best && fits(&entry, options) && better(&entry, best, options->architecture))
            *best = entry;
    }
    if (!whole)
        return CUDA_ERROR_INVALID_IMAGE;
    const struct entry *first = options->prefer_machine ? &machine : &text;
    const struct entry *second = options->prefer_machine ? &text : &machine;
    *chosen = first->kind ? *first : *second;
    *other = first->kind ? *second : (struct entry){0};
    return chosen->kind ? CUDA_SUCCESS : CUDA_ERROR_NO_BINARY_FOR_GPU;
}

/* ---- reading --------------------------------------------------------------------------------- */

#define NONE_MADE UINT64_MAX

/* Each returns how many bytes it made of at most `room`. */
static uint64_t from_lz4(struct sg_bytes from, unsigned char *to, uint64_t room) {
#ifdef SG_WITHOUT_LZ4
    (void)from, (void)to, (void)room;
    return NONE_MADE;
#else
    int result =
        LZ4_decompress_safe((const char *)from.data, (char *)to, (int)from.size, (int)room);
    return result < 0 ? NONE_MADE : (uint64_t)result;
#endif
}

static uint64_t from_zstd(struct sg_bytes from, unsigned char *to, uint64_t room) {
#ifdef SG_WITHOUT_ZSTD
    (void)from, (void)to, (void)room;
    return NONE_MADE;
#else
    size_t result = ZSTD_decompress(to, (size_t)room, from.data, from.size);
    return ZSTD_isError(result) ? NONE_MADE : result;
#endif
}

/* The library that this build lacks for an entry; NULL if it has it. */
static const char *lacks(uint32_t flags) {
#ifdef SG_WITHOUT_LZ4
    if (flags & IS_LZ4)
        return "LZ4";
#endif
#ifdef SG_WITHOUT_ZSTD
    if ((flags & (IS_LZ4 | IS_ZSTD)) == IS_ZSTD)
        return "zstd";
#endif
    (void)flags;
    return NULL;
}

static CUresult decompress(const struct entry *entry, unsigned char **plain) {
    struct sg_bytes from = entry->payload;
    if (lacks(entry->flags))
        return CUDA_ERROR_NOT_SUPPORTED;
    if (entry->plain > MOST_PLAIN || entry->plain > MOST_TIMES * (from.size + 16))
        return CUDA_ERROR_INVALID_IMAGE;
    *plain = malloc((size_t)entry->plain + 1);
    if (!*plain)
        return CUDA_ERROR_OUT_OF_MEMORY;
    uint64_t made = (entry->flags & IS_LZ4 ? from_lz4 : from_zstd)(from, *plain, entry->plain);
    if (made == entry->plain)
        return CUDA_SUCCESS;
    free(*plain);
    *plain = NULL;
    /* As recorded; damage to LZ4 kills an H200's driver. */
    return entry->flags & IS_ZSTD ? CUDA_ERROR_UNKNOWN : CUDA_ERROR_INVALID_IMAGE;
}

static CUresult read_plain(unsigned kind, struct sg_bytes plain,
                           const struct sg_image_options *options, struct sg_image_log *log,
                           struct sg_image *image) {
    if (kind == KIND_ELF)
        return sg_cubin_read(plain, options, log, image);
    plain.size = strnlen((const char *)plain.data, plain.size);
    return sg_ptx_read(plain, options, log, image);
}

static CUresult read_entry(struct entry entry, const struct sg_image_options *options,
                           struct sg_image_log *log, struct sg_image *image) {
    unsigned char *plain = NULL;
    CUresult result = CUDA_SUCCESS;
    if (entry.flags & (IS_LZ4 | IS_ZSTD)) {
        result = decompress(&entry, &plain);
        entry.payload = (struct sg_bytes){plain, (size_t)entry.plain};
    }
    if (result == CUDA_SUCCESS)
        result = read_plain(entry.kind, entry.payload, options, log, image);
    else if (lacks(entry.flags))
        sg_image_log_error(log, options->name, 0,
                           "an entry is compressed, and this softgpu was built without %s",
                           lacks(entry.flags));
    else
        sg_image_log_error(log, options->name, 0, "an entry cannot be decompressed");
    free(plain);
    return result;
}

/*
 * Hardware takes the machine code and does not look at the text: a text that is refused here must
 * not make the whole refused. Its kernels are, at their launch, which says why.
 */
static CUresult read_either(const struct entry *text, const struct entry *machine,
                            const struct sg_image_options *options, struct sg_image_log *log,
                            struct sg_image *image) {
    char why[256] = "";
    struct sg_image_log aside = {.error = why, .error_size = sizeof why};
    CUresult result = read_entry(*text, options, &aside, image);
    if (result == CUDA_SUCCESS || result == CUDA_ERROR_OUT_OF_MEMORY)
        return result;
    sg_image_clear(image);
    result = read_entry(*machine, options, log, image);
    if (result != CUDA_SUCCESS)
        return result;
    why[strcspn(why, "\n")] = 0;
    image->refused_text = strdup(why);
    return image->refused_text ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult sg_fatbin_read(struct sg_bytes bytes, const struct sg_image_options *options,
                        struct sg_image_log *log, struct sg_image *image) {
    struct entry entry, other;
    CUresult result = choose(bytes, options, &entry, &other);
    if (result != CUDA_SUCCESS) {
        sg_image_log_error(log, options->name, 0,
                           result == CUDA_ERROR_INVALID_IMAGE ? "the fatbin is damaged"
                                                              : "no entry of the fatbin runs here");
        return result;
    }
    return options->either && entry.kind == KIND_PTX && other.kind
               ? read_either(&entry, &other, options, log, image)
               : read_entry(entry, options, log, image);
}

/* ---- Telling what it holds ------------------------------------------------------------------- */

/* Appends " sm_90a" unless it is there. */
static void list_one(const struct entry *entry, char *text, size_t size) {
    char name[32];
    snprintf(name, sizeof name, " %s_%d%s", entry->kind == KIND_PTX ? "compute" : "sm",
             entry->architecture,
             entry->flags & IS_SPECIFIC ? "a"
             : entry->flags & IS_FAMILY ? "f"
                                        : "");
    size_t used = strlen(text), length = strlen(name);
    for (const char *at = text; (at = strstr(at, name)); at += length)
        if (at[length] == ' ' || !at[length])
            return;
    if (used + length < size)
        memcpy(text + used, name, length + 1);
}

void sg_fatbin_list(struct sg_bytes fatbin, char *text, size_t size) {
    char machine[160] = "", ptx[160] = "";
    struct entry entry;
    bool whole;
    uint64_t at = sg_bytes_number(fatbin, 6, 2);
    while (at >= 16 && next_entry(fatbin, &at, &entry, &whole)) {
        if (entry.kind == KIND_ELF)
            list_one(&entry, machine, sizeof machine);
        else if (entry.kind == KIND_PTX)
            list_one(&entry, ptx, sizeof ptx);
    }
    snprintf(text, size, "%s%s%s%s%s", machine[0] ? "machine code for" : "", machine,
             machine[0] && ptx[0] ? ", " : "",
             ptx[0]       ? "PTX for"
             : machine[0] ? ""
                          : "nothing",
             ptx);
}

bool sg_fatbin_has_ptx_for(struct sg_bytes fatbin, int architecture) {
    const struct sg_image_options options = {.architecture = architecture,
                                             .suffix = architecture >= 90 ? 'a' : 0};
    struct entry entry;
    bool whole;
    uint64_t at = sg_bytes_number(fatbin, 6, 2);
    while (at >= 16 && next_entry(fatbin, &at, &entry, &whole))
        if (entry.kind == KIND_PTX && fits(&entry, &options))
            return true;
    return false;
}
