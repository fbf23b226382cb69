#include "softgpu/launch/kernel_profile.h"

#include "softgpu/core/config.h"
#include "softgpu/core/state.h"

#include "base/descriptor.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct sg_kernel_profile *first;

bool sg_profile_wanted(void) {
    return sg_config()->profile_kernels != NULL;
}

/* ---- Kernels --------------------------------------------------------------------------------- */

static void profile_free(struct sg_kernel_profile *profile) {
    for (size_t i = 0; profile->files && i < profile->file_count; i++)
        free(profile->files[i]);
    sg_counts_free(profile->counts);
    free(profile->files);
    free(profile->places);
    free(profile->name);
    free(profile);
}

static uint32_t file_index(const struct sg_program *program, uint64_t number) {
    for (size_t i = 0; i < program->file_count; i++)
        if (program->files[i].number == number)
            return (uint32_t)i + 1;
    return 0;
}

static void fill_places(struct sg_kernel_profile *profile, const struct sg_program *program) {
    for (size_t i = 0; i < program->instruction_count; i++) {
        const struct sg_instruction *in = &program->instructions[i];
        struct sg_profiled_place *place = &profile->places[i];
        place->line = in->line;
        if (!in->location || in->location > program->location_count)
            continue;
        const struct sg_program_location *location = &program->locations[in->location - 1];
        place->file = file_index(program, location->file);
        place->source_line = location->line;
    }
}

static struct sg_kernel_profile *profile_new(const struct sg_program *program,
                                             const struct sg_code *code) {
    struct sg_kernel_profile *profile = calloc(1, sizeof *profile);
    if (!profile)
        return NULL;
    profile->name = strdup(program->name);
    profile->places = calloc(program->instruction_count + 1, sizeof *profile->places);
    profile->files = calloc(program->file_count + 1, sizeof *profile->files);
    profile->counts = sg_counts_new(code);
    bool good = profile->name && profile->places && profile->files && profile->counts;
    for (size_t i = 0; good && i < program->file_count; i++) {
        profile->files[i] = strdup(program->files[i].name);
        profile->file_count++;
        good = profile->files[i] != NULL;
    }
    if (!good) {
        profile_free(profile);
        return NULL;
    }
    fill_places(profile, program);
    return profile;
}

static bool same_text(const char *a, const char *b) {
    return a == b || (a && b && strcmp(a, b) == 0);
}

struct sg_kernel_profile *sg_profile_of(const struct sg_program *program,
                                        const struct sg_code *code, struct sg_loaded *loaded) {
    struct sg_kernel_profile *profile;
    for (profile = first; profile; profile = profile->next)
        if (strcmp(profile->name, program->name) == 0 &&
            profile->counts->instruction_count == program->instruction_count &&
            same_text(profile->loaded->image->ptx, loaded->image->ptx))
            return profile;
    profile = profile_new(program, code);
    if (!profile)
        return NULL;
    profile->loaded = loaded;
    sg_loaded_ref(loaded);
    profile->next = first;
    first = profile;
    return profile;
}

/* ---- Launches -------------------------------------------------------------------------------- */

void sg_profile_slice_begins(struct sg_profiled_launch *launch) {
    if (!launch->profile || launch->began)
        return;
    launch->began = sg_now();
    launch->launches++;
}

void sg_profile_slice_ends(struct sg_profiled_launch *launch, bool done) {
    if (!launch->profile || !done || !launch->began)
        return;
    launch->nanoseconds += sg_now() - launch->began;
    launch->began = 0;
}

void sg_profile_add(struct sg_profiled_launch *launch, const struct sg_grid *grid) {
    struct sg_kernel_profile *profile = launch->profile;
    if (!profile)
        return;
    sg_profile_slice_ends(launch, true); /* of a launch that was given up */
    profile->launches += launch->launches;
    profile->failed += launch->launches && sg_grid_fault(grid);
    profile->nanoseconds += launch->nanoseconds;
    sg_grid_counts(grid, profile->counts);
    *launch = (struct sg_profiled_launch){.profile = NULL};
}

static int by_time(const void *a, const void *b) {
    const struct sg_kernel_profile *x = *(const struct sg_kernel_profile *const *)a;
    const struct sg_kernel_profile *y = *(const struct sg_kernel_profile *const *)b;
    if (x->counts->nanoseconds != y->counts->nanoseconds)
        return x->counts->nanoseconds < y->counts->nanoseconds ? 1 : -1;
    return strcmp(x->name, y->name);
}

const struct sg_kernel_profile **sg_profile_sorted(size_t *count) {
    size_t all = 0;
    for (const struct sg_kernel_profile *each = first; each; each = each->next)
        all += each->launches != 0;
    const struct sg_kernel_profile **sorted = malloc((all + 1) * sizeof(*sorted));
    if (!sorted)
        return NULL;
    *count = 0;
    for (const struct sg_kernel_profile *each = first; each; each = each->next)
        if (each->launches)
            sorted[(*count)++] = each;
    qsort(sorted, all, sizeof(*sorted), by_time);
    return sorted;
}

/* ---- The file -------------------------------------------------------------------------------- */

static int open_file(const char *file, char *why, size_t size) {
    int fd = gm_fd_open(file, O_WRONLY | O_CREAT | O_APPEND, 0666);
    if (fd < 0)
        snprintf(why, size, "SOFTGPU_PROFILE_KERNELS='%.200s' cannot be written: %s", file,
                 strerror(errno));
    return fd;
}

static bool is_terminal(const char *file) {
    return strcmp(file, "-") == 0;
}

bool sg_profile_possible(const char *file, char *why, size_t size) {
    if (is_terminal(file))
        return true;
    int fd = open_file(file, why, size);
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

static bool is_json(const char *file) {
    size_t length = strlen(file);
    return length > 5 && strcmp(file + length - 5, ".json") == 0;
}

void sg_profile_write(void) {
    const char *file = sg_config()->profile_kernels;
    char why[512];
    if (!file)
        return;
    sg_lock();
    char *text = is_json(file) ? sg_profile_json() : sg_profile_text();
    sg_unlock();
    int fd = is_terminal(file) ? STDERR_FILENO : -1;
    if (!text)
        sg_log(SG_LOG_ERROR, "no memory for the profile of kernels");
    else if (text[0] && fd < 0 && (fd = open_file(file, why, sizeof why)) < 0)
        sg_log(SG_LOG_ERROR, "%s", why);
    else if (text[0] && !gm_fd_write(fd, text, strlen(text)))
        sg_log(SG_LOG_ERROR, "the profile of kernels was not written whole: %s", strerror(errno));
    if (fd > STDERR_FILENO)
        close(fd);
    free(text);
}
