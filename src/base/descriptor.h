/*
 * The only place that makes descriptors. The project's own, and those that it hands out, are 3 or
 * above and close-on-exec: even if a program has closed 0, 1 or 2, nothing printed there ends up in
 * one of our files. tests/lint refuses calls that make descriptors anywhere else.
 *
 * Each function does all of it or nothing: on failure no descriptor is left, and errno says why.
 * Thread-safe. errno is kept on success.
 */
#ifndef GM_BASE_DESCRIPTOR_H
#define GM_BASE_DESCRIPTOR_H

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/types.h>

/* As open(2); `mode` counts with O_CREAT only. -1 on failure. */
int gm_fd_open(const char *path, int flags, mode_t mode);
/* As openat(2), for an existing file. -1 on failure. */
int gm_fd_open_at(int folder, const char *name, int flags);
/* A memory file that can be sealed. `name` shows in /proc/PID/maps. -1 on failure. */
int gm_fd_memory(const char *name);
/* A descriptor of the same open file as `fd`, which is left as it is. -1 on failure. */
int gm_fd_duplicate(int fd);
/* Takes over a descriptor made elsewhere, for example by a driver or an ioctl: moves it and marks
 * it close-on-exec. A negative one is passed on. -1 on failure, with `fd` closed. */
int gm_fd_keep(int fd);

/* An epoll instance. -1 on failure. */
int gm_fd_epoll(void);
/* A Unix stream socket; with `flags` SOCK_NONBLOCK or 0. -1 on failure. */
int gm_fd_socket(int flags);
/* As accept(2): the next connection, which blocks. -1 on failure. */
int gm_fd_accept(int listener);

/* As fopen(3) with the mode "r" or "w", and opendir(3). NULL on failure. */
FILE *gm_fd_stream(const char *path, const char *mode);
DIR *gm_fd_folder(const char *path);

/* Reads until `size` bytes are there or the file ends, through signals: fewer than `size` only at
 * the end. -1 on failure, also when something was read before it. */
ssize_t gm_fd_read(int fd, void *bytes, size_t size);
/* Writes all of it, through signals; in one write(2) if the kernel takes it. False on failure, also
 * when something was written. */
bool gm_fd_write(int fd, const void *bytes, size_t size);

/* As recvmsg(2) without waiting: the descriptors in the message are the caller's. On failure those
 * received are closed, and the bytes of the message are lost. */
ssize_t gm_fd_receive(int socket, struct msghdr *message);

#endif
