#include "softgpu/device/ini.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static char *strip(char *text) {
    while (isspace((unsigned char)*text))
        text++;
    for (char *end = text + strlen(text); end > text && isspace((unsigned char)end[-1]);)
        *--end = 0;
    return text;
}

/* Cuts off a comment behind what is said. */
static void cut(char *line) {
    for (char *at = line; *at; at++)
        if (*at == ';' && (at == line || isspace((unsigned char)at[-1]))) {
            *at = 0;
            return;
        }
}

/* One line; `section` is that of the lines before, and of a line of its own from then on. */
static int read_line(char *line, const char **section, sg_ini_line read, void *user) {
    cut(line);
    line = strip(line);
    size_t length = strlen(line);
    if (length == 0 || line[0] == '#')
        return 1;
    if (line[0] == '[') {
        if (line[length - 1] != ']')
            return 0;
        line[length - 1] = 0;
        *section = strip(line + 1);
        return 1;
    }
    char *sign = strchr(line, '=');
    if (!sign)
        return 0;
    *sign = 0;
    return read(user, *section, strip(line), strip(sign + 1));
}

int sg_ini_read(const char *text, sg_ini_line read, void *user) {
    char *copy = strdup(text), *rest = copy, *line;
    const char *section = "";
    int number = 0, wrong = 0;
    if (!copy)
        return -1;
    while (wrong == 0 && (line = strsep(&rest, "\n"))) {
        number++;
        if (!read_line(line, &section, read, user))
            wrong = number;
    }
    free(copy);
    return wrong;
}
