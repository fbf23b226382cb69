#include "descriptors.h"

#include "test.h"

#include <dirent.h>
#include <sys/stat.h>

/* Since Linux 6.2 the folder's size is their number. Reading the folder takes long where there are
 * many, and sweeps ask after each call. */
size_t open_descriptors(void) {
    struct stat itself;
    size_t count = 0;
    if (stat("/proc/self/fd", &itself) == 0 && itself.st_size > 0)
        return (size_t)itself.st_size;
    DIR *folder = opendir("/proc/self/fd");
    assert_non_null(folder);
    while (readdir(folder))
        count++;
    closedir(folder);
    return count - 3; /* its own two names, and the folder */
}
