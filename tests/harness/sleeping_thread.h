/* Whether a thread of this process sleeps: it waits for another one. */
#ifndef TESTS_SLEEPING_THREAD_H
#define TESTS_SLEEPING_THREAD_H

#include <stdio.h>

static inline int is_asleep(int thread) {
    char path[64], state = '?';
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", thread);
    FILE *file = fopen(path, "re");
    if (file) {
        if (fscanf(file, "%*d (%*[^)]) %c", &state) != 1)
            state = '?';
        fclose(file);
    }
    return state == 'S';
}

#endif
