/* gpumem info: driver, devices, their capabilities, and why some are missing. */
#include "cli.h"
#include "json.h"
#include "terminal.h"

#include <getopt.h>
#include <gpumem/gpumem.h>
#include <stdio.h>
#include <string.h>

const char cmd_info_usage[] =
    "usage: gpumem info [OPTION...]\n"
    "\n"
    "Prints the opened driver, its devices, the Vulkan driver that maps the memory\n"
    "of each for the CPU, each capability of gpumem, and why some are missing. Some\n"
    "capabilities are probed, because attributes promise what a machine then refuses.\n"
    "\n"
    "  --driver CHOICE   nvidia, softgpu or a path\n"
    "  --device N        only this one\n"
    "  --verbose         each Vulkan driver that was tried, and why it failed\n"
    "  --json            one object on standard output\n"
    "\n"
    "Exit status: 0 printed, 2 wrong usage, 3 no driver or device, 1 anything else.\n";

static bool verbose;

struct arguments {
    const char *driver;
    int device; /* -1: all */
    bool json;
};

static void print_uuid(const unsigned char uuid[16], char text[37]) {
    char *to = text;
    for (int i = 0; i < 16; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10)
            *to++ = '-';
        to += snprintf(to, 3, "%02x", uuid[i]);
    }
}

static void print_capability_json(struct json *json, const char *name,
                                  const gpumem_capability_report *report) {
    json_open(json, name, '{');
    json_bool(json, "supported", report->supported);
    json_string(json, "reason", report->supported ? NULL : report->reason);
    json_close(json, '}');
}

/* The text has what each is, and below them all why some are missing. */
static gpumem_status print_capabilities(gpumem_device *device, struct json *json) {
    gpumem_capability_report reports[GPUMEM_CAPABILITY_COUNT];
    bool missing = false;
    for (int i = 0; i < GPUMEM_CAPABILITY_COUNT; i++) {
        gpumem_capability capability = (gpumem_capability)i;
        gpumem_capability_report *report = &reports[i];
        *report = (gpumem_capability_report){.size = sizeof *report};
        gpumem_status status = gpumem_device_get_capability(device, capability, report);
        if (status != GPUMEM_OK)
            return status;
        const char *name = gpumem_capability_name(capability);
        missing = missing || !report->supported;
        if (json)
            print_capability_json(json, name, report);
        else
            cli_line_painted(stdout, report->supported ? CLI_GREEN : CLI_YELLOW, 5, "  %-3s  %s",
                             report->supported ? "yes" : "no", name);
    }
    if (!json && missing)
        cli_line(stdout, "  why not:");
    for (int i = 0; i < GPUMEM_CAPABILITY_COUNT && !json; i++)
        if (!reports[i].supported)
            cli_line(stdout, "  %-32s  %s", gpumem_capability_name((gpumem_capability)i),
                     reports[i].reason);
    return GPUMEM_OK;
}

static void print_vulkan_text(const gpumem_vulkan_info *info) {
    char heap[32], budget[32], used[32];
    if (!info->available) {
        cli_line(stdout, "  %-32s  no: %s", "vulkan", cli_vulkan_reason(info->reason, verbose));
        return;
    }
    cli_line(stdout, "  %-32s  %s, %s", "vulkan", info->library, info->device_name);
    cli_line(stdout, "  %-32s  type %d of %s, %s; maps at chosen addresses: %s",
             "memory that the CPU can map", info->memory_type,
             cli_format_size(info->heap_bytes, heap), info->coherent ? "coherent" : "not coherent",
             info->placed ? "yes" : "no");
    if (info->has_budget)
        cli_line(stdout, "  %-32s  %s, %s used", "vulkan budget",
                 cli_format_size(info->budget_bytes, budget),
                 cli_format_size(info->used_bytes, used));
}

