/*
 * A semaphore as softgpu shares it between processes, and with tests that stand in for a graphics
 * driver: a sealed memory file that holds one softgpu_semaphore (see gpumem/softgpu.h). Any process
 * with the descriptor maps the file and updates the value with atomic operations; there is no
 * owner, so no process takes a semaphore with it when it dies.
 */
#ifndef SG_EXTERNAL_SEMAPHORE_FD_H
#define SG_EXTERNAL_SEMAPHORE_FD_H

#include <gpumem/softgpu.h>

#include <stdbool.h>

/* A descriptor of a new semaphore, to be closed by the caller; -1 with errno set. */
int sg_semaphore_fd_new(softgpu_semaphore_kind kind, uint64_t value);
/* Maps a semaphore; NULL when the descriptor is not one. The descriptor remains the caller's. */
softgpu_semaphore *sg_semaphore_fd_map(int fd);
void sg_semaphore_fd_unmap(softgpu_semaphore *semaphore);

/* Sets the value of a timeline, or the binary state. */
void sg_semaphore_fd_signal(softgpu_semaphore *semaphore, uint64_t value);
/* Timeline: has it reached `value`? Binary: was it signaled? If so, it no longer is. */
bool sg_semaphore_fd_take(softgpu_semaphore *semaphore, uint64_t value);

#endif
