/*
 * Lines: written whole and at once, announced before the call, so that a crash names its call. To
 * a pipe of their own where the runner made one: kernels and drivers print at any moment.
 */
#include "parity.h"

#include <inttypes.h>
#include <stdarg.h>

typedef struct line {
    char text[3500]; /* under PIPE_BUF: two processes may write to one pipe */
    size_t used;
} line;

static int lines_fd = STDOUT_FILENO;
static char scenario_name[128];
static char note[256];
static int seq;
static CUresult last_result;
static line head;

static void line_add(line *l, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void line_addv(line *l, const char *format, va_list values) {
    size_t room = sizeof(l->text) - l->used;
    int n = vsnprintf(l->text + l->used, room, format, values);
    if (n > 0)
        l->used += (size_t)n < room ? (size_t)n : room - 1;
}

static void line_add(line *l, const char *format, ...) {
    va_list values;
    va_start(values, format);
    line_addv(l, format, values);
    va_end(values);
}

static void line_write(line *l) {
    size_t done = 0;
    if (l->used > sizeof(l->text) - 2)
        l->used = sizeof(l->text) - 2;
    l->text[l->used++] = '\n';
    while (done < l->used) {
        ssize_t n = write(lines_fd, l->text + done, l->used - done);
        if (n <= 0)
            _exit(3);
        done += (size_t)n;
    }
}

void par_record_start(const char *scenario) {
    const char *fd = getenv(PAR_LINES_VARIABLE);
    lines_fd = fd != NULL ? atoi(fd) : STDOUT_FILENO;
    snprintf(scenario_name, sizeof(scenario_name), "%s", scenario);
    seq = 0;
}

void par_rename(const char *suffix) {
    size_t used = strlen(scenario_name);
    snprintf(scenario_name + used, sizeof(scenario_name) - used, ":%s", suffix);
    seq = 0;
}

void par_no_restart(void) {
    line l = {.used = 0};
    line_add(&l, "~!");
    line_write(&l);
}

void par_seq_set(int next) {
    seq = next;
}

CUresult par_last(void) {
    return last_result;
}

void par_note(const char *format, ...) {
    va_list values;
    va_start(values, format);
    vsnprintf(note, sizeof(note), format, values);
    va_end(values);
}

static int last_skip(void) {
    return par.skips > 0 ? par.skip[par.skips - 1] : -1;
}

static bool skipped(int position) {
    for (int i = 0; i < par.skips; i++) {
        if (par.skip[i] == position)
            return true;
    }
    return false;
}

bool par_before(gpumem_driver_fn fn, const char *cls, const char *args, const par_out *outs,
                size_t count) {
    const gpumem_driver_fn_info *info = gpumem_driver_fn_info_get(fn);
    par.position += par.in_sweep ? 0 : 1;
    for (size_t i = 0; i < count; i++) {
        if (!outs[i].keep)
            memset(outs[i].at, PAR_SENTINEL, outs[i].size);
    }
    head.used = 0;
    line_add(&head, "%s#%03d %s@%d %s ", scenario_name, seq++, info->symbol, info->version, cls);
    if (note[0] != '\0') {
        line_add(&head, "[%s] ", note);
        note[0] = '\0';
    }
    line_add(&head, "%s", args);
    if (skipped(par.position)) {
        last_result = CUDA_ERROR_UNKNOWN;
        return false;
    }
    if (par.position > last_skip()) {
        line announce = {.used = 0};
        line_add(&announce, "~%d %s", par.position, head.text);
        line_write(&announce);
    }
    return true;
}

static bool all_bytes(const par_out *out, unsigned char value) {
    const unsigned char *bytes = out->at;
    for (size_t i = 0; i < out->size; i++) {
        if (bytes[i] != value)
            return false;
    }
    return true;
}

static uint64_t unsigned_of(const par_out *out) {
    uint64_t value = 0;
    memcpy(&value, out->at, out->size < sizeof(value) ? out->size : sizeof(value));
    return value;
}

static int64_t signed_of(const par_out *out) {
    uint64_t value = unsigned_of(out);
    unsigned bits = (unsigned)(out->size * 8);
    if (bits < 64 && (value >> (bits - 1)) != 0)
        value |= ~(uint64_t)0 << bits;
    return (int64_t)value;
}

static void print_string(line *l, const char *text, size_t room) {
    line_add(l, "\"");
    for (size_t i = 0; i < room && text[i] != '\0'; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c == PAR_SENTINEL)
            line_add(l, "~");
        else if (c < ' ' || c > '~' || c == '"')
            line_add(l, "\\x%02x", c);
        else
            line_add(l, "%c", c);
    }
    line_add(l, "\"");
}

