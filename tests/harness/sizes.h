/* Words that every test uses: sizes in bytes, and the length of an array. */
#ifndef TESTS_SIZES_H
#define TESTS_SIZES_H

#include <stddef.h>

#define KIB          ((size_t)1 << 10)
#define MIB          ((size_t)1 << 20)
#define GIB          ((size_t)1 << 30)
#define COUNT(array) (sizeof(array) / sizeof(array)[0])

#endif
