/* gpumem doctor FILE...: what programs, libraries and wheels need of a runtime and of a device. */
#include "cli.h"
#include "descriptor.h"
#include "device_code.h"
#include "doctor.h"
#include "json.h"
#include "terminal.h"
#include "wheel.h"

#include <errno.h>
#include <gpumem/driver.h>
#include <gpumem/softgpu.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct report {
    const struct profiles *profiles;
    struct json *json; /* NULL: lines */
    const char *file;
    int status;
    unsigned members; /* of a wheel, that hold anything of CUDA's */
};

/* ---- The profiles ---------------------------------------------------------------------------- */

static void read_profiles(const char *text, struct profiles *profiles) {
    while (profiles->count < MOST_PROFILES) {
        struct profile *profile = &profiles->profile[profiles->count];
        if (sscanf(text, "%63s %d", profile->name, &profile->capability) != 2)
            break;
        profiles->count++;
        text += strcspn(text, "\n");
        text += *text == '\n';
    }
}

/* None where softgpu is not installed, or is older than this command. */
static void find_profiles(struct profiles *profiles) {
    gpumem_driver *driver = NULL;
    softgpu_get_control_fn get;
    if (gpumem_driver_open("softgpu", &driver) != GPUMEM_OK)
        return;
    void *symbol = gpumem_driver_symbol(driver, "softgpu_get_control");
    memcpy(&get, &symbol, sizeof get);
    const softgpu_control *control = get ? get(SOFTGPU_CONTROL_VERSION) : NULL;
    if (control && control->size >= sizeof *control) {
        char *text = control->profile_list(&profiles->newest_ptx);
        if (text)
            read_profiles(text, profiles);
        control->free_text(text);
    }
    gpumem_driver_close(driver);
}

/* ---- What is found --------------------------------------------------------------------------- */

static void __attribute__((format(printf, 4, 5)))
say(struct report *report, enum verdict verdict, const char *topic, const char *format, ...) {
    char text[2048];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (verdict == BAD && report->status == CLI_OK)
        report->status = CLI_FAILED;
    if (!report->json) {
        doctor_line(verdict, topic, text);
        return;
    }
    json_open(report->json, NULL, '{');
    json_string(report->json, "verdict", doctor_verdicts[verdict]);
    json_string(report->json, "topic", topic);
    json_string(report->json, "text", text);
    json_close(report->json, '}');
}

struct list {
    char text[1024];
    size_t used;
};

static void __attribute__((format(printf, 2, 3)))
append(struct list *list, const char *format, ...) {
    va_list args;
    const char *comma = list->used ? ", " : "";
    list->used +=
        (size_t)snprintf(list->text + list->used, sizeof list->text - list->used, "%s", comma);
    va_start(args, format);
    int length = vsnprintf(list->text + list->used, sizeof list->text - list->used, format, args);
    va_end(args);
    list->used += length > 0 ? (size_t)length : 0;
    if (list->used >= sizeof list->text)
        list->used = sizeof list->text - 1;
}

static int by_architecture(const void *left, const void *right) {
    const struct target *a = left, *b = right;
    int by = a->architecture - b->architecture;
    return by ? by : a->suffix != b->suffix ? a->suffix - b->suffix : a->version - b->version;
}

static bool has(const struct device_code *code, bool ptx) {
    for (size_t i = 0; i < code->target_count; i++)
        if (code->targets[i].ptx == ptx)
            return true;
    return false;
}

static struct list targets_of(const struct device_code *code, bool ptx) {
    struct list list = {.used = 0};
    char name[32];
    for (size_t i = 0; i < code->target_count; i++) {
        const struct target *target = &code->targets[i];
        device_code_target(target, name);
        if (target->ptx == ptx && ptx)
            append(&list, "%s (PTX %d.%d)", name, target->version / 10, target->version % 10);
        else if (target->ptx == ptx)
            append(&list, "%s", name);
    }
    return list;
}

static void say_runtime(struct report *report, const struct device_code *code) {
    const char *name = code->runtime_name, *major = strstr(name, ".so.");
    bool ours = major && (strncmp(major, ".so.12", 6) == 0 || strncmp(major, ".so.13", 6) == 0) &&
                (!major[6] || major[6] == '.');
    switch (code->runtime) {
    case RUNTIME_NONE:
        if (code->binaries)
            say(report, GOOD, "runtime", "none: its code is for who loads it");
        break;
    case RUNTIME_SHARED:
        if (ours)
            say(report, GOOD, "runtime", "%s, as a library: gpumem run puts its own there", name);
        else
            say(report, BAD, "runtime", "%s, as a library; gpumem has those of CUDA 12 and 13",
                name);
        break;
    case RUNTIME_OPENED:
        say(report, GOOD, "runtime",
            "it names libcudart.so, and may open it: gpumem run answers "
            "by its own");
        break;
    case RUNTIME_INSIDE:
        say(report, BAD, "runtime",
            "NVIDIA's is inside, which softgpu refuses; link with nvcc --cudart=shared");
        break;
    case RUNTIME_ITSELF:
        say(report, NOTE, "runtime", "it is one, %s: gpumem run puts its own there", name);
        break;
    }
    struct list libraries = {.used = 0};
    for (size_t i = 0; i < code->library_count; i++)
        append(&libraries, "%s", code->libraries[i]);
    if (libraries.used)
        say(report, NOTE, "libraries",
            "%s: NVIDIA's, machine code alone; what they are asked for is refused", libraries.text);
}

