/* Shared by the files of external/. */
#ifndef SG_EXTERNAL_INTERNAL_H
#define SG_EXTERNAL_INTERNAL_H

#include "softgpu/core/config.h"
#include "softgpu/external/external.h"

/* The error for a descriptor that is not of the type it is imported as. */
#define SG_EXTERNAL_WRONG_FD CUDA_ERROR_UNKNOWN

void sg_external_memory_context_end(struct sg_context *context);
void sg_semaphores_context_end(struct sg_context *context);
void sg_dump_external_memory(struct sg_text *text);
void sg_dump_semaphores(struct sg_text *text);

#endif
