/* gpumem map: draws a snapshot as a self-contained HTML page. */
#include "cli.h"
#include "map.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SCHEMA  "gpumem.snapshot"
#define VERSION 1

const char cmd_map_usage[] =
    "usage: gpumem map [OPTION...] SNAPSHOT\n"
    "       gpumem map [OPTION...] --demo\n"
    "\n"
    "Draws a snapshot as one HTML page: address space, physical memory, resources,\n"
    "buffers. The page needs no network. A program takes a snapshot with\n"
    "gpumem_snapshot (gpumem/snapshot.h); SNAPSHOT is the file that it wrote, or -\n"
    "for standard input.\n"
    "\n"
    "  --output FILE    where to write the page; default standard output\n"
    "  --log FILE       a history to show on the page: CSV with a line of names, as\n"
    "                   written by gpumem_trace_resource_create, or with the columns\n"
    "                   time,event,resource,address,bytes (docs/snapshot.md)\n"
    "  --demo           briefly allocates every kind of memory and draws that\n"
    "  --snapshot FILE  with --demo: writes the snapshot too\n"
    "  --driver CHOICE  with --demo: nvidia, softgpu, or a path\n"
    "  --device N       with --demo: the device (0)\n"
    "\n"
    "Exit status: 0 drawn, 2 wrong usage, 3 no driver or device, 4 the snapshot or\n"
    "the log cannot be read or is invalid, or the page's file cannot be created, 6\n"
    "too little memory, 1 anything else.\n";

struct arguments {
    const char *driver, *output, *log, *snapshot, *save;
    int device;
    bool demo;
};

/* ---- The page -------------------------------------------------------------------------------- */

/* JSON inside a script element: HTML gives meaning only to sequences that begin with '<'. In JSON
 * it occurs only in strings, where it may be escaped. */
static void put_json(FILE *out, const char *text) {
    for (size_t plain; *text; text += plain) {
        if (*text == '<')
            fputs("\\u003c", out);
        text += *text == '<';
        plain = strcspn(text, "<");
        fwrite(text, 1, plain, out);
    }
}

/* Any bytes as a JSON string. Bytes other than ASCII are written unchanged: browsers turn invalid
 * UTF-8 into U+FFFD. */
static void put_string(FILE *out, const char *text) {
    fputc('"', out);
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c < 0x20 || c == '"' || c == '\\' || c == '<' || c == 0x7f)
            fprintf(out, "\\u%04x", c);
        else
            fputc(c, out);
    }
    fputc('"', out);
}

static void put_part(FILE *out, const char *name, const struct cli_text *snapshot,
                     const struct cli_text *history) {
    if (strcmp(name, "STYLE") == 0)
        fputs(map_page_css, out);
    else if (strcmp(name, "SCRIPT") == 0)
        fputs(map_page_js, out);
    else if (strcmp(name, "SNAPSHOT") == 0)
        put_json(out, snapshot->text);
    else if (history->text)
        put_string(out, history->text);
    else
        fputs("null", out);
}

/* Lines of the page such as @STYLE@ are replaced by its parts. */
static void put_page(FILE *out, const struct cli_text *snapshot, const struct cli_text *history) {
    for (const char *at = map_page_html; *at;) {
        size_t length = strcspn(at, "\n");
        char name[16];
        if (*at == '@' && length > 2 && length < sizeof name) {
            snprintf(name, sizeof name, "%.*s", (int)(length - 2), at + 1);
            put_part(out, name, snapshot, history);
        } else {
            fwrite(at, 1, length, out);
        }
        fputc('\n', out);
        at += length + (at[length] == '\n');
    }
}

static int write_page(const char *path, const struct cli_text *snapshot,
                      const struct cli_text *history) {
    char *text = NULL;
    size_t size = 0;
    FILE *memory = open_memstream(&text, &size);
    if (memory)
        put_page(memory, snapshot, history);
    if (!memory || fclose(memory) != 0) {
        free(text);
        return cli_error(CLI_NO_MEMORY, "map: no memory for the page");
    }
    int status = CLI_OK;
    if (path)
        status = map_write(path, text, size);
    else
        fwrite(text, 1, size, stdout);
    free(text);
    return status;
}

/* ---- Inputs ---------------------------------------------------------------------------------- */

