/* Pages of memory files as a DMA buffer of the kernel, made by /dev/udmabuf. */
#ifndef SG_DEVICE_UDMABUF_H
#define SG_DEVICE_UDMABUF_H

#include <linux/udmabuf.h>
#include <stdbool.h>
#include <stddef.h>

/* Whether this process can create them: tried once, with one page. With the lock. */
bool sg_udmabuf_usable(void);

/* Room for `count` pieces of files, zeroed; the caller's to free. NULL when out of memory. */
struct udmabuf_create_list *sg_udmabuf_list(size_t count);
/* The kernel requires files that cannot shrink under the buffer. Memory files only grow. False,
 * with errno, if the file cannot be sealed. */
bool sg_udmabuf_seal(int file);
/* Returns the descriptor of a buffer of these pieces, owned by the caller; -1, with errno, on
 * failure. */
int sg_udmabuf_make(struct udmabuf_create_list *list, size_t count);

#endif
