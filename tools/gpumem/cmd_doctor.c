/* gpumem doctor: checks what affects gpumem on this machine, and says what to do. */
#include "cli.h"
#include "descriptor.h"
#include "doctor.h"
#include "json.h"
#include "terminal.h"

#include <errno.h>
#include <getopt.h>
#include <glob.h>
#include <gpumem/driver.h>
#include <gpumem/gpumem.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

const char cmd_doctor_usage[] =
    "usage: gpumem doctor [OPTION...] [FILE...]\n"
    "\n"
    "Checks the driver, the device files, Vulkan, softgpu, and the limits of this\n"
    "machine that affect gpumem and softgpu, says what to change, and ends with a\n"
    "verdict.\n"
    "\n"
    "With files, which are programs, libraries or wheels, says of each which CUDA\n"
    "runtime it uses, for which architectures it has machine code and PTX, and on\n"
    "which profiles of softgpu its kernels run. Nothing in them is run.\n"
    "\n"
    "  --driver CHOICE   nvidia, softgpu or a path\n"
    "  --verbose         each Vulkan driver that was tried, and why it failed\n"
    "  --json            an array of objects: verdict, topic, text; of files one each\n"
    "\n"
    "Exit status: 0 when a driver with a device was found and no check failed, 3\n"
    "when there is no usable driver, else 1. With files 0 when nothing in them is\n"
    "bad, 4 when one cannot be read, else 1.\n";

struct finding {
    enum verdict verdict;
    char topic[32];
    char text[1200];
};

static bool softgpu_available;
static struct finding findings[40];
static size_t finding_count;

static void __attribute__((format(printf, 3, 4)))
add(enum verdict verdict, const char *topic, const char *format, ...) {
    if (finding_count == sizeof findings / sizeof findings[0])
        return;
    struct finding *finding = &findings[finding_count++];
    finding->verdict = verdict;
    snprintf(finding->topic, sizeof finding->topic, "%s", topic);
    va_list args;
    va_start(args, format);
    vsnprintf(finding->text, sizeof finding->text, format, args);
    va_end(args);
}

/* The first line of a small file, or NULL. */
static char *read_line(const char *path, char *line, int size) {
    FILE *file = cli_open_text(path);
    if (!file)
        return NULL;
    char *read = fgets(line, size, file);
    fclose(file);
    if (read)
        line[strcspn(line, "\n")] = 0;
    return read;
}

static void check_system(void) {
    struct utsname name;
    if (uname(&name) == 0)
        add(GOOD, "system", "%s %s, %s, %ld processors", name.sysname, name.release, name.machine,
            sysconf(_SC_NPROCESSORS_ONLN));
}

static void check_nvidia_files(void) {
    char line[256];
    if (read_line("/proc/driver/nvidia/version", line, sizeof line))
        add(GOOD, "kernel driver", "%s", line);
    else
        add(NOTE, "kernel driver",
            "NVIDIA's kernel module is not loaded: no NVIDIA GPU can be used");
    glob_t files;
    if (glob("/dev/nvidia[0-9]*", 0, NULL, &files) == 0) {
        for (size_t i = 0; i < files.gl_pathc; i++)
            if (access(files.gl_pathv[i], R_OK | W_OK) != 0)
                add(BAD, "device files", "%s cannot be opened: %s; add this user to its group",
                    files.gl_pathv[i], strerror(errno));
            else
                add(GOOD, "device files", "%s can be opened", files.gl_pathv[i]);
        globfree(&files);
    }
    if (glob("/dev/nvidia-caps-imex-channels/channel*", 0, NULL, &files) == 0) {
        add(GOOD, "fabric handles", "%zu IMEX %s", files.gl_pathc,
            cli_plural(files.gl_pathc, "channel", "channels"));
        globfree(&files);
    } else {
        add(NOTE, "fabric handles",
            "no IMEX channel: memory cannot be shared by fabric handle, only by file descriptor");
    }
}

