/* gpumem run: any program, and its children, on softgpu instead of the machine's driver. */
#include "cli.h"
#include "clients.h"
#include "job.h"
#include "terminal.h"

#include <dlfcn.h>
#include <errno.h>
#include <getopt.h>
#include <gpumem/driver.h>
#include <gpumem/softgpu.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

const char cmd_run_usage[] =
    "usage: gpumem run --softgpu [OPTION...] [--] COMMAND [ARGUMENT...]\n"
    "\n"
    "Runs COMMAND, and the processes that it starts, on softgpu, the CUDA driver\n"
    "that needs no GPU. Works for programs of the driver API, and for those that\n"
    "load libcudart.so.12 or .13: they get gpumem's. Kernels run, from PTX, and\n"
    "compilers inside of COMMAND give PTX too.\n"
    "\n"
    "  --softgpu          on softgpu: always required, since a program runs there\n"
    "                     only on request; --driver softgpu is the same\n"
    "  --driver CHOICE    softgpu, and nothing else\n"
    "  --devices N        number of devices: 0 to 8 (1)\n"
    "  --memory SIZE      bytes of each, suffix K, M, G or T (as the machine allows)\n"
    "  --uuid LIST        UUIDs of the first devices (the profile's, or generated)\n"
    "  --profile h200|h100|a100|rtx5090|tiny|FILE\n"
    "                     which device: by name (h200), or the path of an .ini file\n"
    "  --schedule eager|late|random\n"
    "                     when queued work runs: at once, late, or random (eager)\n"
    "  --seed N           repeats a random schedule, whose seed is printed first\n"
    "  --lanes joined|independent\n"
    "                     whether lanes of a warp that part run together again where\n"
    "                     their ways meet, as on GPUs; independent: only at\n"
    "                     bar.warp.sync and the like, with a random schedule\n"
    "                     (joined)\n"
    "  --fault SPEC       makes a call fail: FUNCTION:N:ERROR:MODE, the N-th call (*\n"
    "                     for each) of FUNCTION (as in cuda.h, an exported name, *\n"
    "                     for any, or the runtime's), MODE before, after (the\n"
    "                     effect), from (then on), skip or sticky\n"
    "  --trace FILE       writes every call to FILE, - for standard error\n"
    "  --profile-kernels[=FILE]\n"
    "                     counts what kernels do, and writes it at the end of each\n"
    "                     process: a table on standard error or in FILE, or a line\n"
    "                     of JSON in a FILE.json\n"
    "  --leaks            reports what was not freed when a context ends, or at exit\n"
    "  --fail-on LIST     exit status 9; comma-separated:\n"
    "                       leaks   something was not freed\n"
    "                       leaks:memory, leaks:modules, leaks:streams, leaks:graphs,\n"
    "                       leaks:other: the same, of this kind only\n"
    "                       fault   the fault of --fault was never reached\n"
    "  --poison           fills fresh and freed memory with a pattern\n"
    "  --no-kernels       runs no kernels: launches are checked, then refused;\n"
    "                     compilers are left as they are\n"
    "  --nvidia-runtime   leaves NVIDIA's libcudart, and how nvcc links it\n"
    "  --abort-on-error   a refused call aborts, unless it asks for a function\n"
    "  --check LIST       watches kernels; comma-separated:\n"
    "                       memory  freed memory, padding, leaks, unused memory,\n"
    "                               refused calls\n"
    "                       race    accesses that nothing orders\n"
    "                       init    reads of what nothing has written\n"
    "                       sync    barriers, copies without a wait\n"
    "  --check-plain-volatile\n"
    "                     race: volatile accesses race like plain ones\n"
    "  --check-format text|json\n"
    "                     how hazards are written (text)\n"
    "  --check-output FILE\n"
    "                     where they are written, emptied first (standard error)\n"
    "  --suppressions FILE\n"
    "                     which not to tell: lines of KIND KERNEL PLACE, patterns\n"
    "  --kernels-matching LIST\n"
    "                     only these kernels: patterns, comma-separated (all)\n"
    "  --error-exitcode N\n"
    "                     status if errors were found and COMMAND succeeded: 1 to 255\n"
    "  --log off|error|warning|info|debug\n"
    "                     how much softgpu prints on standard error (warning)\n"
    "\n"
    "Each option is an environment variable of softgpu, SOFTGPU_DEVICES and so on.\n"
    "All are checked before COMMAND is started.\n"
    "\n"
    "Exit status: that of COMMAND; 127 when it is not found, 126 when it cannot be\n"
    "run, 2 for a wrong command line or variable, 3 when softgpu is not installed\n"
    "with gpumem, 9 because of --fail-on.\n";

