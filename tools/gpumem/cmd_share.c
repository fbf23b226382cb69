/* gpumem share: a process grows and shrinks a buffer while others have imported it, and kills one
 * of them. */
#include "cli.h"
#include "json.h"
#include "share.h"
#include "terminal.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

const char cmd_share_usage[] =
    "usage: gpumem share [OPTION...]\n"
    "\n"
    "Demonstrates memory that processes share while it grows. This process, the\n"
    "owner, allocates a buffer and listens; others connect by path and import it.\n"
    "The owner grows the buffer, and each importer requests the growth, which leaves\n"
    "its address unchanged. One is killed; the owner and the rest go on. The owner\n"
    "detaches its export and shrinks, which takes nothing from the others. When all\n"
    "have let go, the device has its memory back. Every step is checked with bytes\n"
    "that all of them write.\n"
    "\n"
    "  --driver CHOICE  nvidia, softgpu, or a path\n"
    "  --device N       device number (0)\n"
    "  --size SIZE      initial bytes of the buffer, default 64M; it grows to twice\n"
    "                   as much\n"
    "  --processes N    that import, 2 to 32 (3)\n"
    "  --at PATH        where they connect: a socket file, or @NAME (@gpumem-share-\n"
    "                   and this pid)\n"
    "  --json           print one JSON object\n"
    "\n"
    "Exit status: 0 every step succeeded, 2 wrong usage, 3 no driver or device, 6\n"
    "too little memory, 7 bytes are wrong, 8 another process failed, 130\n"
    "interrupted, 1 anything else.\n";

enum step { BEFORE, SHARED, GROWN, KILLED, SHRUNK, AFTER, STEPS };
static const char *const step_names[STEPS] = {"before", "shared", "grown",
                                              "killed", "shrunk", "after"};

struct show {
    const struct share_arguments *arguments;
    char driver[4096], path[128];
    gpumem_device *device;
    gpumem_resource *resource;
    gpumem_buffer *buffer;
    gpumem_export *exported;
    struct share_process processes[SHARE_MOST_PROCESSES];
    uint64_t addresses[SHARE_MOST_PROCESSES]; /* of the import in each process */
    int pids[SHARE_MOST_PROCESSES];
    unsigned victim;
    uint32_t round;
    uint64_t free_bytes[STEPS];
    gpumem_stats stats[STEPS];
};

/* ---- Steps ----------------------------------------------------------------------------------- */

static int note(struct show *show, enum step step) {
    uint64_t total;
    show->stats[step].size = sizeof show->stats[step];
    gpumem_status status = gpumem_device_get_memory(show->device, &show->free_bytes[step], &total);
    if (status == GPUMEM_OK)
        status = gpumem_device_get_stats(show->device, &show->stats[step]);
    return status == GPUMEM_OK ? CLI_OK : cli_fail(status);
}

static bool is_running(const struct show *show, unsigned i) {
    return show->processes[i].pid != 0;
}

static int ask(struct show *show, unsigned i, const struct share_command *command) {
    int connection = show->processes[i].connection;
    if (!share_send(connection, command, sizeof *command))
        return cli_error(CLI_PEER, "share: process %d is gone", show->pids[i]);
    gpumem_status status = GPUMEM_OK;
    if (command->word == SHARE_UPDATE)
        status = gpumem_export_answer(show->exported, connection, NULL);
    return status == GPUMEM_OK ? CLI_OK : cli_fail(status);
}

static int hear(struct show *show, unsigned i) {
    struct share_reply reply;
    if (!share_receive(show->processes[i].connection, &reply, sizeof reply))
        return cli_error(CLI_PEER, "share: process %d is gone or does not answer", show->pids[i]);
    if (!reply.good)
        return cli_error(CLI_PEER, "share: process %d failed", show->pids[i]);
    if (show->addresses[i] && reply.address != show->addresses[i])
        return cli_error(CLI_FAILED, "share: the address in process %d has changed", show->pids[i]);
    show->addresses[i] = reply.address;
    return CLI_OK;
}

/* All running processes carry out a request, one after another. */
static int tell_all(struct show *show, const struct share_command *command) {
    int result = CLI_OK;
    for (unsigned i = 0; i < show->arguments->processes && result == CLI_OK; i++) {
        if (!is_running(show, i))
            continue;
        result = ask(show, i, command);
        if (result == CLI_OK)
            result = hear(show, i);
    }
    return result;
}