static void check_driver(const char *choice, bool *usable, bool *soft) {
    gpumem_driver *driver = NULL;
    *usable = false;
    if (gpumem_driver_open(choice, &driver) != GPUMEM_OK) {
        add(BAD, "CUDA driver", "%s", gpumem_last_error()->message);
        return;
    }
    const gpumem_driver_api *cu = gpumem_driver_table(driver);
    *soft = cli_driver_info(driver).kind == GPUMEM_DRIVER_SOFTGPU;
    int version = 0, count = 0;
    CUresult result = cu->cuInit(0);
    cu->cuDriverGetVersion(&version);
    if (result == CUDA_SUCCESS)
        result = cu->cuDeviceGetCount(&count);
    if (result != CUDA_SUCCESS || count == 0) {
        const char *name = "no device";
        if (result != CUDA_SUCCESS)
            cu->cuGetErrorName(result, &name);
        add(BAD, "CUDA driver", "%s opens, but has no usable device: %s",
            cli_driver_info(driver).path, name);
    } else {
        add(GOOD, "CUDA driver", "%s, API %d.%d, %d %s%s", cli_driver_info(driver).path,
            version / 1000, version % 1000 / 10, count,
            cli_plural((uint64_t)count, "device", "devices"), *soft ? ", software" : "");
        *usable = true;
    }
    gpumem_driver_close(driver);
}

static void check_vulkan_of(gpumem_library *library, int ordinal, bool verbose) {
    gpumem_vulkan_info info = {.size = sizeof info};
    char heap[32], budget[32] = "unknown";
    if (gpumem_device_get_vulkan_info(library, ordinal, &info) != GPUMEM_OK)
        add(NOTE, "Vulkan", "device %d: %s", ordinal, gpumem_last_error()->message);
    else if (!info.available)
        add(NOTE, "Vulkan", "device %d: no memory mapped for the CPU: %s", ordinal,
            cli_vulkan_reason(info.reason, verbose));
    else
        add(GOOD, "Vulkan", "device %d: %s maps its memory for the CPU, heap %s, budget %s%s",
            ordinal, info.library, cli_format_size(info.heap_bytes, heap),
            info.has_budget ? cli_format_size(info.budget_bytes, budget) : budget,
            info.placed ? "" : "; not at chosen addresses, so such memory does not grow in place");
}

/* The driver that maps device memory for the CPU, which is optional. */
static void check_vulkan(const char *choice, bool verbose) {
    gpumem_library *library = NULL;
    gpumem_library_info info = {.size = sizeof info};
    if (gpumem_open(GPUMEM_OPTIONS(gpumem_open_options, .driver = choice), &library) != GPUMEM_OK)
        return;
    if (gpumem_library_get_info(library, &info) == GPUMEM_OK)
        for (int ordinal = 0; ordinal < info.device_count; ordinal++)
            check_vulkan_of(library, ordinal, verbose);
    gpumem_close(library);
}

/* Checked whatever driver is chosen: it is the one for a machine without a GPU. */
static void check_softgpu(void) {
    gpumem_driver *driver = NULL;
    if (gpumem_driver_open("softgpu", &driver) != GPUMEM_OK) {
        add(NOTE, "softgpu", "%s", gpumem_last_error()->message);
        return;
    }
    add(GOOD, "softgpu", "%s", cli_driver_info(driver).path);
    add(GOOD, "softgpu",
        "runs programs without a GPU: gpumem run --softgpu -- PROGRAM; for gpumem itself "
        "GPUMEM_DRIVER=softgpu or --driver softgpu");
    softgpu_available = true;
    gpumem_driver_close(driver);
}

/* What was not there when this was built, with the package that brings it. */
static void check_build(void) {
    if (GPUMEM_OFF[0])
        add(NOTE, "build", "off, for want of a package when this was built: %s", GPUMEM_OFF);
}

static void check_limits(void) {
    struct rlimit limit;
    char size[32];
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        if (limit.rlim_cur < 4096)
            add(NOTE, "open files",
                "limit %" PRIu64 ": each exported chunk needs one; raise with ulimit -n",
                (uint64_t)limit.rlim_cur);
        else
            add(GOOD, "open files", "limit %" PRIu64, (uint64_t)limit.rlim_cur);
    }
    if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
        add(BAD, "address space",
            "limited to %s (ulimit -v): drivers reserve terabytes of addresses",
            cli_format_size((uint64_t)limit.rlim_cur, size));
    char line[64];
    if (read_line("/proc/sys/vm/max_map_count", line, sizeof line))
        add(atol(line) < 65530 ? NOTE : GOOD, "memory mappings", "vm.max_map_count is %s", line);
}

