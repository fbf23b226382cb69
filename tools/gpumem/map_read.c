/* Reads a file, and checks whether it is a snapshot. */
#include "cli.h"
#include "descriptor.h"
#include "map.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define DEEPEST 32

static int read_stream(FILE *file, const char *path, struct cli_text *text) {
    int status = cli_read_text(file, path, MAP_TEXT_MOST, text);
    if (status != CLI_OK || text->size)
        return status;
    free(text->text);
    *text = (struct cli_text){0};
    return cli_error(CLI_FILE, "%s: it is empty", path);
}

int map_read(const char *path, struct cli_text *text) {
    if (strcmp(path, "-") == 0)
        return read_stream(stdin, "standard input", text);
    FILE *file = cli_open_text(path);
    if (!file)
        return cli_error(CLI_FILE, "%s: %s", path, strerror(errno));
    int status = read_stream(file, path, text);
    fclose(file);
    return status;
}

int map_write(const char *path, const char *text, size_t size) {
    FILE *file = cli_make_text(path);
    if (!file)
        return cli_error(CLI_FILE, "%s: %s", path, strerror(errno));
    struct stat made;
    bool regular = fstat(fileno(file), &made) == 0 && S_ISREG(made.st_mode);
    bool written = fwrite(text, 1, size, file) == size;
    int error = written ? 0 : errno;
    if (fclose(file) != 0 && written) {
        written = false;
        error = errno;
    }
    if (written)
        return CLI_OK;
    if (regular) /* a device or a pipe is not removed */
        (void)remove(path);
    return cli_error(CLI_FAILED, "%s: %s", path, strerror(error));
}

/* ---- JSON (RFC 8259): each returns what follows, or NULL with `wrong` set -------------------- */

struct checker {
    const char *wrong;
    struct map_facts facts;
};

static const char *value(struct checker *c, const char *at, unsigned depth);

static const char *refuse(struct checker *c, const char *at) {
    c->wrong = at;
    return NULL;
}

static const char *space(const char *at) {
    return at + strspn(at, " \t\r\n");
}

static const char *string(struct checker *c, const char *at) {
    if (*at != '"')
        return refuse(c, at);
    for (at++; *at != '"'; at++) {
        if ((unsigned char)*at < 0x20)
            return refuse(c, at);
        if (*at == '\\' && (!*++at || !strchr("\"\\/bfnrtu", *at)))
            return refuse(c, at);
    }
    return at + 1;
}

static const char *digits(struct checker *c, const char *at) {
    size_t count = strspn(at, "0123456789");
    return count ? at + count : refuse(c, at);
}

static const char *number(struct checker *c, const char *at) {
    at += *at == '-';
    at = *at == '0' ? at + 1 : digits(c, at);
    if (at && *at == '.')
        at = digits(c, at + 1);
    if (at && (*at == 'e' || *at == 'E')) {
        at++;
        at = digits(c, at + (*at == '+' || *at == '-'));
    }
    return at;
}

static bool is_key(const char *key, const char *end, const char *name) {
    size_t length = strlen(name);
    return (size_t)(end - key) == length + 2 && strncmp(key + 1, name, length) == 0;
}

/* Of the outermost object. */
static void note_member(struct checker *c, const char *key, const char *key_end, const char *at) {
    if (is_key(key, key_end, "schema") && *at == '"')
        snprintf(c->facts.schema, sizeof c->facts.schema, "%.*s", (int)strcspn(at + 1, "\""),
                 at + 1);
    else if (is_key(key, key_end, "version"))
        c->facts.version = strtol(at, NULL, 10);
}

static const char *list(struct checker *c, const char *at, char end, unsigned depth) {
    at = space(at);
    if (*at == end)
        return at + 1;
    for (;;) {
        const char *key = at = space(at), *key_end = NULL;
        if (end == '}') {
            key_end = at = string(c, at);
            if (!at || *(at = space(at)) != ':')
                return at ? refuse(c, at) : NULL;
            at = space(at + 1);
        }
        if (key_end && depth == 1)
            note_member(c, key, key_end, at);
        at = value(c, at, depth);
        if (!at)
            return NULL;
        at = space(at);
        if (*at == end)
            return at + 1;
        if (*at != ',')
            return refuse(c, at);
        at++;
    }
}

static const char *value(struct checker *c, const char *at, unsigned depth) {
    static const char *const words[] = {"true", "false", "null"};
    at = space(at);
    if (*at == '{' || *at == '[')
        return depth < DEEPEST ? list(c, at + 1, *at == '{' ? '}' : ']', depth + 1) : refuse(c, at);
    if (*at == '"')
        return string(c, at);
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strncmp(at, words[i], strlen(words[i])) == 0)
            return at + strlen(words[i]);
    return number(c, at);
}

struct map_facts map_check(const char *text) {
    struct checker c = {0};
    const char *end = value(&c, text, 0);
    if (end && *space(end))
        c.wrong = space(end);
    c.facts.valid = !c.wrong;
    c.facts.line = 1;
    for (const char *at = text; c.wrong && at < c.wrong; at++)
        c.facts.line += *at == '\n';
    return c.facts;
}
