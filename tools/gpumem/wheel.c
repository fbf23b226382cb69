/*
 * Reads zip archives, as PKWARE's APPNOTE describes them: the directory at the end, then by it each
 * member, stored or deflated. Members are unpacked into a file without a name, because libraries of
 * gigabytes are common. Nothing in an archive is trusted.
 */
#include "wheel.h"
#include "descriptor.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#ifndef SG_WITHOUT_ZLIB
#include <zlib.h>
#endif

enum { END = 22, END64 = 56, LOCATOR = 20, DIRECTORY = 46, LOCAL = 30, STORED = 0, DEFLATED = 8 };
enum { PIECE = 64 * 1024, NAME_ROOM = 1024 };
#define LARGEST_MEMBER ((uint64_t)16 << 30)

struct member {
    char name[NAME_ROOM];
    unsigned flags, method;
    uint32_t crc;
    uint64_t packed, plain, at; /* `at`: its local header */
};

static uint64_t number(const unsigned char *at, unsigned bytes) {
    uint64_t value = 0;
    memcpy(&value, at, bytes);
    return value;
}

static bool is(const unsigned char *at, const char *magic) {
    return memcmp(at, magic, 4) == 0;
}

#define FAILS(...) (snprintf(why, size, __VA_ARGS__), false)

/* ---- The directory --------------------------------------------------------------------------- */

struct directory {
    uint64_t at, size, count;
};

/* With sizes of 64 bits another record precedes the end, and a locator says where. */
static bool read_end64(const struct source *source, uint64_t end, struct directory *directory) {
    unsigned char locator[LOCATOR], record[END64];
    if (end < LOCATOR || !source_read(source, end - LOCATOR, locator, LOCATOR) ||
        !is(locator, "PK\6\7") || !source_read(source, number(locator + 8, 8), record, END64) ||
        !is(record, "PK\6\6"))
        return false;
    *directory =
        (struct directory){number(record + 48, 8), number(record + 40, 8), number(record + 32, 8)};
    return true;
}

/* The end is a record of 22 bytes, and behind it may be a comment. */
static bool find_directory(const struct source *source, struct directory *directory) {
    enum { MOST = END + 65535 };
    static unsigned char tail[MOST];
    size_t size = source->size < MOST ? (size_t)source->size : MOST;
    uint64_t begin = source->size - size;
    if (size < END || !source_read(source, begin, tail, size))
        return false;
    for (size_t at = size - END + 1; at-- > 0;) {
        if (!is(tail + at, "PK\5\6"))
            continue;
        *directory = (struct directory){number(tail + at + 16, 4), number(tail + at + 12, 4),
                                        number(tail + at + 10, 2)};
        if (directory->at == UINT32_MAX || directory->size == UINT32_MAX ||
            directory->count == UINT16_MAX)
            return read_end64(source, begin + at, directory);
        return true;
    }
    return false;
}

bool wheel_is(const struct source *source) {
    unsigned char head[4] = {0};
    return source_read(source, 0, head, sizeof head) && (is(head, "PK\3\4") || is(head, "PK\5\6"));
}

/* Those fields that do not fit into 32 bits are in an extra field, in this order. */
static void read_sizes64(const unsigned char *extra, size_t size, struct member *member) {
    uint64_t *const fields[] = {&member->plain, &member->packed, &member->at};
    while (size >= 4 && size - 4 >= number(extra + 2, 2)) {
        size_t length = (size_t)number(extra + 2, 2);
        const unsigned char *at = extra + 4;
        for (size_t i = 0; number(extra, 2) == 1 && i < 3; i++)
            if (*fields[i] == UINT32_MAX && at + 8 <= extra + 4 + length) {
                *fields[i] = number(at, 8);
                at += 8;
            }
        extra += 4 + length;
        size -= 4 + length;
    }
}

/* The entry at *at, which advances past it. */
static bool read_entry(const struct source *source, uint64_t *at, struct member *member) {
    unsigned char head[DIRECTORY];
    static unsigned char extra[65535];
    if (!source_read(source, *at, head, sizeof head) || !is(head, "PK\1\2"))
        return false;
    size_t name = (size_t)number(head + 28, 2), more = (size_t)number(head + 30, 2);
    size_t kept = name < NAME_ROOM ? name : NAME_ROOM - 1;
    *member = (struct member){.flags = (unsigned)number(head + 8, 2),
                              .method = (unsigned)number(head + 10, 2),
                              .crc = (uint32_t)number(head + 16, 4),
                              .packed = number(head + 20, 4),
                              .plain = number(head + 24, 4),
                              .at = number(head + 42, 4)};
    if (!source_read(source, *at + DIRECTORY, member->name, kept) ||
        !source_read(source, *at + DIRECTORY + name, extra, more))
        return false;
    read_sizes64(extra, more, member);
    *at += DIRECTORY + name + more + number(head + 32, 2);
    return true;
}

/* ---- Members --------------------------------------------------------------------------------- */

/* Where its bytes are, which the local header alone says. */
static bool find_bytes(const struct source *source, const struct member *member,
                       struct source *packed) {
    unsigned char head[LOCAL];
    if (!source_read(source, member->at, head, sizeof head) || !is(head, "PK\3\4"))
        return false;
    uint64_t begin = member->at + LOCAL + number(head + 26, 2) + number(head + 28, 2);
    if (begin > source->size || member->packed > source->size - begin)
        return false;
    *packed = (struct source){source->fd, source->begin + begin, member->packed};
    return true;
}

static bool write_all(int fd, const unsigned char *bytes, size_t size) {
    while (size) {
        ssize_t written = write(fd, bytes, size);
        if (written < 0)
            return false;
        bytes += written;
        size -= (size_t)written;
    }
    return true;
}

