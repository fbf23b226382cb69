/* A user's program: compiles as C and as C++, needs no driver, fails when versions disagree. */
#include <gpumem/gpumem.h>
#include <stdio.h>

int main(void) {
    const int header =
        10000 * GPUMEM_VERSION_MAJOR + 100 * GPUMEM_VERSION_MINOR + GPUMEM_VERSION_PATCH;
    if (gpumem_version() != header) {
        fprintf(stderr, "header %d, library %d\n", header, gpumem_version());
        return 1;
    }
    printf("gpumem %s\n", GPUMEM_VERSION_STRING);
    return 0;
}