static int check_snapshot(const char *path, const struct cli_text *snapshot) {
    struct map_facts facts = map_check(snapshot->text);
    if (!facts.valid)
        return cli_error(CLI_FILE, "%s:%zu: not JSON", path, facts.line);
    if (strcmp(facts.schema, SCHEMA) != 0)
        return cli_error(CLI_FILE,
                         "%s: not a snapshot: its member \"schema\" is not \"" SCHEMA "\"", path);
    if (facts.version != VERSION)
        return cli_error(CLI_FILE, "%s: a snapshot of version %ld; this command draws version %d",
                         path, facts.version, VERSION);
    return CLI_OK;
}

static int read_log(const char *path, struct cli_text *history) {
    int status = map_read(path, history);
    if (status != CLI_OK)
        return status;
    const char *line = history->text;
    while (*line == '#')
        line += strcspn(line, "\n") + (line[strcspn(line, "\n")] == '\n');
    char head[256];
    snprintf(head, sizeof head, ",%.*s,", (int)strcspn(line, "\r\n"), line);
    if (!strstr(head, ",event,") || !strstr(head, ",bytes,") ||
        (!strstr(head, ",time,") && !strstr(head, ",time_ns,")) ||
        (!strstr(head, ",address,") && !strstr(head, ",pointer,")))
        return cli_error(
            CLI_FILE, "%s: not a log: its first line does not name time, event, address and bytes",
            path);
    return CLI_OK;
}

static int gather(const struct arguments *arguments, struct cli_text *snapshot,
                  struct cli_text *history) {
    int status;
    if (arguments->demo) {
        status = map_demo(arguments->driver, arguments->device, snapshot, history);
        if (status == CLI_OK && arguments->save)
            status = map_write(arguments->save, snapshot->text, snapshot->size);
    } else {
        status = map_read(arguments->snapshot, snapshot);
        if (status == CLI_OK)
            status = check_snapshot(arguments->snapshot, snapshot);
    }
    if (status == CLI_OK && arguments->log) {
        free(history->text);
        *history = (struct cli_text){0};
        status = read_log(arguments->log, history);
    }
    return status;
}

/* ---- The command line ------------------------------------------------------------------------ */

static int check_arguments(const struct arguments *a, int left, char **rest) {
    if (a->demo && left)
        return cli_error(CLI_USAGE, "map: --demo draws its own snapshot, not '%s'", rest[0]);
    if (!a->demo && !left)
        return cli_error(CLI_USAGE,
                         "map: give a SNAPSHOT; 'gpumem map --demo --driver softgpu' makes one");
    if (left > 1)
        return cli_error(CLI_USAGE, "map: unexpected argument '%s'", rest[1]);
    if (!a->demo && (a->save || a->driver || a->device >= 0))
        return cli_error(CLI_USAGE, "map: --snapshot, --driver and --device go with --demo");
    if (!a->output && isatty(STDOUT_FILENO))
        return cli_error(CLI_USAGE, "map: will not write a page to a terminal; give --output FILE");
    return CLI_OK;
}

static int parse(int argc, char **argv, struct arguments *arguments) {
    enum { DRIVER = 256, DEVICE, OUTPUT, LOG, SAVE, DEMO };
    static const struct option options[] = {
        {"driver", required_argument, NULL, DRIVER},
        {"device", required_argument, NULL, DEVICE},
        {"output", required_argument, NULL, OUTPUT},
        {"log", required_argument, NULL, LOG},
        {"snapshot", required_argument, NULL, SAVE},
        {"demo", no_argument, NULL, DEMO},
        {0},
    };
    int option;
    while ((option = cli_option("map", argc, argv, options, false)) != -1) {
        if (option == DRIVER)
            arguments->driver = optarg;
        else if (option == OUTPUT)
            arguments->output = optarg;
        else if (option == LOG)
            arguments->log = optarg;
        else if (option == SAVE)
            arguments->save = optarg;
        else if (option == DEMO)
            arguments->demo = true;
        else if (option != DEVICE)
            return CLI_USAGE;
        else if (!cli_parse_ordinal(optarg, &arguments->device))
            return cli_error(CLI_USAGE, "map: '%s' is not a device number", optarg);
    }
    arguments->snapshot = optind < argc ? argv[optind] : NULL;
    return check_arguments(arguments, argc - optind, argv + optind);
}

int cmd_map(int argc, char **argv) {
    struct arguments arguments = {.device = -1};
    struct cli_text snapshot = {0}, history = {0};
    int status = parse(argc, argv, &arguments);
    if (status == CLI_OK)
        status = gather(&arguments, &snapshot, &history);
    if (status == CLI_OK)
        status = write_page(arguments.output, &snapshot, &history);
    free(snapshot.text);
    free(history.text);
    return status;
}
