/* gpumem load: streams a file into device memory and verifies it there. */
#include "cli.h"
#include "load.h"
#include "progress.h"
#include "terminal.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const char cmd_load_usage[] =
    "usage: gpumem load [OPTION...] FILE\n"
    "\n"
    "Streams FILE into one growing buffer of device memory: reader threads fill\n"
    "pinned chunks, the copies overlap the reads, and the buffer's address never\n"
    "changes. Then it checks that the bytes on the device are those of the file, and\n"
    "a second process imports the buffer by file descriptor, without a copy, and\n"
    "checks them too.\n"
    "\n"
    "  --driver CHOICE   nvidia, softgpu or a path\n"
    "  --device N        default 0\n"
    "  --threads N       readers, 1 to 16; default one per processor\n"
    "  --chunk SIZE      of one read and one copy; default 8M\n"
    "  --no-share        without the second process\n"
    "  --receiver FILE   run this program as the second process, with gpumem's\n"
    "                    arguments\n"
    "  --quiet           no progress\n"
    "  --json            one object with all figures on standard output\n"
    "\n"
    "Exit status: 0 loaded and checked, 2 wrong usage, 3 no driver or device, 4 the\n"
    "file cannot be read, 5 it changed meanwhile, 6 too little memory, 7 bytes\n"
    "differ, 8 the second process failed, 130 interrupted, 1 anything else. In every\n"
    "case all memory is released.\n";

static volatile sig_atomic_t interrupted;
static volatile sig_atomic_t second_process; /* its process group, which fits */

static void on_signal(int number) {
    int saved = errno;
    if (second_process)
        kill(-second_process, interrupted ? SIGKILL : SIGTERM);
    interrupted = number;
    errno = saved;
}

bool load_interrupted(void) {
    return interrupted != 0;
}

void load_pass_signals_to(pid_t group) {
    second_process = group;
    /* A signal that came before this was set has not been passed on. */
    if (group && interrupted)
        kill(-group, SIGTERM);
}

/* A program started with a signal ignored (nohup, a script's background job) should go on. */
static void catch_unless_ignored(int number) {
    struct sigaction action = {.sa_handler = on_signal}, inherited;
    if (sigaction(number, NULL, &inherited) == 0 && inherited.sa_handler != SIG_IGN)
        sigaction(number, &action, NULL);
}

void load_catch_signals(void) {
    catch_unless_ignored(SIGINT);
    catch_unless_ignored(SIGTERM);
    /* The parent may have ignored SIGCHLD, and then the second process's exit status would be
     * lost. */
    signal(SIGCHLD, SIG_DFL);
}

static int on_progress(void *user, const gpumem_load_progress *progress) {
    progress_show(user, progress->bytes_done, progress->bytes_total, progress->seconds);
    return load_interrupted();
}

static struct progress view_of(const struct load_arguments *arguments, const char *verb) {
    return progress_begin(verb, arguments->quiet || arguments->json);
}

/* Failures that concern the file have their own exit statuses. */
static int fail_load(gpumem_status status) {
    int result = cli_fail(status);
    const char *call = gpumem_last_error()->call;
    bool of_file =
        strcmp(call, "open") == 0 || strcmp(call, "pread") == 0 || strcmp(call, "fstat") == 0;
    if (status == GPUMEM_ERROR_SYSTEM && of_file)
        return CLI_FILE;
    if (status == GPUMEM_ERROR_DATA)
        return CLI_CHANGED;
    return result;
}

static int load(const struct load_arguments *arguments, gpumem_resource *resource,
                gpumem_buffer **buffer, struct load_outcome *outcome) {
    struct progress view = view_of(arguments, "loading");
    gpumem_load_options options = {
        .size = sizeof options,
        .chunk_bytes = arguments->chunk_bytes,
        .threads = arguments->threads,
        .progress = on_progress,
        .user = &view,
    };
    outcome->load.size = sizeof outcome->load;
    gpumem_status status =
        gpumem_load_file(resource, arguments->path, &options, buffer, &outcome->load);
    progress_end(&view);
    return status == GPUMEM_OK ? CLI_OK : fail_load(status);
}