struct unpacking {
    const struct source *packed;
    int fd; /* -1: only the beginning is wanted */
    unsigned char first[4];
    uint64_t made, most;
    uint32_t crc;
};

#ifdef SG_WITHOUT_ZLIB
static bool inflate_all(struct unpacking *unpacking) {
    (void)write_all, (void)unpacking;
    errno = ENOTSUP;
    return false;
}
#else
/* What was inflated; false ends it. */
static bool take(struct unpacking *unpacking, const unsigned char *bytes, size_t size) {
    for (size_t i = 0; i < size && unpacking->made + i < sizeof unpacking->first; i++)
        unpacking->first[unpacking->made + i] = bytes[i];
    unpacking->made += size;
    if (unpacking->made > unpacking->most)
        return false;
    if (unpacking->fd < 0)
        return unpacking->made < sizeof unpacking->first;
    unpacking->crc = (uint32_t)crc32(unpacking->crc, bytes, (uInt)size);
    return write_all(unpacking->fd, bytes, size);
}

/* True when the stream ended where its bytes say. errno says why not, or is 0. */
static bool inflate_all(struct unpacking *unpacking) {
    unsigned char in[PIECE], out[PIECE];
    z_stream stream = {0};
    uint64_t at = 0;
    int state = inflateInit2(&stream, -MAX_WBITS);
    if (state != Z_OK)
        return false;
    errno = 0;
    while (state == Z_OK) {
        if (stream.avail_in == 0) {
            uint64_t left = unpacking->packed->size - at;
            size_t size = left < PIECE ? (size_t)left : PIECE;
            if (!size || !source_read(unpacking->packed, at, in, size))
                break;
            at += size;
            stream.next_in = in;
            stream.avail_in = (uInt)size;
        }
        stream.next_out = out;
        stream.avail_out = PIECE;
        state = inflate(&stream, Z_NO_FLUSH);
        if ((state == Z_OK || state == Z_STREAM_END) &&
            !take(unpacking, out, PIECE - stream.avail_out))
            break;
    }
    inflateEnd(&stream);
    return state == Z_STREAM_END;
}
#endif

static bool begins_like_elf(const struct source *packed, const struct member *member) {
    struct unpacking beginning = {.packed = packed, .fd = -1, .most = UINT64_MAX};
    if (member->method == STORED)
        return source_read(packed, 0, beginning.first, sizeof beginning.first) &&
               memcmp(beginning.first, ELFMAG, SELFMAG) == 0;
    inflate_all(&beginning);
    return memcmp(beginning.first, ELFMAG, SELFMAG) == 0;
}

/* The caller closes *fd. */
static bool unpack(const struct source *packed, const struct member *member, int *fd, char *why,
                   size_t size) {
    *fd = cli_make_unnamed();
    if (*fd < 0)
        return FAILS("no file to unpack %s into: %s", member->name, strerror(errno));
    struct unpacking unpacking = {.packed = packed, .fd = *fd, .most = member->plain};
    bool whole = inflate_all(&unpacking);
    if (!whole && errno)
        return FAILS("%s cannot be unpacked: %s", member->name, strerror(errno));
    if (!whole || unpacking.made != member->plain || unpacking.crc != member->crc)
        return FAILS("%s in it is damaged", member->name);
    return true;
}

struct visit {
    void (*each)(void *user, const char *name, const struct source *member);
    void *user;
    uint64_t left; /* bytes that may be unpacked: members of a hostile archive may be one another */
};

static bool look_at(const struct source *source, const struct member *member, struct visit *visit,
                    char *why, size_t size) {
    struct source packed;
    int fd = -1;
    if (member->plain < sizeof(Elf64_Ehdr))
        return true;
    if (member->flags & 1)
        return FAILS("%s in it is encrypted", member->name);
#ifdef SG_WITHOUT_ZLIB
    if (member->method == DEFLATED)
        return FAILS("%s in it is deflated, and this gpumem was built without zlib", member->name);
#endif
    if (member->method != STORED && member->method != DEFLATED)
        return FAILS("%s in it is compressed by method %u; only stored (0) and deflated (8) "
                     "members are read",
                     member->name, member->method);
    if (!find_bytes(source, member, &packed))
        return FAILS("%s is not where the archive says: it is cut off or damaged", member->name);
    if (!begins_like_elf(&packed, member))
        return true;
    if (member->method == STORED) {
        visit->each(visit->user, member->name, &packed);
        return true;
    }
    if (member->plain > LARGEST_MEMBER || member->plain > visit->left)
        return FAILS("%s in it is said to have %llu bytes, too many to be unpacked", member->name,
                     (unsigned long long)member->plain);
    visit->left -= member->plain;
    bool unpacked = unpack(&packed, member, &fd, why, size);
    if (unpacked)
        visit->each(visit->user, member->name, &(struct source){fd, 0, member->plain});
    if (fd >= 0)
        close(fd);
    return unpacked;
}

bool wheel_each(const struct source *source,
                void (*each)(void *user, const char *name, const struct source *member), void *user,
                char *why, size_t size) {
    /* DEFLATE makes at most 1,032 bytes of one. */
    struct visit visit = {each, user, 1040 * source->size};
    struct directory directory;
    static struct member member;
    if (!find_directory(source, &directory))
        return FAILS("is a zip archive without its directory: it is cut off");
    uint64_t at = directory.at;
    for (uint64_t i = 0; i < directory.count; i++) {
        if (!read_entry(source, &at, &member))
            return FAILS("is a zip archive whose directory is damaged");
        if (!look_at(source, &member, &visit, why, size))
            return false;
    }
    return true;
}