enum kind { NUMBER, SIZE, CHOICE, PATH_OR_NAME, FILE_OR_DASH, ANY_PATH, TEXT, FLAG, NO_FLAG };

/* Options in the order of `options` below; getopt's value is FIRST + index. */
#define FIRST 256
static const struct setting {
    const char *variable;
    enum kind kind;
    uint64_t most;       /* NUMBER */
    const char *choices; /* CHOICE: each between two spaces */
} settings[] = {
    {"SOFTGPU_DEVICES", NUMBER, 8, NULL},
    {"SOFTGPU_MEMORY", SIZE, 0, NULL},
    {"SOFTGPU_PROFILE", PATH_OR_NAME, 0, NULL},
    {"SOFTGPU_SCHEDULE", CHOICE, 0, " eager late random "},
    {"SOFTGPU_SEED", NUMBER, UINT64_MAX, NULL},
    {"SOFTGPU_FAULT", TEXT, 0, NULL},
    {"SOFTGPU_TRACE", FILE_OR_DASH, 0, NULL},
    {"SOFTGPU_LEAKS", FLAG, 0, NULL},
    {"SOFTGPU_POISON", FLAG, 0, NULL},
    {"SOFTGPU_ABORT", FLAG, 0, NULL},
    {"SOFTGPU_LOG", CHOICE, 0, " off error warning info debug "},
    {"SOFTGPU_FAIL_ON", TEXT, 0, NULL},
    {"SOFTGPU_UUID", TEXT, 0, NULL},
    {"SOFTGPU_KERNELS", NO_FLAG, 0, NULL},
    {"SOFTGPU_CHECK", TEXT, 0, NULL},
    {"SOFTGPU_CHECK_FORMAT", CHOICE, 0, " text json "},
    {"SOFTGPU_CHECK_OUTPUT", ANY_PATH, 0, NULL},
    {"SOFTGPU_CHECK_SUPPRESS", ANY_PATH, 0, NULL},
    {"SOFTGPU_CHECK_KERNELS", TEXT, 0, NULL},
    {"SOFTGPU_CHECK_ERROR_EXIT", NUMBER, 255, NULL},
    {"SOFTGPU_PROFILE_KERNELS", FILE_OR_DASH, 0, NULL},
    {"SOFTGPU_CHECK_PLAIN_VOLATILE", FLAG, 0, NULL},
    {"SOFTGPU_LANES", CHOICE, 0, " joined independent "},
};
#define SETTING_COUNT (sizeof settings / sizeof settings[0])

