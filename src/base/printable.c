#include "base/printable.h"

#include <stdbool.h>
#include <string.h>

size_t gm_utf8_decode(const char *at, unsigned *value) {
    static const unsigned least[] = {0, 0, 0x80, 0x800, 0x10000};
    const unsigned char *text = (const unsigned char *)at;
    unsigned first = text[0];
    size_t length = first < 0x80 ? 1 : first < 0xc0 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    if (length == 0 || first >= 0xf8)
        return 0;
    unsigned got = length == 1 ? first : first & (0x7fu >> length);
    for (size_t i = 1; i < length; i++) {
        if ((text[i] & 0xc0) != 0x80)
            return 0;
        got = got << 6 | (text[i] & 0x3fu);
    }
    if (length > 1 && (got < least[length] || (got >= 0xd800 && got < 0xe000) || got > 0x10ffff))
        return 0;
    *value = got;
    return length;
}

/* Not a control character, nor one that changes the text direction or ends a line. */
static bool shows_as_itself(unsigned value) {
    if (value < 0x20 || (value >= 0x7f && value < 0xa0))
        return false;
    return !(value == 0x200e || value == 0x200f || (value >= 0x2028 && value <= 0x202e) ||
             (value >= 0x2066 && value <= 0x2069));
}

size_t gm_printable(const char *text, char *to, size_t size) {
    static const char digits[] = "0123456789abcdef";
    const unsigned char *at = (const unsigned char *)text;
    size_t used = 0;
    while (*at) {
        unsigned value = 0;
        size_t length = gm_utf8_decode((const char *)at, &value);
        bool shown = length > 0 && shows_as_itself(value);
        size_t bytes = length ? length : 1;
        if (used + (shown ? bytes : 4 * bytes) >= size)
            break;
        for (; bytes > 0; bytes--, at++) {
            if (shown) {
                to[used++] = (char)*at;
                continue;
            }
            memcpy(to + used, "\\x", 2);
            to[used + 2] = digits[*at >> 4];
            to[used + 3] = digits[*at & 0xf];
            used += 4;
        }
    }
    to[used] = '\0';
    return used;
}