static void check_memory(void) {
    char line[128];
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    char text[32];
    if (pages > 0 && page > 0)
        add(GOOD, "host memory", "%s", cli_format_size((uint64_t)pages * (uint64_t)page, text));
    if (read_line("/sys/fs/cgroup/memory.max", line, sizeof line) && strcmp(line, "max") != 0)
        add(NOTE, "host memory", "this control group may use %s of it",
            cli_format_size(strtoull(line, NULL, 10), text));
    if (read_line("/sys/kernel/mm/transparent_hugepage/enabled", line, sizeof line)) {
        if (strstr(line, "[never]"))
            add(NOTE, "huge pages",
                "transparent huge pages are off: pinning large buffers takes several times longer");
        else
            add(GOOD, "huge pages", "transparent huge pages: %s", line);
    }
    int fd = cli_make_memory("gpumem-doctor");
    if (fd < 0)
        add(BAD, "memfd", "memfd_create fails: %s; softgpu and its sharing need it",
            strerror(errno));
    else {
        add(GOOD, "memfd", "works");
        close(fd);
    }
}

/* Prints the conclusion. `soft`: the usable driver is softgpu. */
static void conclude(bool usable, bool soft) {
    size_t bad = 0, notes = 0;
    for (size_t i = 0; i < finding_count; i++) {
        bad += findings[i].verdict == BAD;
        notes += findings[i].verdict == NOTE;
    }
    char counted[80];
    snprintf(counted, sizeof counted, "%zu %s, %zu %s", bad, cli_plural(bad, "fault", "faults"),
             notes, cli_plural(notes, "note", "notes"));
    if (usable && bad == 0)
        add(GOOD, "verdict", "gpumem works here, on %s (%s)", soft ? "softgpu" : "the GPU",
            counted);
    else if (usable)
        add(BAD, "verdict", "gpumem works here, but not all of its features do (%s)", counted);
    else if (softgpu_available)
        add(BAD, "verdict",
            "no usable GPU (%s); gpumem works on softgpu: set GPUMEM_DRIVER=softgpu", counted);
    else
        add(BAD, "verdict", "gpumem cannot work here (%s)", counted);
}

const char *const doctor_verdicts[] = {"ok", "note", "bad"};

void doctor_line(enum verdict verdict, const char *topic, const char *text) {
    static const enum cli_colour colours[] = {CLI_GREEN, CLI_YELLOW, CLI_RED};
    const char *name = doctor_verdicts[verdict];
    cli_line_painted(stdout, colours[verdict], strlen(name), "%-4s  %-16s  %s", name, topic, text);
}

/* Returns an exit status. */
static int print_findings(bool as_json) {
    if (!as_json) {
        for (size_t i = 0; i < finding_count; i++)
            doctor_line(findings[i].verdict, findings[i].topic, findings[i].text);
        return CLI_OK;
    }
    struct json json;
    json_begin(&json);
    json_open(&json, NULL, '[');
    for (size_t i = 0; i < finding_count; i++) {
        json_open(&json, NULL, '{');
        json_string(&json, "verdict", doctor_verdicts[findings[i].verdict]);
        json_string(&json, "topic", findings[i].topic);
        json_string(&json, "text", findings[i].text);
        json_close(&json, '}');
    }
    json_close(&json, ']');
    return json_print(&json);
}

int cmd_doctor(int argc, char **argv) {
    enum { DRIVER = 256, VERBOSE, JSON };
    static const struct option options[] = {
        {"driver", required_argument, NULL, DRIVER},
        {"verbose", no_argument, NULL, VERBOSE},
        {"json", no_argument, NULL, JSON},
        {0},
    };
    const char *choice = NULL;
    bool as_json = false, verbose = false;
    int option;
    while ((option = cli_option("doctor", argc, argv, options, false)) != -1) {
        if (option == DRIVER)
            choice = optarg;
        else if (option == VERBOSE)
            verbose = true;
        else if (option == JSON)
            as_json = true;
        else
            return CLI_USAGE;
    }
    if (as_json)
        cli_json_wanted();
    if (optind < argc && choice)
        return cli_error(CLI_USAGE, "doctor: --driver is for the machine, not for files");
    if (optind < argc)
        return doctor_files(argv + optind, argc - optind, as_json);

    bool usable, soft = false;
    check_system();
    check_nvidia_files();
    check_driver(choice, &usable, &soft);
    if (usable)
        check_vulkan(choice, verbose || as_json);
    check_softgpu();
    check_build();
    check_limits();
    check_memory();
    conclude(usable, soft);
    int printed = print_findings(as_json);
    if (printed != CLI_OK)
        return printed;
    bool bad = findings[finding_count - 1].verdict == BAD;
    return !usable ? CLI_NO_DEVICE : bad ? CLI_FAILED : CLI_OK;
}
