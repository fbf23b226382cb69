/* Mesa's Vulkan driver on the CPU, where it is installed. */
#ifndef TESTS_LAVAPIPE_H
#define TESTS_LAVAPIPE_H

#include <stdbool.h>

/* Through the loader that is opened without a choice. False, with the reason printed as a skip,
 * when there is no loader or no driver on the CPU. */
bool find_lavapipe(unsigned char uuid[16]);

#endif
