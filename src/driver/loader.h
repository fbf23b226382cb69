/* What a loaded driver is, for the library's own use. */
#ifndef GM_DRIVER_LOADER_H
#define GM_DRIVER_LOADER_H

#include <gpumem/driver.h>

bool gm_driver_is_softgpu(const gpumem_driver *driver);

/* As gpumem_driver_info.path. */
const char *gm_driver_path(const gpumem_driver *driver);

#endif
