/* What stands in for the machine: whether NVIDIA's kernel module is loaded, and which Vulkan
 * libraries are installed. For all that is linked into the program; until a test says something,
 * the machine's own answers hold. */
#ifndef UNIT_VULKAN_STAND_IN_H
#define UNIT_VULKAN_STAND_IN_H

#include <stdbool.h>

enum machine_module { MODULE_OF_THE_MACHINE, MODULE_ABSENT, MODULE_LOADED };
extern enum machine_module machine_module;

/* With `machine_libraries_stand_in`, the usual Vulkan libraries are missing, but for the one that
 * is named here, which is the test driver. */
extern bool machine_libraries_stand_in;
extern const char *machine_library;

#define MACHINE_LIBRARIES 3
extern const char *const machine_libraries[MACHINE_LIBRARIES];

#endif
