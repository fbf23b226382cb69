/*
 * Archives: "!<arch>\n", then members, each a header of 60 bytes of text (name, date, owner, group,
 * mode, size, end) and its bytes, at even offsets. Members whose names begin with a slash are the
 * archive's own tables; names too long for the header are in one of them (System V), or before the
 * member's bytes (BSD).
 */
#include "softgpu/binary/archive.h"

#include <string.h>

#define MAGIC  "!<arch>\n"
#define HEADER 60
#define NAME   16

bool sg_archive_open(struct sg_bytes bytes, struct sg_archive *archive) {
    *archive = (struct sg_archive){.bytes = bytes, .at = sizeof MAGIC - 1};
    return bytes.size >= sizeof MAGIC - 1 && memcmp(bytes.data, MAGIC, sizeof MAGIC - 1) == 0;
}

/* Digits followed by blanks. */
static bool read_number(const unsigned char *text, size_t size, uint64_t *number) {
    size_t at = 0;
    for (*number = 0; at < size && text[at] >= '0' && text[at] <= '9'; at++)
        *number = *number * 10 + (uint64_t)(text[at] - '0');
    bool digits = at > 0;
    while (at < size && text[at] == ' ')
        at++;
    return digits && at == size;
}

static struct sg_bytes until(struct sg_bytes name, char end) {
    const unsigned char *found = memchr(name.data, end, name.size);
    if (found)
        name.size = (size_t)(found - name.data);
    return name;
}

/* A name outside the header remains unknown if its table is missing: it is only for messages. */
static bool find_name(struct sg_archive *archive, const unsigned char *header,
                      struct sg_archive_member *member) {
    uint64_t number;
    if (memcmp(header, "#1/", 3) == 0) {
        struct sg_bytes rest;
        if (!read_number(header + 3, NAME - 3, &number) ||
            !sg_bytes_slice(member->bytes, 0, number, &member->name) ||
            !sg_bytes_slice(member->bytes, number, member->bytes.size - number, &rest))
            return false;
        member->name = until(member->name, '\0');
        member->bytes = rest;
    } else if (header[0] == '/' && read_number(header + 1, NAME - 1, &number)) {
        member->name = archive->names;
        if (number < archive->names.size)
            member->name = until((struct sg_bytes){archive->names.data + number,
                                                   archive->names.size - (size_t)number},
                                 '/');
    } else {
        member->name = until((struct sg_bytes){header, NAME}, header[0] == '/' ? ' ' : '/');
    }
    return true;
}

static bool is_table(struct sg_bytes name) {
    static const char *const tables[] = {"/", "//", "/SYM64/", "__.SYMDEF"};
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++) {
        size_t length = strlen(tables[i]);
        if (name.size >= length && memcmp(name.data, tables[i], length) == 0 &&
            (name.size == length || tables[i][0] == '_'))
            return true;
    }
    return false;
}

bool sg_archive_next(struct sg_archive *archive, struct sg_archive_member *member, bool *whole) {
    struct sg_bytes header;
    uint64_t size;
    for (;;) {
        *whole = archive->at >= archive->bytes.size;
        if (*whole || !sg_bytes_slice(archive->bytes, archive->at, HEADER, &header) ||
            memcmp(header.data + 58, "`\n", 2) != 0 || !read_number(header.data + 48, 10, &size) ||
            !sg_bytes_slice(archive->bytes, archive->at + HEADER, size, &member->bytes))
            return false;
        archive->at += HEADER + size + (size & 1);
        if (!find_name(archive, header.data, member))
            return false;
        if (memcmp(header.data, "// ", 3) == 0)
            archive->names = member->bytes;
        else if (!is_table(member->name))
            return true;
    }
}