/* Each process writes its part, and then reads the parts of all others. */
static int exchange(struct show *show, size_t offset) {
    struct share_command command = {
        .word = SHARE_WRITE, .round = ++show->round, .offset = offset, .writers = 1};
    for (unsigned i = 0; i < show->arguments->processes; i++)
        command.writers |= (uint64_t)is_running(show, i) << (i + 1);
    int result = share_write(show->buffer, 0, &command);
    if (result == CLI_OK)
        result = tell_all(show, &command);
    command.word = SHARE_CHECK;
    if (result == CLI_OK)
        result = share_check(show->buffer, &command);
    return result == CLI_OK ? tell_all(show, &command) : result;
}

static int take_in(struct show *show, int connection, int pid) {
    unsigned i = 0;
    while (i < show->arguments->processes && (show->processes[i].pid != pid || !pid))
        i++;
    if (i == show->arguments->processes || show->processes[i].connection >= 0) {
        close(connection);
        return cli_error(CLI_PEER, "share: process %d was not started here", pid);
    }
    show->processes[i].connection = connection;
    /* A process that hangs does not keep the others waiting for ever. */
    const struct timeval most = {.tv_sec = SHARE_MOST_SECONDS};
    (void)setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof most);
    gpumem_status status = gpumem_export_send(show->exported, connection, NULL);
    return status == GPUMEM_OK ? CLI_OK : cli_fail(status);
}

static int accept_all(struct show *show, gpumem_listener *listener) {
    int result = CLI_OK;
    for (unsigned i = 0; i < show->arguments->processes && result == CLI_OK; i++) {
        gpumem_connection_peer peer = {.size = sizeof peer};
        int connection = -1;
        gpumem_status status = gpumem_accept(listener, NULL, &connection, &peer);
        result = status == GPUMEM_OK ? take_in(show, connection, peer.pid) : cli_fail(status);
    }
    return result;
}

static int share_with_all(struct show *show) {
    gpumem_listener *listener = NULL;
    gpumem_status status = gpumem_export_create(show->buffer, &show->exported);
    if (status == GPUMEM_OK)
        status = gpumem_listen(show->path, NULL, &listener);
    if (status != GPUMEM_OK)
        return cli_fail(status);
    int result = share_start(show->arguments, show->driver, show->path, show->processes);
    for (unsigned i = 0; i < show->arguments->processes; i++)
        show->pids[i] = (int)show->processes[i].pid;
    if (result == CLI_OK)
        result = accept_all(show, listener);
    gpumem_listener_close(listener);
    if (result == CLI_OK)
        result = exchange(show, 0);
    return result == CLI_OK ? note(show, SHARED) : result;
}

static int grow(struct show *show) {
    size_t bytes = (size_t)show->arguments->bytes;
    gpumem_status status = gpumem_buffer_grow(show->buffer, 2 * bytes, NULL);
    if (status == GPUMEM_OK)
        status = gpumem_export_update(show->exported);
    if (status != GPUMEM_OK)
        return cli_fail(status);
    int result = tell_all(show, &(struct share_command){.word = SHARE_UPDATE});
    if (result == CLI_OK)
        result = exchange(show, bytes);
    return result == CLI_OK ? note(show, GROWN) : result;
}

/* Kills a process in the middle of an operation. */
static int kill_one(struct show *show) {
    show->victim = show->arguments->processes / 2;
    int status = share_kill(&show->processes[show->victim]);
    if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
        return cli_error(CLI_PEER, "share: process %d had ended before it was killed",
                         show->pids[show->victim]);
    int result = exchange(show, 0);
    if (result == CLI_OK)
        result = exchange(show, (size_t)show->arguments->bytes);
    return result == CLI_OK ? note(show, KILLED) : result;
}

/* The others keep the whole buffer, and share the first half with the owner. */
static int detach_and_shrink(struct show *show) {
    size_t bytes = (size_t)show->arguments->bytes;
    struct share_command last = {.word = SHARE_CHECK, .round = show->round, .offset = bytes};
    for (unsigned i = 0; i < show->arguments->processes; i++)
        last.writers |= (uint64_t)is_running(show, i) << (i + 1);
    gpumem_status status = gpumem_export_detach(show->exported);
    if (status == GPUMEM_OK)
        status = gpumem_buffer_shrink(show->buffer, bytes, NULL);
    if (status != GPUMEM_OK)
        return cli_fail(status);
    int result = tell_all(show, &last);
    if (result == CLI_OK)
        result = exchange(show, 0);
    return result == CLI_OK ? note(show, SHRUNK) : result;
}