static void print_vulkan_json(struct json *json, const gpumem_vulkan_info *info) {
    json_open(json, "vulkan", '{');
    json_bool(json, "available", info->available);
    json_string(json, "reason", info->available ? NULL : info->reason);
    json_string(json, "library", info->library[0] ? info->library : NULL);
    json_string(json, "device_name", info->library[0] ? info->device_name : NULL);
    if (info->available) {
        json_integer(json, "memory_type", info->memory_type);
        json_bool(json, "coherent", info->coherent);
        json_bool(json, "placed", info->placed);
        json_unsigned(json, "atom", info->atom);
        json_unsigned(json, "heap_bytes", info->heap_bytes);
        json_unsigned(json, "allocation_limit", info->allocation_limit);
    }
    if (info->has_budget) {
        json_unsigned(json, "budget_bytes", info->budget_bytes);
        json_unsigned(json, "used_bytes", info->used_bytes);
    }
    json_close(json, '}');
}

static gpumem_status print_vulkan(gpumem_library *library, int ordinal, struct json *json) {
    gpumem_vulkan_info info = {.size = sizeof info};
    gpumem_status status = gpumem_device_get_vulkan_info(library, ordinal, &info);
    if (status != GPUMEM_OK)
        return status;
    if (json)
        print_vulkan_json(json, &info);
    else
        print_vulkan_text(&info);
    return GPUMEM_OK;
}

static void print_device_text(const gpumem_device_info *info, uint64_t free_bytes) {
    char uuid[37], total[32], unused[32], granularity[32];
    print_uuid(info->uuid, uuid);
    cli_line(stdout, "device %d: %s", info->ordinal, info->name);
    cli_line(stdout, "  %-32s  %s", "uuid", uuid);
    cli_line(stdout, "  %-32s  %s", "pci bus id", info->pci_bus_id);
    cli_line(stdout, "  %-32s  %d.%d", "compute capability", info->compute_major,
             info->compute_minor);
    cli_line(stdout, "  %-32s  %s, %s free", "memory", cli_format_size(info->memory_bytes, total),
             cli_format_size(free_bytes, unused));
    cli_line(stdout, "  %-32s  %s", "virtual memory granularity",
             cli_format_size(info->granularity_recommended, granularity));
}

static void print_device_json(struct json *json, const gpumem_device_info *info,
                              uint64_t free_bytes) {
    char uuid[37];
    print_uuid(info->uuid, uuid);
    json_integer(json, "ordinal", info->ordinal);
    json_string(json, "name", info->name);
    json_string(json, "uuid", uuid);
    json_string(json, "pci_bus_id", info->pci_bus_id);
    json_integer(json, "compute_major", info->compute_major);
    json_integer(json, "compute_minor", info->compute_minor);
    json_integer(json, "host_numa_node", info->host_numa_node);
    json_unsigned(json, "memory_bytes", info->memory_bytes);
    json_unsigned(json, "memory_free_bytes", free_bytes);
    json_unsigned(json, "granularity_minimum", info->granularity_minimum);
    json_unsigned(json, "granularity_recommended", info->granularity_recommended);
}

static gpumem_status print_opened(gpumem_device *device, struct json *json) {
    gpumem_device_info info = {.size = sizeof info};
    uint64_t free_bytes = 0, total_bytes = 0;
    gpumem_library *library = gpumem_device_library(device);
    gpumem_status status = gpumem_device_get_info(library, gpumem_device_ordinal(device), &info);
    if (status == GPUMEM_OK)
        status = gpumem_device_get_memory(device, &free_bytes, &total_bytes);
    if (status != GPUMEM_OK)
        return status;
    if (!json) {
        print_device_text(&info, free_bytes);
        status = print_vulkan(library, info.ordinal, NULL);
        return status == GPUMEM_OK ? print_capabilities(device, NULL) : status;
    }
    json_open(json, NULL, '{');
    print_device_json(json, &info, free_bytes);
    status = print_vulkan(library, info.ordinal, json);
    if (status != GPUMEM_OK)
        return status;
    json_open(json, "capabilities", '{');
    status = print_capabilities(device, json);
    json_close(json, '}');
    json_close(json, '}');
    return status;
}

