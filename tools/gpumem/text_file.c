#include "text_file.h"

#include "cli.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_ROOM ((size_t)64 << 10)

static bool make_room(struct cli_text *text, size_t room) {
    char *grown = realloc(text->text, room);
    if (grown)
        text->text = grown;
    return grown != NULL;
}

int cli_read_text(FILE *file, const char *path, size_t most, struct cli_text *text) {
    int status = CLI_OK;
    *text = (struct cli_text){0};
    for (size_t room = FIRST_ROOM; status == CLI_OK; room *= 2) {
        if (room > SIZE_MAX / 2 || !make_room(text, room)) {
            status = cli_error(CLI_NO_MEMORY, "%s: no memory for it", path);
            break;
        }
        size_t wanted = room - 1 - text->size;
        char *at = text->text + text->size;
        size_t got = fread(at, 1, wanted, file);
        text->size += got;
        text->text[text->size] = 0;
        if (got < wanted && ferror(file))
            status = cli_error(CLI_FILE, "%s: %s", path, strerror(errno));
        else if (memchr(at, 0, got))
            status = cli_error(CLI_FILE, "%s: not text: it contains a zero byte", path);
        else if (text->size > most)
            status = cli_error(CLI_FILE, "%s: more than %zu MiB are too much", path, most >> 20);
        else if (got < wanted)
            return CLI_OK;
    }
    free(text->text);
    *text = (struct cli_text){0};
    return status;
}
