#include "stand_in.h"

#include "test.h"
#include "vulkan_icd.h"

#include <dlfcn.h>
#include <fcntl.h>

enum machine_module machine_module;
bool machine_libraries_stand_in;
const char *machine_library;

const char *const machine_libraries[MACHINE_LIBRARIES] = {"libvulkan.so.1", "libEGL_nvidia.so.0",
                                                          "libGLX_nvidia.so.0"};

static bool is_usual(const char *name) {
    for (size_t i = 0; name && i < MACHINE_LIBRARIES; i++)
        if (strcmp(name, machine_libraries[i]) == 0)
            return true;
    return false;
}

/* Instead of libc's. */
void *dlopen(const char *name, int flags) {
    static void *(*real)(const char *, int);
    if (!real) {
        void *symbol = dlsym(RTLD_NEXT, "dlopen");
        memcpy(&real, &symbol, sizeof real);
    }
    if (!machine_libraries_stand_in || !is_usual(name))
        return real(name, flags);
    if (machine_library && strcmp(name, machine_library) == 0)
        return real(GPUMEM_BINARY_DIR VULKAN_ICD_FILE, flags);
    char missing[64];
    snprintf(missing, sizeof missing, "/nowhere/%s", name); /* dlerror has something to say */
    return real(missing, flags);
}

int access(const char *path, int mode) {
    if (machine_module == MODULE_OF_THE_MACHINE || strcmp(path, "/proc/driver/nvidia/version") != 0)
        return faccessat(AT_FDCWD, path, mode, 0);
    return machine_module == MODULE_LOADED ? 0 : -1;
}
