#include "cli.h"
#include "share.h"

#include <getopt.h>

/* Whether the option's value is valid. */
static bool read_option(int option, struct share_place *place, share_option_fn own,
                        void *arguments) {
    switch (option) {
    case SHARE_DRIVER:
        place->driver = optarg;
        return true;
    case SHARE_DEVICE:
        return cli_parse_ordinal(optarg, &place->device);
    case SHARE_AT:
        place->path = optarg;
        return true;
    default:
        return own(option, optarg, arguments);
    }
}

int share_parse(const char *command, int argc, char **argv, const struct option *options,
                struct share_place *place, share_option_fn own, void *arguments) {
    int option;
    while ((option = cli_option(command, argc, argv, options, false)) != -1) {
        if (option == '?')
            return CLI_USAGE;
        if (!read_option(option, place, own, arguments))
            return cli_error(CLI_USAGE, "%s: '%s' is not valid; try 'gpumem help share'", command,
                             optarg);
    }
    return CLI_OK;
}

int share_on_device(const struct share_place *place, share_run_fn run, const void *arguments) {
    gpumem_library *library = NULL;
    gpumem_device *device = NULL;
    gpumem_status status = gpumem_open(GPUMEM_OPEN_OPTIONS(.driver = place->driver), &library);
    if (status != GPUMEM_OK)
        return cli_fail(status);
    status = gpumem_device_open(library, place->device, &device);
    int result = status == GPUMEM_OK ? run(arguments, library, device) : cli_fail(status);
    if (device)
        gpumem_device_close(device);
    gpumem_close(library);
    return result;
}
