#include "driver/static_program.h"

#include <link.h>
#include <stddef.h>
#include <sys/auxv.h>

/* The first object is the program. It names its loader, if it needs one. */
static int look_for_loader(struct dl_phdr_info *object, size_t size, void *found) {
    (void)size;
    for (size_t i = 0; i < object->dlpi_phnum; i++)
        if (object->dlpi_phdr[i].p_type == PT_INTERP)
            *(bool *)found = true;
    return 1;
}

/* AT_BASE is where the kernel has put the loader; 0 too for a program that was started through its
 * loader by hand, which is asked as well. */
bool gm_program_is_static(void) {
    bool has_loader = getauxval(AT_BASE) != 0;
    if (!has_loader)
        (void)dl_iterate_phdr(look_for_loader, &has_loader);
    return !has_loader;
}
