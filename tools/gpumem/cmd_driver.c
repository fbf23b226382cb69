/* gpumem driver: the table of the driver API, and the state of each function in the opened
 * driver. */
#include "cli.h"
#include "json.h"
#include "terminal.h"

#include <fnmatch.h>
#include <getopt.h>
#include <gpumem/driver.h>
#include <gpumem/softgpu.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char cmd_driver_usage[] =
    "usage: gpumem driver [OPTION...] [NAME...]\n"
    "\n"
    "Lists every function of the CUDA driver API, in every exported ABI version,\n"
    "with its state in the opened driver:\n"
    "  real     it works. On softgpu a test is named that fails when the function\n"
    "           reports success and does nothing.\n"
    "  refused  it always returns an error\n"
    "  missing  the driver does not export it\n"
    "NVIDIA's driver is not tested: what it exports is listed as real, without a\n"
    "test.\n"
    "\n"
    "  NAME              only these: as in cuda.h (all versions), as exported, or a\n"
    "                    pattern such as 'cuMemPool*'\n"
    "  --status real|refused|missing\n"
    "                    only these\n"
    "  --driver CHOICE   nvidia, softgpu or a path\n"
    "  --json            an array of objects: name, api_name, version, status, test\n"
    "\n"
    "Exit status: 0 printed, 2 wrong usage, 3 no driver, 1 anything else.\n";

struct row {
    const gpumem_driver_fn_info *info;
    const char *status;
    const char *test; /* "" when none */
};

static const softgpu_control *find_control(const gpumem_driver *driver) {
    void *symbol = gpumem_driver_symbol(driver, "softgpu_get_control");
    softgpu_get_control_fn get;
    memcpy(&get, &symbol, sizeof get);
    return get ? get(SOFTGPU_CONTROL_VERSION) : NULL;
}

static struct row describe(const gpumem_driver *driver, const softgpu_control *control,
                           gpumem_driver_fn fn) {
    struct row row = {gpumem_driver_fn_info_get(fn), "missing", ""};
    if (!gpumem_driver_has(driver, fn))
        return row;
    row.status = "real";
    if (control) {
        softgpu_function_state state = control->function_state(row.info->symbol, &row.test);
        row.status = state == SOFTGPU_FUNCTION_REAL ? "real" : "refused";
    }
    return row;
}

static int print_json(const struct row *rows, size_t count) {
    struct json json;
    json_begin(&json);
    json_open(&json, NULL, '[');
    for (size_t i = 0; i < count; i++) {
        json_open(&json, NULL, '{');
        json_string(&json, "name", rows[i].info->symbol);
        json_string(&json, "api_name", rows[i].info->name);
        json_integer(&json, "version", rows[i].info->version);
        json_string(&json, "status", rows[i].status);
        json_string(&json, "test", rows[i].test[0] ? rows[i].test : NULL);
        json_close(&json, '}');
    }
    json_close(&json, ']');
    return json_print(&json);
}

static void print_text(const gpumem_driver *driver, const struct row *rows, size_t count) {
    unsigned real = 0, refused = 0, missing = 0;
    for (size_t i = 0; i < count; i++) {
        cli_line(stdout, "%-44s %6d  %-8s %s", rows[i].info->symbol, rows[i].info->version,
                 rows[i].status, rows[i].test);
        real += strcmp(rows[i].status, "real") == 0;
        refused += strcmp(rows[i].status, "refused") == 0;
        missing += strcmp(rows[i].status, "missing") == 0;
    }
    cli_line(stdout, "%s: %u real, %u refused, %u missing", cli_driver_info(driver).path, real,
             refused, missing);
}

/* Matches the name in cuda.h or the exported one, ignoring case; * and ? are as in a shell. */
static bool matches(gpumem_driver_fn fn, const char *pattern) {
    const gpumem_driver_fn_info *info = gpumem_driver_fn_info_get(fn);
    return fnmatch(pattern, info->symbol, FNM_CASEFOLD) == 0 ||
           fnmatch(pattern, info->name, FNM_CASEFOLD) == 0;
}

static bool is_asked_for(gpumem_driver_fn fn, char *const *names) {
    bool any = !*names;
    for (; *names && !any; names++)
        any = matches(fn, *names);
    return any;
}

/* Otherwise an unknown name would only make the list shorter. */
static int check_names(char *const *names) {
    for (; *names; names++) {
        unsigned i = 0;
        while (i < GPUMEM_FN_COUNT && !matches((gpumem_driver_fn)i, *names))
            i++;
        if (i == GPUMEM_FN_COUNT)
            return cli_error(CLI_USAGE, "driver: there is no function '%s'", *names);
    }
    return CLI_OK;
}

static int list(const gpumem_driver *driver, const char *status, char *const *names, bool as_json) {
    static struct row rows[GPUMEM_FN_COUNT];
    const softgpu_control *control = find_control(driver);
    size_t count = 0;
    for (unsigned i = 0; i < GPUMEM_FN_COUNT; i++) {
        if (!is_asked_for((gpumem_driver_fn)i, names))
            continue;
        struct row row = describe(driver, control, (gpumem_driver_fn)i);
        if (!status || strcmp(status, row.status) == 0)
            rows[count++] = row;
    }
    if (as_json)
        return print_json(rows, count);
    print_text(driver, rows, count);
    return CLI_OK;
}

int cmd_driver(int argc, char **argv) {
    enum { DRIVER = 256, STATUS, JSON };
    static const struct option options[] = {
        {"driver", required_argument, NULL, DRIVER},
        {"status", required_argument, NULL, STATUS},
        {"json", no_argument, NULL, JSON},
        {0},
    };
    const char *choice = NULL, *status = NULL;
    bool as_json = false;
    int option;
    while ((option = cli_option("driver", argc, argv, options, false)) != -1) {
        switch (option) {
        case DRIVER:
            choice = optarg;
            break;
        case STATUS:
            status = optarg;
            break;
        case JSON:
            as_json = true;
            cli_json_wanted();
            break;
        default:
            return CLI_USAGE;
        }
    }
    int named = check_names(argv + optind);
    if (named != CLI_OK)
        return named;
    if (status && strcmp(status, "real") != 0 && strcmp(status, "refused") != 0 &&
        strcmp(status, "missing") != 0)
        return cli_error(CLI_USAGE, "driver: --status is real, refused or missing, not '%s'",
                         status);
    gpumem_driver *driver = NULL;
    gpumem_status opened = gpumem_driver_open(choice, &driver);
    if (opened != GPUMEM_OK)
        return cli_fail(opened);
    int result = list(driver, status, argv + optind, as_json);
    gpumem_driver_close(driver);
    return result;
}
