#include "terminal.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* ---- Characters ------------------------------------------------------------------------------ */

static bool continues(char byte) {
    return ((unsigned char)byte & 0xc0) == 0x80;
}

/* RFC 3629: no overlong forms, no surrogates, nothing above U+10FFFF. */
size_t cli_utf8(const char *text, unsigned *value) {
    static const unsigned least[] = {0, 0, 0x80, 0x800, 0x10000};
    const unsigned char first = (unsigned char)text[0];
    size_t length = first < 0x80    ? 1
                    : first >= 0xf8 ? 0
                    : first >= 0xf0 ? 4
                    : first >= 0xe0 ? 3
                    : first >= 0xc0 ? 2
                                    : 0;
    if (length == 0)
        return 0;
    unsigned got = length == 1 ? first : first & (0x7fu >> length);
    for (size_t i = 1; i < length; i++) {
        if (!continues(text[i]))
            return 0;
        got = got << 6 | ((unsigned char)text[i] & 0x3f);
    }
    if (length > 1 && (got < least[length] || (got >= 0xd800 && got < 0xe000) || got > 0x10ffff))
        return 0;
    *value = got;
    return length;
}

/* False for C0, DEL and C1, and for marks that change the direction of text or end a line. */
static bool shows_as_itself(unsigned value) {
    if (value < 0x20 || (value >= 0x7f && value < 0xa0))
        return false;
    return !(value == 0x200e || value == 0x200f || (value >= 0x2028 && value <= 0x202e) ||
             (value >= 0x2066 && value <= 0x2069));
}

static char *escape_byte(char *to, unsigned char byte) {
    static const char digits[] = "0123456789abcdef";
    *to++ = '\\';
    *to++ = 'x';
    *to++ = digits[byte >> 4];
    *to++ = digits[byte & 0xf];
    return to;
}

char *cli_escape(const char *text) {
    size_t size = strlen(text);
    char *whole = size < SIZE_MAX / 4 ? malloc(4 * size + 1) : NULL;
    if (!whole)
        return NULL;
    char *to = whole;
    while (*text) {
        unsigned value = 0;
        size_t length = cli_utf8(text, &value);
        bool shown = length > 0 && shows_as_itself(value);
        for (size_t left = length ? length : 1; left; left--, text++) {
            if (shown)
                *to++ = *text;
            else
                to = escape_byte(to, (unsigned char)*text);
        }
    }
    *to = 0;
    return whole;
}

/* One per character: without a locale there is no table of wide ones. */
static size_t columns_of(const char *text, size_t bytes) {
    size_t columns = 0;
    for (size_t i = 0; i < bytes; i++)
        columns += !continues(text[i]);
    return columns;
}

/* ---- The terminal ---------------------------------------------------------------------------- */

static bool is_dumb(void) {
    const char *kind = getenv("TERM");
    return !kind || !kind[0] || strcmp(kind, "dumb") == 0;
}

bool cli_is_screen(FILE *out) {
    return isatty(fileno(out)) && !is_dumb();
}

size_t cli_columns(FILE *out) {
    struct winsize size;
    if (!isatty(fileno(out)))
        return 0;
    if (ioctl(fileno(out), TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        return size.ws_col;
    const char *said = getenv("COLUMNS");
    long columns = said ? strtol(said, NULL, 10) : 0;
    return columns > 0 && columns < 10000 ? (size_t)columns : 80;
}

/* https://no-color.org: set to a non-empty value. */
const char *cli_paint(FILE *out, enum cli_colour colour) {
    static const char *const sequences[] = {"\033[0m", "\033[31m", "\033[32m", "\033[33m"};
    const char *unwanted = getenv("NO_COLOR");
    bool wanted = cli_is_screen(out) && !(unwanted && unwanted[0]);
    return wanted ? sequences[colour] : "";
}

/* ---- Lines ----------------------------------------------------------------------------------- */

/* The column where a wrapped line continues: that of the text after a table's last gap, if it
 * leaves half of the width; else that of the line's first word. */
static size_t hanging(const char *line, size_t width) {
    static const char name[] = "gpumem: ";
    size_t first = strspn(line, " "), column = first;
    if (strncmp(line, name, sizeof name - 1) == 0)
        return sizeof name - 1;
    for (size_t at = first; at < width / 2 && line[at]; at++) {
        size_t gap = strspn(line + at, " ");
        if (gap >= 2 && line[at + gap] && at + gap <= width / 2)
            column = at + gap;
        at += gap ? gap - 1 : 0;
    }
    return column < width / 2 ? column : 0;
}

/* The number of bytes of `line` that fit: up to the last blank within the width, or to the first
 * one after it, because words are not broken. */
static size_t cut(const char *line, size_t from, size_t width) {
    size_t best = 0, columns = 0;
    for (size_t at = 0; line[at]; at++) {
        if (line[at] == ' ' && at > from && line[at - 1] != ' ') {
            if (columns <= width || best == 0)
                best = at;
            if (columns >= width)
                return best;
        }
        columns += !continues(line[at]);
    }
    return columns <= width || best == 0 ? strlen(line) : best;
}

static void put(FILE *out, enum cli_colour colour, size_t *painted, const char *text,
                size_t bytes) {
    size_t part = *painted < bytes ? *painted : bytes;
    if (part > 0)
        fprintf(out, "%s%.*s%s", cli_paint(out, colour), (int)part, text,
                cli_paint(out, CLI_PLAIN));
    fprintf(out, "%.*s", (int)(bytes - part), text + part);
    *painted -= part;
}

static void wrap(FILE *out, enum cli_colour colour, size_t painted, const char *line) {
    size_t width = cli_columns(out);
    size_t indent = width ? hanging(line, width) : 0, from = indent, room = width;
    while (width && columns_of(line, strlen(line)) > room) {
        size_t bytes = cut(line, from, room);
        put(out, colour, &painted, line, bytes);
        line += bytes;
        line += strspn(line, " ");
        if (!*line)
            break;
        fprintf(out, "\n%*s", (int)indent, "");
        room = width - indent;
        from = 0;
    }
    put(out, colour, &painted, line, strlen(line));
    fputc('\n', out);
}

static void print(FILE *out, enum cli_colour colour, size_t painted, const char *format,
                  va_list args) {
    char *text = NULL, *shown = NULL;
    if (vasprintf(&text, format, args) >= 0)
        shown = cli_escape(text);
    wrap(out, colour, painted, shown ? shown : "(out of memory)");
    free(shown);
    free(text);
}

void cli_line(FILE *out, const char *format, ...) {
    va_list args;
    va_start(args, format);
    print(out, CLI_PLAIN, 0, format, args);
    va_end(args);
}

void cli_line_painted(FILE *out, enum cli_colour colour, size_t painted, const char *format, ...) {
    va_list args;
    va_start(args, format);
    print(out, colour, painted, format, args);
    va_end(args);
}

void cli_lines(FILE *out, const char *text) {
    while (*text) {
        size_t length = strcspn(text, "\n");
        cli_line(out, "%.*s", (int)length, text);
        text += length + (text[length] == '\n');
    }
}
