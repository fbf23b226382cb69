/* Names for processes and their descriptors, for handles that are nothing but bytes. Ids and
 * descriptors are reused, so a name also contains the start time and the inode. A descriptor is
 * opened through /proc: its process must be alive, of the same user and in the same PID namespace.
 */
#ifndef SG_PROCESS_PROCESS_H
#define SG_PROCESS_PROCESS_H

#include "base/kept_file.h"

#include <stdint.h>

struct sg_process_fd {
    uint32_t pid, fd;
    uint64_t started; /* clock ticks since boot: distinguishes a reused id */
    uint64_t inode;   /* distinguishes a reused descriptor */
};

/* Names a descriptor of this process; false if it is no longer open on the file. */
bool sg_process_fd_name(const struct gm_kept_file *file, struct sg_process_fd *name);
/* Opens a named descriptor in this process; -1 if it is gone. Never waits. */
int sg_process_fd_open(const struct sg_process_fd *name);
/* Opens another descriptor of the same process; the caller makes sure that it is what it should be.
 * Never waits. */
int sg_process_fd_open_other(const struct sg_process_fd *name, uint32_t fd, int flags);
/* Is it a descriptor of this process? */
bool sg_process_fd_own(const struct sg_process_fd *name);

/* This process in one word, unique to it: id and start time. With the lock. */
uint64_t sg_process_self(void);
/* Has the process of that name ended? */
bool sg_process_ended(uint64_t name);

/* State and start time of a process; false if there is no such process. */
bool sg_process_status(uint64_t pid, char *state, uint64_t *start);

#endif
