/* How many file descriptors this process has open, to be compared with another time's number. */
#ifndef TESTS_DESCRIPTORS_H
#define TESTS_DESCRIPTORS_H

#include <stddef.h>

size_t open_descriptors(void);

#endif
