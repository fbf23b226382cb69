/* Opens softgpu, or the driver named, and prints which file that is. Compiles as C and as C++. */
#include <gpumem/driver.h>
#include <gpumem/gpumem.h>
#include <stdio.h>

int main(int argc, char **argv) {
    gpumem_driver *driver = NULL;
    gpumem_driver_info info;
    info.size = sizeof info;
    if (gpumem_driver_open(argc > 1 ? argv[1] : "softgpu", &driver) != GPUMEM_OK) {
        fprintf(stderr, "%s\n", gpumem_last_error()->message);
        return 1;
    }
    if (gpumem_driver_get_info(driver, &info) != GPUMEM_OK)
        return 1;
    printf("%s\n", info.path);
    gpumem_driver_close(driver);
    return 0;
}