static bool same_file(const struct stat *before, const char *path) {
    struct stat after;
    return stat(path, &after) == 0 && before->st_ino == after.st_ino &&
           before->st_dev == after.st_dev && before->st_size == after.st_size &&
           before->st_mtim.tv_sec == after.st_mtim.tv_sec &&
           before->st_mtim.tv_nsec == after.st_mtim.tv_nsec;
}

static int check(const struct load_arguments *arguments, const struct stat *before,
                 gpumem_buffer *buffer, struct load_outcome *outcome) {
    double start = cli_now();
    struct progress view = view_of(arguments, "checking");
    gpumem_load_options options = {
        .size = sizeof options,
        .threads = arguments->threads,
        .progress = on_progress,
        .user = &view,
    };
    gpumem_status status = gpumem_buffer_checksum(buffer, &options, &outcome->device_checksum);
    progress_end(&view);
    if (status != GPUMEM_OK)
        return cli_fail(status);
    view = view_of(arguments, "comparing");
    status = gpumem_file_checksum(arguments->path, &options, &outcome->file_checksum);
    progress_end(&view);
    if (status != GPUMEM_OK)
        return fail_load(status);
    outcome->check_seconds = cli_now() - start;
    if (!same_file(before, arguments->path))
        return cli_error(CLI_CHANGED, "%s changed between loading and checking", arguments->path);
    if (outcome->device_checksum != outcome->file_checksum)
        return cli_error(CLI_MISMATCH,
                         "bytes differ: checksum %016" PRIx64 " on the device, %016" PRIx64
                         " of the file",
                         outcome->device_checksum, outcome->file_checksum);
    return CLI_OK;
}

static int load_and_check(const struct load_arguments *arguments, gpumem_resource *resource,
                          struct load_outcome *outcome) {
    struct stat before = {0};
    (void)stat(arguments->path, &before); /* gpumem_load_file says what is wrong with it */
    gpumem_buffer *buffer = NULL;
    int result = load(arguments, resource, &buffer, outcome);
    if (result != CLI_OK)
        return result;
    result = check(arguments, &before, buffer, outcome);
    if (result == CLI_OK && !arguments->no_share)
        result = load_share(arguments, buffer, outcome);
    gpumem_status freed = gpumem_buffer_free(buffer, NULL);
    if (result == CLI_OK && freed != GPUMEM_OK)
        return cli_fail(freed);
    return result;
}

static void announce(const struct load_arguments *arguments, const struct load_outcome *outcome) {
    if (arguments->json)
        return;
    char unused[32];
    cli_line(stdout, "driver    %s (%s), API %d.%d", outcome->driver_path,
             outcome->softgpu ? "softgpu, a software GPU" : "NVIDIA",
             outcome->driver_version / 1000, outcome->driver_version % 1000 / 10);
    cli_line(stdout, "device    %d: %s, %s free", outcome->device.ordinal, outcome->device.name,
             cli_format_size(outcome->free_bytes, unused));
    cli_line(stdout, "file      %s", arguments->path);
    fflush(stdout);
}

static int with_device(const struct load_arguments *arguments, gpumem_device *device,
                       struct load_outcome *outcome) {
    uint64_t total = 0;
    outcome->device.size = sizeof outcome->device;
    gpumem_status status = gpumem_device_get_info(gpumem_device_library(device),
                                                  gpumem_device_ordinal(device), &outcome->device);
    if (status == GPUMEM_OK)
        status = gpumem_device_get_memory(device, &outcome->free_bytes, &total);
    if (status != GPUMEM_OK)
        return cli_fail(status);
    announce(arguments, outcome);
    gpumem_resource *resource = NULL;
    status = gpumem_virtual_resource_create(device, NULL, &resource);
    if (status != GPUMEM_OK)
        return cli_fail(status);
    int result = load_and_check(arguments, resource, outcome);
    status = gpumem_resource_destroy(resource);
    if (result == CLI_OK && status != GPUMEM_OK)
        return cli_fail(status);
    return result;
}

