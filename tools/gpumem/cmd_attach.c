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
    const char *driver, *path;
    int device, number;
    uint64_t capacity; /* the size it may grow to; only address space */
};

/* Whether it could be done. */
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

static int import_and_follow(const struct attach_arguments *arguments, gpumem_device *device) {
    int connection = -1;
    gpumem_buffer *buffer = NULL;
    gpumem_status status = gpumem_connect(arguments->path, NULL, &connection, NULL);
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

static int parse(int argc, char **argv, struct attach_arguments *arguments) {
    enum { DRIVER = 256, DEVICE, NUMBER, CAPACITY, AT };
    static const struct option options[] = {
        {"driver", required_argument, NULL, DRIVER},
        {"device", required_argument, NULL, DEVICE},
        {"number", required_argument, NULL, NUMBER},
        {"capacity", required_argument, NULL, CAPACITY},
        {"at", required_argument, NULL, AT},
        {0},
    };
    int option;
    while ((option = cli_option("attach", argc, argv, options, false)) != -1) {
        bool valid = true;
        if (option == DRIVER)
            arguments->driver = optarg;
        else if (option == DEVICE)
            valid = cli_parse_ordinal(optarg, &arguments->device);
        else if (option == NUMBER)
            valid = cli_parse_ordinal(optarg, &arguments->number);
        else if (option == CAPACITY)
            valid = cli_parse_size(optarg, &arguments->capacity);
        else if (option == AT)
            arguments->path = optarg;
        else
            return CLI_USAGE;
        if (!valid)
            return cli_error(CLI_USAGE, "attach: '%s' is not valid", optarg);
    }
    if (!arguments->path || !arguments->capacity || arguments->number < 1 ||
        arguments->number > SHARE_MOST_PROCESSES || optind < argc)
        return cli_error(CLI_USAGE, "attach is started by gpumem share");
    return CLI_OK;
}

int cmd_attach(int argc, char **argv) {
    struct attach_arguments arguments = {.driver = NULL};
    int result = parse(argc, argv, &arguments);
    if (result != CLI_OK)
        return result;
    /* Without the owner there is nothing to attach to. */
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    gpumem_library *library = NULL;
    gpumem_device *device = NULL;
    gpumem_status status = gpumem_open(GPUMEM_OPEN_OPTIONS(.driver = arguments.driver), &library);
    if (status != GPUMEM_OK)
        return cli_fail(status);
    status = gpumem_device_open(library, arguments.device, &device);
    result = status == GPUMEM_OK ? import_and_follow(&arguments, device) : cli_fail(status);
    if (device)
        gpumem_device_close(device);
    gpumem_close(library);
    return result;
}