static void print_string_pointer(line *l, const par_out *out) {
    const char *text;
    memcpy(&text, out->at, sizeof(text));
    if (text == NULL)
        line_add(l, "NULL");
    else
        print_string(l, text, 200);
}

static void print_float(line *l, const par_out *out) {
    float value;
    memcpy(&value, out->at, sizeof(value));
    if (value < 0.0F)
        line_add(l, "negative");
    else if (value > 0.0F)
        line_add(l, "positive");
    else
        line_add(l, "zero");
}

static void par_print_out(line *l, const par_out *out) {
    char name[160];
    line_add(l, "%s=", out->name);
    if (!out->keep && all_bytes(out, PAR_SENTINEL)) {
        line_add(l, "untouched");
        return;
    }
    switch (out->kind) {
    case 'i':
        line_add(l, "%" PRId64, signed_of(out));
        break;
    case 'u':
        line_add(l, "%" PRIu64, unsigned_of(out));
        break;
    case 'x':
        line_add(l, "0x%" PRIx64, unsigned_of(out));
        break;
    case 'p':
    case 'h':
        par_name_print(name, sizeof(name), unsigned_of(out), out->range,
                       out->kind == 'p' ? out->name : NULL);
        if (out->kind == 'h' && name[0] == '\0') {
            par_name(unsigned_of(out), 0, out->name);
            par_name_print(name, sizeof(name), unsigned_of(out), 0, NULL);
        }
        line_add(l, "%s", name);
        break;
    case 'c':
        line_add(l, all_bytes(out, 0) ? "zero" : "set");
        break;
    case 'f':
        print_float(l, out);
        break;
    case 'd':
        line_add(l, signed_of(out) > 2 ? "fd" : "%" PRId64, signed_of(out));
        break;
    case 's':
        print_string(l, out->at, out->size);
        break;
    case 'z':
        print_string_pointer(l, out);
        break;
    default:
        abort();
    }
}

void par_after(CUresult result, const par_out *outs, size_t count) {
    line l = head;
    const char *name = par_result_name(result);
    last_result = result;
    if (name != NULL)
        line_add(&l, " -> %s", name);
    else
        line_add(&l, " -> CUresult(%d)", (int)result);
    for (size_t i = 0; i < count; i++) {
        line_add(&l, i == 0 ? " {" : ", ");
        par_print_out(&l, &outs[i]);
    }
    if (count > 0)
        line_add(&l, "}");
    if (par.position > last_skip())
        line_write(&l);
}

const char *par_hex(char *text, size_t room, const unsigned char *bytes, size_t size) {
    text[0] = 0;
    for (size_t i = 0; i < size && 2 * i + 2 < room; i++)
        snprintf(text + 2 * i, 3, "%02x", bytes[i]);
    return text;
}

void par_see(const char *what, const char *format, ...) {
    line l = {.used = 0};
    va_list values;
    line_add(&l, "%s#%03d see %s ", scenario_name, seq++, what);
    if (note[0] != '\0') {
        line_add(&l, "[%s] ", note);
        note[0] = '\0';
    }
    line_add(&l, "() -> ");
    va_start(values, format);
    line_addv(&l, format, values);
    va_end(values);
    if (par.position >= last_skip())
        line_write(&l);
}

void par_setup(gpumem_driver_fn fn, CUresult result) {
    if (result == CUDA_SUCCESS)
        return;
    const char *name = par_result_name(result);
    par_see("setup", "SETUP_FAILED %s %s", gpumem_driver_fn_info_get(fn)->symbol,
            name != NULL ? name : "?");
    _exit(4);
}