static int end_others(struct show *show) {
    const struct share_command quit = {.word = SHARE_QUIT};
    int result = CLI_OK;
    for (unsigned i = 0; i < show->arguments->processes; i++) {
        if (!is_running(show, i))
            continue;
        int status = 0;
        bool told = share_send(show->processes[i].connection, &quit, sizeof quit);
        pid_t ended = 0;
        do
            ended = told ? waitpid(show->processes[i].pid, &status, 0) : 0;
        while (ended < 0 && errno == EINTR);
        if (ended != show->processes[i].pid || status)
            result =
                cli_error(CLI_PEER, "share: process %d did not exit successfully", show->pids[i]);
        else
            show->processes[i].pid = 0;
        share_kill(&show->processes[i]);
    }
    return result;
}

/* ---- Giving back ----------------------------------------------------------------------------- */

static void first_failure(int *result, gpumem_status status) {
    if (status != GPUMEM_OK && *result == CLI_OK)
        *result = cli_fail(status);
}

static int give_back(struct show *show, int result) {
    for (unsigned i = 0; i < show->arguments->processes; i++)
        share_kill(&show->processes[i]);
    first_failure(&result, gpumem_export_destroy(show->exported));
    first_failure(&result, gpumem_buffer_free(show->buffer, NULL));
    first_failure(&result, gpumem_device_trim(show->device, 1));
    if (result == CLI_OK)
        result = note(show, AFTER);
    const gpumem_stats *left = &show->stats[AFTER];
    if (result == CLI_OK && (left->committed_bytes || left->exports || left->mappings ||
                             left->reserved_bytes || left->quarantined))
        result = cli_error(CLI_FAILED, "share: %" PRIu64 " bytes were not given back",
                           left->committed_bytes);
    first_failure(&result, gpumem_resource_destroy(show->resource));
    return result;
}

static int run_steps(struct show *show) {
    int result = note(show, BEFORE);
    if (result != CLI_OK)
        return result;
    gpumem_status status = gpumem_virtual_resource_create(show->device, NULL, &show->resource);
    if (status == GPUMEM_OK)
        status = gpumem_buffer_allocate(
            show->resource, (size_t)show->arguments->bytes,
            GPUMEM_BUFFER_OPTIONS(.capacity = 2 * (size_t)show->arguments->bytes), &show->buffer);
    result = status == GPUMEM_OK ? share_with_all(show) : cli_fail(status);
    if (result == CLI_OK)
        result = grow(show);
    if (result == CLI_OK)
        result = kill_one(show);
    if (result == CLI_OK)
        result = detach_and_shrink(show);
    return result == CLI_OK ? end_others(show) : result;
}

/* ---- Printing -------------------------------------------------------------------------------- */

