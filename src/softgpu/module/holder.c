#include "softgpu/module/holder.h"

#include "softgpu/binary/read.h"
#include "softgpu/core/site.h"
#include "softgpu/device/profile.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

/* Names of those that have PTX in it, separated by commas. */
static void find_profiles(struct sg_bytes fatbin, char *names, size_t size) {
    static char *list; /* read once: a library may have hundreds of fat binaries */
    char name[64];
    if (!list)
        list = sg_profile_list();
    int architecture, taken;
    size_t used = 0;
    names[0] = 0;
    for (const char *at = list; at && sscanf(at, "%63s %d%n", name, &architecture, &taken) == 2;
         at += taken)
        if (sg_fatbin_has_ptx_for(fatbin, architecture) && used < size)
            used += (size_t)snprintf(names + used, size - used, "%s%s", used ? " or " : "", name);
}

char *sg_holder_text(const void *image, size_t size, bool wrapped) {
    char file[PATH_MAX], holds[400], profiles[300], text[PATH_MAX + 1000];
    struct sg_bytes fatbin;
    if (!sg_image_is_fatbin(image, size, wrapped, &fatbin) ||
        !sg_site_file(fatbin.data, file, sizeof file))
        return NULL;
    const char *slash = strrchr(file, '/');
    sg_fatbin_list(fatbin, holds, sizeof holds);
    find_profiles(fatbin, profiles, sizeof profiles);
    snprintf(text, sizeof text, "%s holds %s; %s%s", slash ? slash + 1 : file, holds,
             profiles[0] ? "it runs with SOFTGPU_PROFILE=" : "no profile runs it", profiles);
    return strdup(text);
}