enum { OPTION_SOFTGPU = FIRST + SETTING_COUNT, OPTION_DRIVER, OPTION_NVIDIA_RUNTIME };
static const struct option options[] = {
    {"devices", required_argument, NULL, FIRST + 0},
    {"memory", required_argument, NULL, FIRST + 1},
    {"profile", required_argument, NULL, FIRST + 2},
    {"schedule", required_argument, NULL, FIRST + 3},
    {"seed", required_argument, NULL, FIRST + 4},
    {"fault", required_argument, NULL, FIRST + 5},
    {"trace", required_argument, NULL, FIRST + 6},
    {"leaks", no_argument, NULL, FIRST + 7},
    {"poison", no_argument, NULL, FIRST + 8},
    {"abort-on-error", no_argument, NULL, FIRST + 9},
    {"log", required_argument, NULL, FIRST + 10},
    {"fail-on", required_argument, NULL, FIRST + 11},
    {"uuid", required_argument, NULL, FIRST + 12},
    {"no-kernels", no_argument, NULL, FIRST + 13},
    {"check", required_argument, NULL, FIRST + 14},
    {"check-format", required_argument, NULL, FIRST + 15},
    {"check-output", required_argument, NULL, FIRST + 16},
    {"suppressions", required_argument, NULL, FIRST + 17},
    {"kernels-matching", required_argument, NULL, FIRST + 18},
    {"error-exitcode", required_argument, NULL, FIRST + 19},
    {"profile-kernels", optional_argument, NULL, FIRST + 20},
    {"check-plain-volatile", no_argument, NULL, FIRST + 21},
    {"lanes", required_argument, NULL, FIRST + 22},
    {"softgpu", no_argument, NULL, OPTION_SOFTGPU},
    {"driver", required_argument, NULL, OPTION_DRIVER},
    {"nvidia-runtime", no_argument, NULL, OPTION_NVIDIA_RUNTIME},
    {NULL, 0, NULL, 0},
};
_Static_assert(sizeof options / sizeof options[0] == SETTING_COUNT + 4, "a row for each setting");

static int set(const char *variable, const char *value) {
    if (setenv(variable, value, 1) == 0)
        return CLI_OK;
    return cli_error(CLI_FAILED, "cannot set %s: %s", variable, strerror(errno));
}

/* COMMAND may change its folder before softgpu reads the variable. */
static int set_path(const char *variable, const char *path) {
    char folder[PATH_MAX], whole[2 * PATH_MAX];
    if (path[0] == '/')
        return set(variable, path);
    if (!getcwd(folder, sizeof folder))
        return cli_error(CLI_FAILED, "cannot determine the current directory: %s", strerror(errno));
    snprintf(whole, sizeof whole, "%s/%s", folder, path);
    return set(variable, whole);
}

static bool number_fits(const char *text, uint64_t most) {
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    return text[0] >= '0' && text[0] <= '9' && !*end && !errno && value <= most;
}

static bool chosen(const char *text, const char *choices) {
    char spaced[64];
    int length = snprintf(spaced, sizeof spaced, " %s ", text);
    return text[0] && !strchr(text, ' ') && (size_t)length < sizeof spaced &&
           strstr(choices, spaced);
}

static int apply(size_t index, const char *value) {
    const struct setting *setting = &settings[index];
    const char *option = options[index].name;
    uint64_t bytes;
    switch (setting->kind) {
    case FLAG:
        return set(setting->variable, "1");
    case NO_FLAG:
        return set(setting->variable, "0");
    case NUMBER:
        if (!number_fits(value, setting->most))
            return cli_error(CLI_USAGE, "--%s %s: expected a number from 0 to %llu", option, value,
                             (unsigned long long)setting->most);
        break;
    case SIZE:
        if (!cli_parse_size(value, &bytes) || bytes == 0)
            return cli_error(CLI_USAGE, "--%s %s: expected bytes, with suffix K, M, G or T", option,
                             value);
        break;
    case CHOICE:
        if (!chosen(value, setting->choices))
            return cli_error(CLI_USAGE, "--%s %s: expected one of:%s", option, value,
                             setting->choices);
        break;
    case PATH_OR_NAME:
    case FILE_OR_DASH:
    case ANY_PATH:
    case TEXT:
        if (!value[0])
            return cli_error(CLI_USAGE, "--%s needs a value", option);
        break;
    }
    bool path = setting->kind == PATH_OR_NAME
                    ? strchr(value, '/') != NULL
                    : setting->kind == ANY_PATH ||
                          (setting->kind == FILE_OR_DASH && strcmp(value, "-") != 0);
    return path ? set_path(setting->variable, value) : set(setting->variable, value);
}

