/* gpumem receive: the second process of load. Imports a buffer from a socket and checks it. */
#include "cli.h"
#include "load.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

struct receive_arguments {
    const char *driver;
    int device, socket;
    uint64_t expected;
};

static int stop_when_interrupted(void *user, const gpumem_load_progress *progress) {
    (void)user;
    (void)progress;
    return load_interrupted();
}

static int import_and_check(const struct receive_arguments *arguments, gpumem_device *device) {
    gpumem_buffer *buffer = NULL;
    gpumem_share_options share = {.size = sizeof share, .access = GPUMEM_ACCESS_READ};
    gpumem_status status = gpumem_import_receive(device, arguments->socket, &share, &buffer);
    if (status != GPUMEM_OK)
        return cli_fail(status);
    uint64_t checksum = 0;
    gpumem_load_options options = {.size = sizeof options, .progress = stop_when_interrupted};
    status = gpumem_buffer_checksum(buffer, &options, &checksum);
    int result = status == GPUMEM_OK ? CLI_OK : cli_fail(status);
    if (result == CLI_OK && checksum != arguments->expected)
        result = cli_error(CLI_MISMATCH,
                           "the second process reads checksum %016" PRIx64
                           " where the first read %016" PRIx64,
                           checksum, arguments->expected);
    status = gpumem_buffer_free(buffer, NULL);
    if (result == CLI_OK && status != GPUMEM_OK)
        result = cli_fail(status);
    return result;
}

static bool parse_checksum(const char *text, uint64_t *value) {
    char *end;
    errno = 0;
    *value = strtoull(text, &end, 16);
    return !errno && end != text && !*end;
}

static int parse(int argc, char **argv, struct receive_arguments *arguments) {
    enum { DRIVER = 256, DEVICE, SOCKET, EXPECT };
    static const struct option options[] = {
        {"driver", required_argument, NULL, DRIVER},
        {"device", required_argument, NULL, DEVICE},
        {"socket", required_argument, NULL, SOCKET},
        {"expect", required_argument, NULL, EXPECT},
        {0},
    };
    bool complete = false;
    int option;
    while ((option = cli_option("receive", argc, argv, options, false)) != -1) {
        bool valid = true;
        if (option == DRIVER)
            arguments->driver = optarg;
        else if (option == DEVICE)
            valid = cli_parse_ordinal(optarg, &arguments->device);
        else if (option == SOCKET)
            valid = cli_parse_ordinal(optarg, &arguments->socket);
        else if (option == EXPECT)
            valid = complete = parse_checksum(optarg, &arguments->expected);
        else
            return CLI_USAGE;
        if (!valid)
            return cli_error(CLI_USAGE, "receive: '%s' is not valid", optarg);
    }
    if (!complete || arguments->socket < 0 || optind < argc)
        return cli_error(CLI_USAGE, "receive is started by gpumem load");
    return CLI_OK;
}

int cmd_receive(int argc, char **argv) {
    struct receive_arguments arguments = {.socket = -1};
    int result = parse(argc, argv, &arguments);
    if (result != CLI_OK)
        return result;
    /* Without the first process there is no one to check for. */
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    (void)fcntl(arguments.socket, F_SETFD, FD_CLOEXEC); /* the first one's spawn could not */
    load_catch_signals();
    gpumem_library *library = NULL;
    gpumem_device *device = NULL;
    gpumem_status status =
        gpumem_open(GPUMEM_OPTIONS(gpumem_open_options, .driver = arguments.driver), &library);
    if (status != GPUMEM_OK)
        return cli_fail(status);
    status = gpumem_device_open(library, arguments.device, &device);
    result = status == GPUMEM_OK ? import_and_check(&arguments, device) : cli_fail(status);
    if (device)
        gpumem_device_close(device);
    gpumem_close(library);
    return result;
}
