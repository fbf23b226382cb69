/* Processes and their descriptors, named by what stays the same when they are not: for handles that
 * are nothing but bytes. Ids and descriptors are reused, so a name holds the start time and the
 * inode too. A descriptor is opened through /proc: its process must be alive, of the same user and
 * in the same PID namespace. */
#ifndef SG_PROCESS_PROCESS_H
#define SG_PROCESS_PROCESS_H

#include "base/kept_file.h"

#include <stdint.h>

struct sg_process_fd {
    uint32_t pid, fd;
    uint64_t started; /* clock ticks since boot: tells a reused id apart */
    uint64_t inode;   /* tells a reused descriptor apart */
};

/* Names a descriptor of this process; false when it is not open on the file any more. */
bool sg_process_fd_name(const struct gm_kept_file *file, struct sg_process_fd *name);
/* Opens what was named, here; -1 when it is gone. Never waits. */
int sg_process_fd_open(const struct sg_process_fd *name);
/* Opens another descriptor of the same process; the caller makes sure that it is what it should be.
 * Never waits. */
int sg_process_fd_open_other(const struct sg_process_fd *name, uint32_t fd, int flags);
/* Is it a descriptor of this process? */
bool sg_process_fd_own(const struct sg_process_fd *name);

/* This process in one word, which no other process has had: id and start time. With the lock. */
uint64_t sg_process_self(void);
/* Has the process of that name ended? */
bool sg_process_ended(uint64_t name);

/* State and start time of a process; false when there is none. */
bool sg_process_status(uint64_t pid, char *state, uint64_t *start);

#endif
