/* Fabric handles: 64 bytes that name a shareable file of another process of this machine. If the
 * profile has no fabric, they are refused, as on hardware without an IMEX channel. */
#ifndef SG_PROCESS_FABRIC_H
#define SG_PROCESS_FABRIC_H

#include "base/kept_file.h"

#include <gpumem/cuda_api.h>

enum sg_fabric_kind { SG_FABRIC_MEMORY = 1, SG_FABRIC_POOL };

bool sg_fabric_permitted(void);
/* Names a file of this process, which must keep it open. OPERATING_SYSTEM if it is not open. */
CUresult sg_fabric_export(const struct gm_kept_file *file, enum sg_fabric_kind kind, void *handle);
/* The file that a handle names, opened here in *fd. NOT_SUPPORTED without a fabric, INVALID_VALUE
 * if the handle is not of that kind or its file is gone. */
CUresult sg_fabric_open(const void *handle, enum sg_fabric_kind kind, int *fd);

#endif