/* Applies the options; *command is the index of the first word that is not one, *runtime whether
 * our libcudart is wanted. */
static int parse(int argc, char **argv, int *command, bool *runtime) {
    bool softgpu = false;
    int option;
    optind = 1;
    while ((option = cli_option("run", argc, argv, options, true)) != -1) {
        int status = CLI_OK;
        if (option == '?')
            return CLI_USAGE;
        const char *value = optarg ? optarg : "-";
        if (option == OPTION_DRIVER && strcmp(value, "softgpu") != 0)
            return cli_error(CLI_USAGE,
                             "--driver %s: run supports only softgpu; without gpumem run, "
                             "a program uses the machine's driver",
                             value);
        if (option == OPTION_SOFTGPU || option == OPTION_DRIVER)
            softgpu = true;
        else if (option == OPTION_NVIDIA_RUNTIME)
            *runtime = false;
        else
            status = apply((size_t)(option - FIRST), value);
        if (status != CLI_OK)
            return status;
    }
    if (!softgpu)
        return cli_error(CLI_USAGE, "give --softgpu: a program runs on softgpu only on request");
    if (optind == argc)
        return cli_error(CLI_USAGE, "give a COMMAND; try 'gpumem help run'");
    *command = optind;
    return CLI_OK;
}

/* True when `folder`/`below` has softgpu's libcuda.so.1; then its real path is in `found`. */
static bool has_softgpu(const char *folder, const char *below, char found[PATH_MAX]) {
    char path[2 * PATH_MAX];
    snprintf(path, sizeof path, "%s/%s/libcuda.so.1", folder, below);
    if (access(path, R_OK) != 0)
        return false;
    path[strlen(path) - strlen("/libcuda.so.1")] = 0;
    return realpath(path, found) != NULL;
}

/* The folder of the file, in place. */
static bool cut_name(char *path) {
    char *slash = strrchr(path, '/');
    if (slash)
        *slash = 0;
    return slash != NULL;
}

/* Next to libgpumem, where gpumem itself searches; else relative to this program. */
static int find_softgpu(char found[PATH_MAX]) {
    char folder[PATH_MAX];
    Dl_info info;
    if (dladdr((void *)(uintptr_t)gpumem_driver_open, &info) && info.dli_fname &&
        realpath(info.dli_fname, folder) && cut_name(folder) &&
        has_softgpu(folder, "gpumem/softgpu", found))
        return CLI_OK;
    if (realpath("/proc/self/exe", folder) && cut_name(folder) &&
        has_softgpu(folder, "../lib/gpumem/softgpu", found))
        return CLI_OK;
    return cli_error(CLI_NO_DEVICE, "softgpu's libcuda.so.1 is not in gpumem/softgpu next to "
                                    "libgpumem.so: is gpumem installed completely?");
}

/* Puts the folder first on the search path, before a driver of the machine. */
static int put_on_library_path(const char *folder) {
    const char *old = getenv("LD_LIBRARY_PATH");
    if (!old || !old[0])
        return set("LD_LIBRARY_PATH", folder);
    size_t size = strlen(folder) + strlen(old) + 2;
    char *path = malloc(size);
    if (!path)
        return cli_error(CLI_FAILED, "out of memory");
    snprintf(path, size, "%s:%s", folder, old);
    int status = set("LD_LIBRARY_PATH", path);
    free(path);
    return status;
}

/* softgpu reads its variables itself, so before anything is started it is asked to check them,
 * including those that were already set. */
