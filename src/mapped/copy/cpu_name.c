#include "base/descriptor.h"
#include "base/printable.h"
#include "mapped/copy/copy.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

/* "model name\t: AMD EPYC 9575F 64-Core Processor\n", for the first processor. */
static bool model_of(char *line, char name[GM_COPY_KEY_ROOM]) {
    static const char label[] = "model name";
    char *colon = strchr(line, ':');
    if (strncmp(line, label, sizeof label - 1) != 0 || !colon)
        return false;
    colon++;
    colon += strspn(colon, " \t");
    size_t length = strcspn(colon, "\n");
    while (length > 0 && isspace((unsigned char)colon[length - 1]))
        length--;
    colon[length] = 0;
    return length > 0 && gm_printable(colon, name, GM_COPY_KEY_ROOM) > 0;
}

void gm_copy_cpu_name(char name[GM_COPY_KEY_ROOM]) {
    char line[512];
    struct utsname machine;
    bool found = false;
    FILE *file = gm_fd_stream("/proc/cpuinfo", "r");
    while (file && !found && fgets(line, sizeof line, file))
        found = model_of(line, name);
    if (file)
        fclose(file);
    if (!found)
        snprintf(name, GM_COPY_KEY_ROOM, "%s", uname(&machine) == 0 ? machine.machine : "unknown");
}
