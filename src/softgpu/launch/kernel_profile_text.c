/* The profile of kernels as a table for people. */
#include "softgpu/launch/kernel_profile.h"

#include "base/printable.h"
#include "softgpu/core/state.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WIDEST_NAME 40 /* of a kernel in the table: longer ones are truncated */
#define WIDEST_LINE 72 /* of PTX */

static double milliseconds(uint64_t nanoseconds) {
    return (double)nanoseconds / 1e6;
}

static double share(uint64_t part, uint64_t all) {
    return all ? 100.0 * (double)part / (double)all : 0.0;
}

static double threads_of(const struct sg_count *count, uint64_t threads) {
    return count->warps ? (double)threads / (double)count->warps : 0.0;
}

/* Names can contain anything: makes them printable. */
static void add_shown(FILE *file, const char *text, size_t length, size_t most) {
    char copy[256], shown[512];
    bool cut = length > most;
    snprintf(copy, sizeof copy, "%.*s", (int)(cut ? most : length), text);
    gm_printable(copy, shown, sizeof shown);
    fprintf(file, "%s%s", shown, cut ? "..." : "");
}

static void add_table(FILE *file, const struct sg_kernel_profile *const *kernels, size_t count) {
    uint64_t all = 0;
    for (size_t i = 0; i < count; i++)
        all += kernels[i]->counts->nanoseconds;
    fprintf(file, "%6s %12s %12s %9s  %s\n", "share", "CPU ms", "wall ms", "launches", "kernel");
    for (size_t i = 0; i < count; i++) {
        const struct sg_kernel_profile *one = kernels[i];
        fprintf(file, "%5.1f%% %12.3f %12.3f %9" PRIu64 "  ", share(one->counts->nanoseconds, all),
                milliseconds(one->counts->nanoseconds), milliseconds(one->nanoseconds),
                one->launches);
        add_shown(file, one->name, strlen(one->name), WIDEST_NAME);
        if (one->failed)
            fprintf(file, " (%" PRIu64 " failed)", one->failed);
        fputc('\n', file);
    }
}

static void add_spaces(FILE *file, const struct sg_profile_sums *sums) {
    bool any = false;
    for (unsigned s = 0; s < SG_COUNT_SPACES; s++) {
        const uint64_t *bytes = sums->bytes[s], *ways = sums->accesses[s];
        if (!(bytes[SG_COUNT_READ] | bytes[SG_COUNT_WRITTEN] | bytes[SG_COUNT_ATOMIC]))
            continue;
        if (!any)
            fprintf(file, "  %-12s %14s %14s %14s %12s %12s %12s\n", "bytes", "read", "written",
                    "atomic", "contiguous", "same", "scattered");
        any = true;
        fprintf(file, "  %-12s %14" PRIu64 " %14" PRIu64 " %14" PRIu64, sg_profile_space_name(s),
                bytes[SG_COUNT_READ], bytes[SG_COUNT_WRITTEN], bytes[SG_COUNT_ATOMIC]);
        if (ways[SG_COUNT_SAME] | ways[SG_COUNT_CONTIGUOUS] | ways[SG_COUNT_SCATTERED])
            fprintf(file, " %12" PRIu64 " %12" PRIu64 " %12" PRIu64, ways[SG_COUNT_CONTIGUOUS],
                    ways[SG_COUNT_SAME], ways[SG_COUNT_SCATTERED]);
        fputc('\n', file);
    }
}

static void add_heat(FILE *file, const struct sg_hot_line *hot, const struct sg_count *all) {
    fprintf(file, "  %5.1f%% %14" PRIu64 " %6.2f  ", share(hot->warps, all->warps), hot->warps,
            hot->warps ? (double)hot->threads / (double)hot->warps : 0.0);
}

static void add_lines(FILE *file, const struct sg_kernel_profile *profile,
                      const struct sg_profile_sums *sums) {
    fprintf(file, "  %6s %14s %6s  %s\n", "share", "instructions", "lanes", "line of PTX");
    for (size_t i = 0; i < sums->ptx_count; i++) {
        size_t length;
        const char *text = sg_profile_line(profile, sums->ptx[i].line, &length);
        add_heat(file, &sums->ptx[i], &sums->all);
        fprintf(file, "%" PRIu32 ": ", sums->ptx[i].line);
        add_shown(file, text, length, WIDEST_LINE);
        fputc('\n', file);
    }
    if (sums->source_count)
        fprintf(file, "  %6s %14s %6s  %s\n", "share", "instructions", "lanes", "source line");
    for (size_t i = 0; i < sums->source_count; i++) {
        const char *name = profile->files[sums->source[i].file - 1];
        add_heat(file, &sums->source[i], &sums->all);
        add_shown(file, name, strlen(name), WIDEST_LINE);
        fprintf(file, ":%" PRIu32 "\n", sums->source[i].line);
    }
}

static bool add_kernel(FILE *file, const struct sg_kernel_profile *profile) {
    struct sg_profile_sums sums;
    if (!sg_profile_sum(profile, &sums))
        return false;
    fputs("\nkernel ", file);
    add_shown(file, profile->name, strlen(profile->name), 200);
    fprintf(file,
            "\n  instructions: %" PRIu64 " of warps, %" PRIu64 " of threads; %.2f threads each, "
            "%.2f with their guard true\n",
            sums.all.warps, sums.all.threads, threads_of(&sums.all, sums.all.threads),
            threads_of(&sums.all, sums.all.taken));
    add_spaces(file, &sums);
    add_lines(file, profile, &sums);
    return true;
}

char *sg_profile_text(void) {
    size_t count = 0, size = 0;
    char *text = NULL;
    const struct sg_kernel_profile **kernels = sg_profile_sorted(&count);
    FILE *file = kernels ? open_memstream(&text, &size) : NULL;
    bool good = file != NULL;
    if (good && count) {
        fprintf(file, "softgpu: kernels of process %d\n", (int)getpid());
        add_table(file, kernels, count);
        for (size_t i = 0; good && i < count; i++)
            good = add_kernel(file, kernels[i]);
    }
    good = file && !ferror(file) && good;
    if (file && fclose(file) != 0)
        good = false;
    free(kernels);
    if (good)
        return text;
    free(text);
    return NULL;
}
