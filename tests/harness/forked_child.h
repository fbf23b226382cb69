/*
 * Checks in a forked child, which has no cmocka: what does not hold ends it, and its status tells
 * the line, counted from `first_line`. The file defines that above its children:
 *
 *     static const int first_line = __LINE__;
 */
#ifndef TESTS_FORKED_CHILD_H
#define TESTS_FORKED_CHILD_H

#include <unistd.h>

#define HOLDS(condition)                                                                           \
    do {                                                                                           \
        if (!(condition))                                                                          \
            _exit((__LINE__ - first_line) % 250 + 1);                                              \
    } while (0)

#endif