static int with_library(const struct load_arguments *arguments, gpumem_library *library,
                        struct load_outcome *outcome) {
    gpumem_library_info info = {.size = sizeof info};
    gpumem_device *device = NULL;
    gpumem_status status = gpumem_library_get_info(library, &info);
    if (status == GPUMEM_OK)
        status = gpumem_device_open(library, arguments->device, &device);
    if (status != GPUMEM_OK)
        return cli_fail(status);
    snprintf(outcome->driver_path, sizeof outcome->driver_path, "%s", info.driver_path);
    outcome->softgpu = info.softgpu;
    outcome->driver_version = info.driver_version;
    int result = with_device(arguments, device, outcome);
    status = gpumem_device_close(device);
    if (result == CLI_OK && status != GPUMEM_OK)
        return cli_fail(status);
    return result;
}

static int parse(int argc, char **argv, struct load_arguments *arguments) {
    enum { DRIVER = 256, DEVICE, THREADS, CHUNK, RECEIVER, NO_SHARE, QUIET, JSON };
    static const struct option options[] = {
        {"driver", required_argument, NULL, DRIVER},
        {"device", required_argument, NULL, DEVICE},
        {"threads", required_argument, NULL, THREADS},
        {"chunk", required_argument, NULL, CHUNK},
        {"receiver", required_argument, NULL, RECEIVER},
        {"no-share", no_argument, NULL, NO_SHARE},
        {"quiet", no_argument, NULL, QUIET},
        {"json", no_argument, NULL, JSON},
        {0},
    };
    int option, number;
    while ((option = cli_option("load", argc, argv, options, false)) != -1) {
        switch (option) {
        case DRIVER:
            arguments->driver = optarg;
            break;
        case DEVICE:
            if (!cli_parse_ordinal(optarg, &arguments->device))
                return cli_error(CLI_USAGE, "load: '%s' is not a device number", optarg);
            break;
        case THREADS:
            if (!cli_parse_ordinal(optarg, &number) || number < 1 || number > 16)
                return cli_error(CLI_USAGE, "load: --threads is 1 to 16, not '%s'", optarg);
            arguments->threads = (unsigned)number;
            break;
        case CHUNK:
            if (!cli_parse_size(optarg, &arguments->chunk_bytes) ||
                arguments->chunk_bytes < 64 << 10 || arguments->chunk_bytes > 1 << 30)
                return cli_error(CLI_USAGE, "load: --chunk is 64K to 1G, not '%s'", optarg);
            break;
        case RECEIVER:
            arguments->receiver = optarg;
            break;
        case NO_SHARE:
            arguments->no_share = true;
            break;
        case QUIET:
            arguments->quiet = true;
            break;
        case JSON:
            arguments->json = true;
            cli_json_wanted();
            break;
        default:
            return CLI_USAGE;
        }
    }
    if (optind != argc - 1)
        return cli_error(CLI_USAGE, "load: give one FILE; try 'gpumem help load'");
    arguments->path = argv[optind];
    return CLI_OK;
}

int cmd_load(int argc, char **argv) {
    struct load_arguments arguments = {.path = ""};
    struct load_outcome outcome = {0};
    int result = parse(argc, argv, &arguments);
    if (result != CLI_OK)
        return result;
    load_catch_signals();
    double start = cli_now();
    gpumem_library *library = NULL;
    gpumem_status status =
        gpumem_open(GPUMEM_OPTIONS(gpumem_open_options, .driver = arguments.driver), &library);
    if (status != GPUMEM_OK)
        return cli_fail(status);
    result = with_library(&arguments, library, &outcome);
    outcome.total_seconds = cli_now() - start;
    status = gpumem_close(library);
    if (result == CLI_OK && status != GPUMEM_OK)
        result = cli_fail(status);
    if (load_interrupted())
        return result == CLI_INTERRUPTED ? result : cli_error(CLI_INTERRUPTED, "interrupted");
    if (result != CLI_OK)
        return result;
    if (arguments.json)
        return load_print_json(&arguments, &outcome);
    load_print_text(&outcome);
    return CLI_OK;
}
