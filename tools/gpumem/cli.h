/* Common parts of the subcommands: the table of commands, exit statuses, option parsing.
 */
#ifndef CLI_H
#define CLI_H

#include <gpumem/driver.h>
#include <gpumem/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Exit statuses, documented in `gpumem help` and README. */
enum cli_exit {
    CLI_OK = 0,
    CLI_FAILED = 1,        /* anything without a status of its own */
    CLI_USAGE = 2,         /* the command line is wrong */
    CLI_NO_DEVICE = 3,     /* no driver, or no such device */
    CLI_FILE = 4,          /* the file cannot be read: absent, a directory, empty, not permitted */
    CLI_CHANGED = 5,       /* the file shrank or grew while it was read */
    CLI_NO_MEMORY = 6,     /* the device (or the host) has too little memory */
    CLI_MISMATCH = 7,      /* bytes on the device differ from the file */
    CLI_PEER = 8,          /* the second process failed */
    CLI_JUDGED = 9,        /* run --fail-on: the command succeeded, but the job failed */
    CLI_INTERRUPTED = 130, /* SIGINT or SIGTERM: undone and ended */
};

/*
 * A help text is also the source of the man page (tools/gpumem/manual) and of the shells'
 * completions (tools/gpumem/completion), so each has this form, which tests/cli/test_manual.py
 * checks:
 *
 *     usage: gpumem NAME [OPTION...] FILE
 *                                                 an empty line between parts
 *     Sentences.
 *
 *       --option              what it does: each option that the command takes, its own column for
 *                             what it does; more lines of that begin there too
 *       --option FILE         capitals stand for something else: see the kinds in the completions
 *       --option[=FILE]       the value may be left out; completions offer the option without it
 *       --option this|that    small letters for what is typed
 *       --option LIST         of the values that are listed below it, further to the right:
 *                               value  what it means
 *
 *     Exit status: the last part.
 */
struct cli_command {
    const char *name;
    const char *summary; /* one line */
    const char *usage;   /* printed by `gpumem help NAME` and --help */
    int (*run)(int argc, char **argv);
    bool hidden; /* not listed: for gpumem's own use */
};

/* Of an open driver. */
gpumem_driver_info cli_driver_info(const gpumem_driver *driver);

/* main.c: ended by a NULL name. */
extern const struct cli_command cli_commands[];

int cmd_attach(int argc, char **argv);
int cmd_info(int argc, char **argv);
int cmd_doctor(int argc, char **argv);
int cmd_driver(int argc, char **argv);
int cmd_load(int argc, char **argv);
int cmd_map(int argc, char **argv);
int cmd_receive(int argc, char **argv);
int cmd_replay(int argc, char **argv);
int cmd_run(int argc, char **argv);
int cmd_share(int argc, char **argv);
extern const char cmd_info_usage[];
extern const char cmd_doctor_usage[];
extern const char cmd_driver_usage[];
extern const char cmd_load_usage[];
extern const char cmd_map_usage[];
extern const char cmd_replay_usage[];
extern const char cmd_run_usage[];
extern const char cmd_share_usage[];

/* "gpumem: <text>" on standard error; returns `status`. */
int cli_error(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Reports gpumem_last_error() and returns the exit status for `status`. */
int cli_fail(gpumem_status status);

/* With --json a failure is an object too. A command that ends with a failure and has printed no
 * JSON of its own gets one, with the first error that it reported. */
void cli_json_wanted(void);
void cli_print_failure(int status);

/*
 * The next option, as from getopt_long, or -1 after the last. Unlike getopt_long, it reports errors
 * itself: after '?' the caller only sets the exit status. Values of `options` are above 255, so
 * that letters are not mistaken for them. `stop`: ends at the first word that is not an option.
 * --help and -h end like an error, without a message: main prints the help.
 */
struct option;
int cli_option(const char *command, int argc, char **argv, const struct option *options, bool stop);
bool cli_help_wanted(void);

/* "64M" and so on to bytes (K, M, G, T are powers of 1024). False if it is not a size. */
bool cli_parse_size(const char *text, uint64_t *bytes);

/* A device number, 0 to 9999. False if it is not one. */
bool cli_parse_ordinal(const char *text, int *ordinal);

/* Seconds of the monotonic clock. */
double cli_now(void);

/* "1.50 GiB/s"; "-" if no time passed. `text` holds at least 40 bytes; returned. */
char *cli_format_rate(uint64_t bytes, double seconds, char *text);

/* "1 chunk" or "2 chunks": the form for the count. */
const char *cli_plural(uint64_t count, const char *one, const char *many);

/* Why no Vulkan driver has a device: the reason, or where it is one for each of several libraries,
 * and they were not asked for, how to get them. */
const char *cli_vulkan_reason(const char *reason, bool verbose);

/* "1.50 GiB". `text` holds at least 32 bytes; returned. */
char *cli_format_size(uint64_t bytes, char *text);

#endif