/* Why no PTX in the file runs on a profile. */
static void say_why_not(struct report *report, const struct device_code *code, size_t profile) {
    const struct profile *where = &report->profiles->profile[profile];
    const int newest = report->profiles->newest_ptx;
    struct list why = {.used = 0};
    char name[32];
    for (size_t i = 0; i < code->target_count; i++) {
        const struct target *target = &code->targets[i];
        if (!target->ptx)
            continue;
        device_code_target(target, name);
        if (target->version > newest)
            append(&why, "PTX %d.%d is newer than %d.%d", target->version / 10,
                   target->version % 10, newest / 10, newest % 10);
        else
            append(&why, "%s runs on %d.%d%s", name, target->architecture / 10,
                   target->architecture % 10,
                   target->suffix == 'a'   ? " alone"
                   : target->suffix == 'f' ? " and later of its family"
                                           : " and later");
    }
    say(report, NOTE, "not on", "%s (%d.%d): %s", where->name, where->capability / 10,
        where->capability % 10, why.text);
}

/* Those on which exactly `runs` of the fat binaries have PTX that runs. */
static struct list profiles_with(const struct report *report, const struct device_code *code,
                                 uint64_t runs) {
    struct list list = {.used = 0};
    for (size_t i = 0; i < report->profiles->count; i++)
        if (code->runs[i] == runs)
            append(&list, "%s", report->profiles->profile[i].name);
    return list;
}

static void say_parts(struct report *report, const struct device_code *code) {
    for (size_t i = 0; i < report->profiles->count; i++) {
        bool before = false;
        for (size_t j = 0; j < i; j++)
            before = before || code->runs[j] == code->runs[i];
        if (code->runs[i] && code->runs[i] < code->binaries && !before)
            say(report, NOTE, "softgpu",
                "runs %llu of %llu fat binaries with profile %s; the others have no PTX for it",
                (unsigned long long)code->runs[i], (unsigned long long)code->binaries,
                profiles_with(report, code, code->runs[i]).text);
    }
}

static void say_profiles(struct report *report, const struct device_code *code) {
    const struct profiles *profiles = report->profiles;
    struct list whole = profiles_with(report, code, code->binaries);
    uint64_t most = 0;
    for (size_t i = 0; i < profiles->count; i++)
        most = code->runs[i] > most ? code->runs[i] : most;
    if (!profiles->count)
        say(report, NOTE, "softgpu", "is not installed beside this command");
    else if (!has(code, true))
        say(report, BAD, "softgpu",
            "runs PTX, and here is machine code alone: compile for both, as with nvcc "
            "-gencode arch=compute_80,code=compute_80");
    else if (!most)
        say(report, BAD, "softgpu", "has no profile for its PTX");
    if (whole.used && code->runtime == RUNTIME_INSIDE)
        say(report, NOTE, "softgpu", "has profiles for its PTX, with another runtime: %s",
            whole.text);
    else if (whole.used)
        say(report, GOOD, "softgpu", "runs with profile %s", whole.text);
    say_parts(report, code);
    for (size_t i = 0; i < profiles->count && has(code, true); i++)
        if (!code->runs[i])
            say_why_not(report, code, i);
}