static int check_settings(const char *folder) {
    char path[2 * PATH_MAX], text[8192];
    snprintf(path, sizeof path, "%s/libsoftgpu.so.0", folder);
    void *engine = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    void *symbol = engine ? dlsym(engine, "softgpu_get_control") : NULL;
    softgpu_get_control_fn get;
    memcpy(&get, &symbol, sizeof get);
    const softgpu_control *control = get ? get(SOFTGPU_CONTROL_VERSION) : NULL;
    if (!control || control->size < sizeof *control)
        return cli_error(CLI_NO_DEVICE, "%s does not belong to this gpumem: is it installed twice?",
                         path);
    if (control->settings_check(text, sizeof text) == 0)
        return CLI_OK;
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
        cli_error(CLI_USAGE, "run: %s", line);
    return CLI_USAGE;
}

/* The seed is chosen here and printed before anything else, because a test runner may capture what
 * softgpu prints later. All processes of the job use it. */
static int settle_seed(void) {
    const char *schedule = getenv("SOFTGPU_SCHEDULE"), *given = getenv("SOFTGPU_SEED");
    if (!schedule || strcmp(schedule, "random") != 0)
        return CLI_OK;
    char text[16];
    uint32_t drawn = 0;
    if (!given || !given[0]) {
        /* 32 bits tell runs apart and are short enough to be typed again. */
        if (getrandom(&drawn, sizeof drawn, 0) != (ssize_t)sizeof drawn)
            return cli_error(CLI_FAILED, "cannot get a random seed: %s", strerror(errno));
        snprintf(text, sizeof text, "%u", (unsigned)drawn);
        int status = set("SOFTGPU_SEED", text);
        if (status != CLI_OK)
            return status;
        given = text;
    }
    const char *lanes = getenv("SOFTGPU_LANES");
    bool independent = lanes && strcmp(lanes, "independent") == 0;
    cli_line(stderr, "gpumem: random schedule%s; %s--seed %s repeats it",
             independent ? " with independent lanes" : "",
             independent ? "--lanes independent " : "", given);
    return CLI_OK;
}

static bool is_set(const char *variable) {
    const char *value = getenv(variable);
    return value && value[0];
}

/* As softgpu reads the variable; other values have been refused. */
static bool kernels_run(void) {
    const char *value = getenv("SOFTGPU_KERNELS");
    return !value || strcmp(value, "0") != 0;
}

/* Checkers need kernels to run. Each process of the job adds to the output file. */
static int settle_checks(void) {
    const char *output = getenv("SOFTGPU_CHECK_OUTPUT");
    if (is_set("SOFTGPU_PROFILE_KERNELS") && !kernels_run())
        return cli_error(CLI_USAGE, "--profile-kernels: with --no-kernels none runs");
    if (!is_set("SOFTGPU_CHECK"))
        return CLI_OK;
    if (!kernels_run())
        return cli_error(CLI_USAGE, "--check watches kernels, and with --no-kernels none runs");
    if (output && output[0] && truncate(output, 0) != 0 && errno != ENOENT)
        return cli_error(CLI_FILE, "--check-output %s: %s", output, strerror(errno));
    return CLI_OK;
}

int cmd_run(int argc, char **argv) {
    char folder[PATH_MAX];
    int command = argc;
    bool runtime = true;
    int status = parse(argc, argv, &command, &runtime);
    if (status == CLI_OK)
        status = find_softgpu(folder);
    if (status == CLI_OK)
        status = check_settings(folder);
    if (status == CLI_OK)
        status = settle_checks();
    if (status == CLI_OK)
        status = settle_seed();
    if (status == CLI_OK)
        status = put_on_library_path(folder);
    if (status == CLI_OK)
        status = set("GPUMEM_DRIVER", "softgpu");
    if (status == CLI_OK && kernels_run())
        status = clients_prepare(folder, runtime);
    if (status != CLI_OK)
        return status;
    clients_warn(argv[command]);
    bool judged =
        is_set("SOFTGPU_FAULT") || is_set("SOFTGPU_FAIL_ON") || is_set("SOFTGPU_CHECK_ERROR_EXIT");
    return judged ? job_run(argv + command) : job_become(argv + command);
}