static char *list_pids(const struct show *show, char *text, size_t size) {
    size_t used = 0;
    for (unsigned i = 0; i < show->arguments->processes && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%d", i ? ", " : "", show->pids[i]);
    return text;
}

static void print_text(const struct show *show) {
    char once[32], twice[32], text[SHARE_MOST_PROCESSES * 14];
    unsigned count = show->arguments->processes;
    cli_format_size(show->arguments->bytes, once);
    cli_format_size(2 * show->arguments->bytes, twice);
    cli_line(stdout, "shared    %s with %u processes (%s), connected at %s", once, count,
             list_pids(show, text, sizeof text), show->path);
    cli_line(stdout, "grown     to %s; each imported the growth, at an unchanged address", twice);
    cli_line(stdout, "killed    process %d; the owner and the %u others go on",
             show->pids[show->victim], count - 1);
    cli_line(stdout, "shrunk    to %s after a detach; the others still have %s", once, twice);
    for (int step = BEFORE; step < STEPS; step++) {
        char free_text[32], own[32];
        cli_line(stdout, "memory    %-7s %10s free on the device, %10s held by the owner",
                 step_names[step], cli_format_size(show->free_bytes[step], free_text),
                 cli_format_size(show->stats[step].committed_bytes, own));
    }
    cli_line(stdout, "done      all memory was given back");
}

static int print_json(const struct show *show) {
    struct json json;
    json_begin(&json);
    json_open(&json, NULL, '{');
    json_string(&json, "driver", show->driver);
    json_string(&json, "path", show->path);
    json_unsigned(&json, "bytes", show->arguments->bytes);
    json_unsigned(&json, "grown_bytes", 2 * show->arguments->bytes);
    json_open(&json, "processes", '[');
    for (unsigned i = 0; i < show->arguments->processes; i++)
        json_integer(&json, NULL, show->pids[i]);
    json_close(&json, ']');
    json_integer(&json, "killed", show->pids[show->victim]);
    json_open(&json, "steps", '[');
    for (int step = BEFORE; step < STEPS; step++) {
        json_open(&json, NULL, '{');
        json_string(&json, "step", step_names[step]);
        json_unsigned(&json, "device_free_bytes", show->free_bytes[step]);
        json_unsigned(&json, "owner_committed_bytes", show->stats[step].committed_bytes);
        json_unsigned(&json, "owner_exports", show->stats[step].exports);
        json_close(&json, '}');
    }
    json_close(&json, ']');
    json_close(&json, '}');
    return json_print(&json);
}

/* ---- The command ----------------------------------------------------------------------------- */

static int run(const void *user, gpumem_library *library, gpumem_device *device) {
    const struct share_arguments *arguments = user;
    struct show show = {.arguments = arguments, .device = device};
    gpumem_library_info info = {.size = sizeof info};
    gpumem_status status = gpumem_library_get_info(library, &info);
    if (status != GPUMEM_OK)
        return cli_fail(status);
    snprintf(show.driver, sizeof show.driver, "%s", info.driver_path);
    if (arguments->place.path)
        snprintf(show.path, sizeof show.path, "%s", arguments->place.path);
    else
        snprintf(show.path, sizeof show.path, "@gpumem-share-%d", (int)getpid());
    for (unsigned i = 0; i < SHARE_MOST_PROCESSES; i++)
        show.processes[i].connection = -1;
    int result = give_back(&show, run_steps(&show));
    if (result != CLI_OK)
        return result;
    if (arguments->json)
        return print_json(&show);
    print_text(&show);
    return CLI_OK;
}

enum { SIZE = SHARE_OWN_OPTIONS, PROCESSES, JSON };

static bool parse_processes(const char *text, unsigned *count) {
    int number;
    if (!cli_parse_ordinal(text, &number) || number < 2 || number > SHARE_MOST_PROCESSES)
        return false;
    *count = (unsigned)number;
    return true;
}

static bool take_option(int option, const char *value, void *user) {
    struct share_arguments *arguments = user;
    if (option == SIZE)
        return cli_parse_size(value, &arguments->bytes);
    if (option == PROCESSES)
        return parse_processes(value, &arguments->processes);
    arguments->json = true;
    return true;
}

static int parse(int argc, char **argv, struct share_arguments *arguments) {
    static const struct option options[] = {
        {"driver", required_argument, NULL, SHARE_DRIVER},
        {"device", required_argument, NULL, SHARE_DEVICE},
        {"at", required_argument, NULL, SHARE_AT},
        {"size", required_argument, NULL, SIZE},
        {"processes", required_argument, NULL, PROCESSES},
        {"json", no_argument, NULL, JSON},
        {0},
    };
    int result =
        share_parse("share", argc, argv, options, &arguments->place, take_option, arguments);
    if (result != CLI_OK)
        return result;
    if (optind < argc)
        return cli_error(CLI_USAGE, "share: unexpected argument '%s'; try 'gpumem help share'",
                         argv[optind]);
    if (arguments->bytes < (SHARE_MOST_PROCESSES + 1) * SHARE_PART || arguments->bytes > (uint64_t)1
                                                                                             << 38)
        return cli_error(CLI_USAGE, "share: the size is 132K at least, and 256G at most");
    if (arguments->place.path && strlen(arguments->place.path) > 107)
        return cli_error(CLI_USAGE, "share: the path of a socket has at most 107 bytes");
    return CLI_OK;
}

int cmd_share(int argc, char **argv) {
    struct share_arguments arguments = {.bytes = (uint64_t)64 << 20, .processes = 3};
    int result = parse(argc, argv, &arguments);
    if (result != CLI_OK)
        return result;
    return share_on_device(&arguments.place, run, &arguments);
}
