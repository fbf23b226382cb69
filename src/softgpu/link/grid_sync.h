/* PTX in the place of machine code, for both linkers: cuLink's, and the auditor's in front of
 * nvJitLink. */
#ifndef SG_LINK_GRID_SYNC_H
#define SG_LINK_GRID_SYNC_H

/* A text with cudaCGGetIntrinsicHandle and cudaCGSynchronize, which NVIDIA's library of the device
 * runtime has as machine code. Their names begin so. */
extern const char sg_link_grid_sync[];
#define SG_LINK_GRID_PREFIX "cudaCG"

#endif