static gpumem_status print_devices(gpumem_library *library, const struct arguments *arguments,
                                   int count, struct json *json) {
    for (int ordinal = 0; ordinal < count; ordinal++) {
        if (arguments->device >= 0 && ordinal != arguments->device)
            continue;
        gpumem_device *device = NULL;
        gpumem_status status = gpumem_device_open(library, ordinal, &device);
        if (status != GPUMEM_OK)
            return status;
        status = print_opened(device, json);
        gpumem_status closed = gpumem_device_close(device);
        if (status != GPUMEM_OK || closed != GPUMEM_OK)
            return status != GPUMEM_OK ? status : closed;
    }
    return GPUMEM_OK;
}

/* Returns an exit status. */
static int print_library(gpumem_library *library, const struct arguments *arguments) {
    gpumem_library_info info = {.size = sizeof info};
    gpumem_status status = gpumem_library_get_info(library, &info);
    if (status != GPUMEM_OK)
        return cli_fail(status);
    if (!arguments->json) {
        cli_line(stdout, "driver: %s (%s), API %d.%d, %d %s", info.driver_path,
                 info.softgpu ? "softgpu, a software GPU" : "NVIDIA", info.driver_version / 1000,
                 info.driver_version % 1000 / 10, info.device_count,
                 cli_plural((uint64_t)info.device_count, "device", "devices"));
        status = print_devices(library, arguments, info.device_count, NULL);
        return status == GPUMEM_OK ? CLI_OK : cli_fail(status);
    }
    struct json json;
    json_begin(&json);
    json_open(&json, NULL, '{');
    json_string(&json, "driver_path", info.driver_path);
    json_string(&json, "driver_kind", info.driver_kind);
    json_integer(&json, "driver_version", info.driver_version);
    json_bool(&json, "softgpu", info.softgpu);
    json_open(&json, "devices", '[');
    status = print_devices(library, arguments, info.device_count, &json);
    json_close(&json, ']');
    json_close(&json, '}');
    if (status != GPUMEM_OK) {
        json_discard(&json);
        return cli_fail(status);
    }
    return json_print(&json);
}

static int parse(int argc, char **argv, struct arguments *arguments) {
    enum { DRIVER = 256, DEVICE, VERBOSE, JSON };
    static const struct option options[] = {
        {"driver", required_argument, NULL, DRIVER},
        {"device", required_argument, NULL, DEVICE},
        {"verbose", no_argument, NULL, VERBOSE},
        {"json", no_argument, NULL, JSON},
        {0},
    };
    int option;
    while ((option = cli_option("info", argc, argv, options, false)) != -1) {
        switch (option) {
        case DRIVER:
            arguments->driver = optarg;
            break;
        case DEVICE:
            if (!cli_parse_ordinal(optarg, &arguments->device))
                return cli_error(CLI_USAGE, "info: '%s' is not a device number", optarg);
            break;
        case VERBOSE:
            verbose = true;
            break;
        case JSON:
            arguments->json = true;
            cli_json_wanted();
            break;
        default:
            return CLI_USAGE;
        }
    }
    if (optind < argc)
        return cli_error(CLI_USAGE, "info: unexpected argument '%s'", argv[optind]);
    return CLI_OK;
}

int cmd_info(int argc, char **argv) {
    struct arguments arguments = {.device = -1};
    int parsed = parse(argc, argv, &arguments);
    if (parsed != CLI_OK)
        return parsed;
    gpumem_library *library = NULL;
    gpumem_status status =
        gpumem_open(GPUMEM_OPTIONS(gpumem_open_options, .driver = arguments.driver), &library);
    if (status != GPUMEM_OK)
        return cli_fail(status);
    gpumem_library_info info = {.size = sizeof info};
    status = gpumem_library_get_info(library, &info);
    int result;
    if (status == GPUMEM_OK && arguments.device >= info.device_count)
        result = cli_error(CLI_NO_DEVICE, "no device %d: the driver has %d", arguments.device,
                           info.device_count);
    else
        result = status == GPUMEM_OK ? print_library(library, &arguments) : cli_fail(status);
    gpumem_close(library);
    return result;
}
