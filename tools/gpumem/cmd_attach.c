/* gpumem attach: one of the processes that gpumem share starts. It imports the owner's buffer and
 * carries out the owner's requests. */
#include "cli.h"
#include "share.h"

#include <getopt.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

struct attach_arguments {
    struct share_place place;
    int number;
    uint64_t capacity; /* the size it may grow to; only address space */
};

/* Carries out a request; false: it failed. */
static bool obey(gpumem_buffer *buffer, int connection, unsigned number,
                 const struct share_command *command) {
    if (command->word == SHARE_UPDATE) {
        gpumem_status status = gpumem_import_update(buffer, connection, NULL);
        return status == GPUMEM_OK || cli_fail(status) == CLI_OK;
    }
    if (command->word == SHARE_WRITE)
        return share_write(buffer, number, command) == CLI_OK;
    return share_check(buffer, command) == CLI_OK;
}

/* Runs until asked to quit, or until the owner is gone. */
static int follow(gpumem_buffer *buffer, int connection, unsigned number) {
    struct share_command command;
    while (share_receive(connection, &command, sizeof command)) {
        if (command.word == SHARE_QUIT)
            return CLI_OK;
        bool good = obey(buffer, connection, number, &command);
        struct share_reply reply = {.good = good,
                                    .address = gpumem_buffer_pointer(buffer),
                                    .bytes = gpumem_buffer_size(buffer)};
        if (!share_send(connection, &reply, sizeof reply))
            break;
    }
    return cli_error(CLI_PEER, "attach: the owner is gone");
}

static int import_and_follow(const void *user, gpumem_library *library, gpumem_device *device) {
    const struct attach_arguments *arguments = user;
    (void)library;
    int connection = -1;
    gpumem_buffer *buffer = NULL;
    gpumem_status status = gpumem_connect(arguments->place.path, NULL, &connection, NULL);
    if (status != GPUMEM_OK)
        return cli_fail(status);
    status = gpumem_import_receive(
        device, connection, GPUMEM_SHARE_OPTIONS(.capacity = (size_t)arguments->capacity), &buffer);
    int result = status == GPUMEM_OK ? CLI_OK : cli_fail(status);
    if (result == CLI_OK) {
        result = follow(buffer, connection, (unsigned)arguments->number);
        status = gpumem_buffer_free(buffer, NULL);
        if (result == CLI_OK && status != GPUMEM_OK)
            result = cli_fail(status);
    }
    close(connection);
    return result;
}

enum { NUMBER = SHARE_OWN_OPTIONS, CAPACITY };

static bool take_option(int option, const char *value, void *user) {
    struct attach_arguments *arguments = user;
    return option == NUMBER ? cli_parse_ordinal(value, &arguments->number)
                            : cli_parse_size(value, &arguments->capacity);
}

static int parse(int argc, char **argv, struct attach_arguments *arguments) {
    static const struct option options[] = {
        {"driver", required_argument, NULL, SHARE_DRIVER},
        {"device", required_argument, NULL, SHARE_DEVICE},
        {"at", required_argument, NULL, SHARE_AT},
        {"number", required_argument, NULL, NUMBER},
        {"capacity", required_argument, NULL, CAPACITY},
        {0},
    };
    int result =
        share_parse("attach", argc, argv, options, &arguments->place, take_option, arguments);
    if (result != CLI_OK)
        return result;
    if (!arguments->place.path || !arguments->capacity || arguments->number < 1 ||
        arguments->number > SHARE_MOST_PROCESSES || optind < argc)
        return cli_error(CLI_USAGE, "attach is started by gpumem share");
    return CLI_OK;
}

int cmd_attach(int argc, char **argv) {
    struct attach_arguments arguments = {.number = 0};
    int result = parse(argc, argv, &arguments);
    if (result != CLI_OK)
        return result;
    /* Without the owner there is nothing to attach to. */
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    return share_on_device(&arguments.place, import_and_follow, &arguments);
}
