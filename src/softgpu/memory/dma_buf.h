/* Bytes of device memory as a DMA buffer of the kernel, made by /dev/udmabuf. */
#ifndef SG_MEMORY_DMA_BUF_H
#define SG_MEMORY_DMA_BUF_H

#include <stdbool.h>

/* Whether this process can make them: tried once. */
bool sg_dma_buf_usable(void);

#endif
