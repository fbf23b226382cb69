/* The profile of kernels as one line of JSON. */
#include "softgpu/launch/kernel_profile.h"

#include "base/json.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void add_spaces(struct gm_json *json, const struct sg_profile_sums *sums) {
    gm_json_open(json, "spaces", '{');
    for (unsigned s = 0; s < SG_COUNT_SPACES; s++) {
        gm_json_open(json, sg_profile_space_name(s), '{');
        gm_json_number(json, "bytes_read", sums->bytes[s][SG_COUNT_READ]);
        gm_json_number(json, "bytes_written", sums->bytes[s][SG_COUNT_WRITTEN]);
        gm_json_number(json, "bytes_atomic", sums->bytes[s][SG_COUNT_ATOMIC]);
        gm_json_number(json, "contiguous", sums->accesses[s][SG_COUNT_CONTIGUOUS]);
        gm_json_number(json, "same", sums->accesses[s][SG_COUNT_SAME]);
        gm_json_number(json, "scattered", sums->accesses[s][SG_COUNT_SCATTERED]);
        gm_json_close(json, '}');
    }
    gm_json_close(json, '}');
}

/* False: no memory. */
static bool add_ptx(struct gm_json *json, const struct sg_kernel_profile *profile,
                    const struct sg_profile_sums *sums) {
    bool good = true;
    gm_json_open(json, "ptx_lines", '[');
    for (size_t i = 0; good && i < sums->ptx_count; i++) {
        size_t length;
        const char *line = sg_profile_line(profile, sums->ptx[i].line, &length);
        char *text = strndup(line, length);
        good = text != NULL;
        gm_json_open(json, NULL, '{');
        gm_json_number(json, "line", sums->ptx[i].line);
        gm_json_string(json, "text", text);
        gm_json_number(json, "warp_instructions", sums->ptx[i].warps);
        gm_json_number(json, "thread_instructions", sums->ptx[i].threads);
        gm_json_close(json, '}');
        free(text);
    }
    gm_json_close(json, ']');
    return good;
}

static void add_source(struct gm_json *json, const struct sg_kernel_profile *profile,
                       const struct sg_profile_sums *sums) {
    gm_json_open(json, "source_lines", '[');
    for (size_t i = 0; i < sums->source_count; i++) {
        gm_json_open(json, NULL, '{');
        gm_json_string(json, "file", profile->files[sums->source[i].file - 1]);
        gm_json_number(json, "line", sums->source[i].line);
        gm_json_number(json, "warp_instructions", sums->source[i].warps);
        gm_json_number(json, "thread_instructions", sums->source[i].threads);
        gm_json_close(json, '}');
    }
    gm_json_close(json, ']');
}

static bool add_kernel(struct gm_json *json, const struct sg_kernel_profile *profile) {
    struct sg_profile_sums sums;
    if (!sg_profile_sum(profile, &sums))
        return false;
    gm_json_open(json, NULL, '{');
    gm_json_string(json, "name", profile->name);
    gm_json_number(json, "launches", profile->launches);
    gm_json_number(json, "failed", profile->failed);
    gm_json_number(json, "cpu_ns", profile->counts->nanoseconds);
    gm_json_number(json, "wall_ns", profile->nanoseconds);
    gm_json_number(json, "warp_instructions", sums.all.warps);
    gm_json_number(json, "thread_instructions", sums.all.threads);
    gm_json_number(json, "thread_instructions_guard_true", sums.all.taken);
    add_spaces(json, &sums);
    bool good = add_ptx(json, profile, &sums);
    add_source(json, profile, &sums);
    gm_json_close(json, '}');
    return good;
}

char *sg_profile_json(void) {
    struct gm_json json;
    size_t count = 0, size = 0;
    const struct sg_kernel_profile **kernels = sg_profile_sorted(&count);
    bool good = kernels != NULL;
    if (!good || !count) {
        free(kernels);
        return good ? strdup("") : NULL;
    }
    gm_json_begin(&json);
    gm_json_open(&json, NULL, '{');
    gm_json_number(&json, "process", (uint64_t)getpid());
    gm_json_open(&json, "kernels", '[');
    for (size_t i = 0; good && i < count; i++)
        good = add_kernel(&json, kernels[i]);
    gm_json_close(&json, ']');
    gm_json_close(&json, '}');
    free(kernels);
    char *text = gm_json_end(&json, &size);
    if (!text || !good) {
        free(text);
        return NULL;
    }
    /* Each process adds one line to a shared file. JSON escapes newlines in strings, so all others
     * become spaces. */
    for (char *at = text; (at = strchr(at, '\n')) && at[1];)
        *at = ' ';
    return text;
}