static void say_code(struct report *report, const struct device_code *code) {
    if (code->damaged)
        say(report, BAD, "device code", "damaged: a fat binary does not end where it says");
    if (!code->binaries) {
        say(report, GOOD, "device code", "none");
        return;
    }
    if (has(code, false))
        say(report, GOOD, "machine code", "%s", targets_of(code, false).text);
    if (has(code, true))
        say(report, GOOD, "PTX", "%s", targets_of(code, true).text);
    if (code->relocatable)
        say(report, GOOD, "relocatable", "linked again from its parts' PTX where it is loaded");
    say_profiles(report, code);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void write_targets(struct json *json, const struct device_code *code, bool ptx) {
    char name[32], version[32];
    json_open(json, ptx ? "ptx" : "machine_code", '[');
    for (size_t i = 0; i < code->target_count; i++) {
        const struct target *target = &code->targets[i];
        if (target->ptx != ptx)
            continue;
        json_open(json, NULL, '{');
        json_string(json, "target", device_code_target(target, name));
        snprintf(version, sizeof version, "%d.%d", target->version / 10, target->version % 10);
        if (ptx)
            json_string(json, "version", version);
        json_unsigned(json, "images", target->images);
        json_close(json, '}');
    }
    json_close(json, ']');
}

static void write_code(struct report *report, const struct device_code *code) {
    static const char *const runtimes[] = {"none", "shared", "opened", "static", "itself"};
    struct json *json = report->json;
    json_string(json, "runtime", runtimes[code->runtime]);
    json_string(json, "runtime_library", code->runtime_name[0] ? code->runtime_name : NULL);
    json_unsigned(json, "fat_binaries", code->binaries);
    json_bool(json, "relocatable", code->relocatable);
    write_targets(json, code, false);
    write_targets(json, code, true);
    json_open(json, "profiles", '[');
    for (size_t i = 0; i < report->profiles->count; i++) {
        json_open(json, NULL, '{');
        json_string(json, "name", report->profiles->profile[i].name);
        json_integer(json, "capability", report->profiles->profile[i].capability);
        json_unsigned(json, "runs", code->runs[i]);
        json_close(json, '}');
    }
    json_close(json, ']');
}

/* ---- Files ----------------------------------------------------------------------------------- */

/* A file, or a member of one: its heading, or the beginning of its object. */
static void begin(struct report *report, const char *member) {
    if (!report->json) {
        cli_line(stdout, "%s%s%s", report->file, member ? ": " : "", member ? member : "");
        return;
    }
    json_open(report->json, NULL, '{');
    json_string(report->json, "file", report->file);
    json_bytes(report->json, "file_bytes", report->file);
    json_string(report->json, "member", member);
}

static void refuse(struct report *report, const char *why) {
    report->status = CLI_FILE;
    cli_error(CLI_FILE, "%s %s", report->file, why);
    if (!report->json)
        return;
    begin(report, NULL);
    json_string(report->json, "error", why);
    json_close(report->json, '}');
}

static void describe(struct report *report, const char *member, struct device_code *code) {
    qsort(code->targets, code->target_count, sizeof *code->targets, by_architecture);
    begin(report, member);
    if (report->json) {
        write_code(report, code);
        json_open(report->json, "findings", '[');
    }
    say_runtime(report, code);
    say_code(report, code);
    if (report->json) {
        json_close(report->json, ']');
        json_close(report->json, '}');
    }
}

/* A wheel has many members that are nothing to a GPU: those that are something are described. */
static void look_at_member(void *user, const char *name, const struct source *member) {
    static struct device_code code;
    struct report *report = user;
    char why[256], text[1400];
    if (!device_code_read(member, report->profiles, &code, why, sizeof why)) {
        snprintf(text, sizeof text, "holds %s, which %s", name, why);
        refuse(report, text);
    } else if (code.runtime != RUNTIME_NONE || code.binaries || code.library_count ||
               code.damaged) {
        report->members++;
        describe(report, name, &code);
    }
}

static void look_at_wheel(struct report *report, const struct source *source) {
    char why[1400];
    report->members = 0;
    if (!wheel_each(source, look_at_member, report, why, sizeof why))
        refuse(report, why);
    else if (!report->members && report->status != CLI_FILE) {
        static struct device_code none;
        describe(report, NULL, &none);
    }
}

static void look_at(struct report *report) {
    static struct device_code code;
    struct stat status;
    char why[256];
    if (stat(report->file, &status) == 0 && !S_ISREG(status.st_mode)) {
        refuse(report, "is no regular file"); /* a pipe would be waited for */
        return;
    }
    FILE *file = cli_open_text(report->file);
    if (!file || fstat(fileno(file), &status) != 0) {
        snprintf(why, sizeof why, "cannot be opened: %s", strerror(errno));
        refuse(report, why);
    } else {
        struct source source = {fileno(file), 0, (uint64_t)status.st_size};
        if (wheel_is(&source))
            look_at_wheel(report, &source);
        else if (device_code_read(&source, report->profiles, &code, why, sizeof why))
            describe(report, NULL, &code);
        else
            refuse(report, why);
    }
    if (file)
        fclose(file);
}

int doctor_files(char **files, int count, bool as_json) {
    static struct profiles profiles;
    struct json json = {0};
    struct report report = {.profiles = &profiles, .json = as_json ? &json : NULL};
    find_profiles(&profiles);
    if (as_json) {
        json_begin(&json);
        json_open(&json, NULL, '[');
    }
    for (int i = 0; i < count; i++) {
        report.file = files[i];
        look_at(&report);
    }
    if (!as_json)
        return report.status;
    json_close(&json, ']');
    int printed = json_print(&json);
    return printed == CLI_OK ? report.status : printed;
}
