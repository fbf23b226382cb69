/* Names of processes and of their descriptors, when ids and numbers are reused. */
#include "softgpu/process/process.h"
#include "temporary.h"
#include "test.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define ONE_START ((uint64_t)1 << 22)

TEST(a_process_is_named_by_its_id_and_start_time) {
    uint64_t self = sg_process_self();
    assert_int_equal(self % ONE_START, getpid());
    assert_false(sg_process_ended(self));
    assert_true(sg_process_ended(self - ONE_START)); /* who had the id before */
    assert_true(sg_process_ended(self + ONE_START));
}

TEST(a_child_has_another_process_name) {
    int ends[2], status;
    uint64_t self = sg_process_self(), child = 0;
    assert_int_equal(pipe(ends), 0);
    pid_t pid = fork();
    if (pid == 0) {
        uint64_t name = sg_process_self();
        _exit(write(ends[1], &name, sizeof name) == (ssize_t)sizeof name ? 0 : 1);
    }
    assert_int_equal(read(ends[0], &child, sizeof child), (ssize_t)sizeof child);
    assert_int_not_equal(child, self);
    assert_int_equal(child % ONE_START, pid);
    /* It ends by itself and is not yet waited for: as good as gone. */
    siginfo_t info;
    assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
    assert_true(sg_process_ended(child));
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(sg_process_ended(child));
    close(ends[0]);
    close(ends[1]);
}

/* ---- Descriptors ----------------------------------------------------------------------------- */

static struct sg_process_fd name_memory_file(int *fd) {
    struct gm_kept_file file;
    struct sg_process_fd name;
    *fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    assert_true(gm_kept_file_set(*fd, &file));
    assert_true(sg_process_fd_name(&file, &name));
    return name;
}

TEST(a_memory_file_is_opened_by_its_name) {
    int fd;
    struct sg_process_fd name = name_memory_file(&fd);
    int opened = sg_process_fd_open(&name);
    assert_true(opened >= 0);
    close(opened);
    name.started--;
    assert_int_equal(sg_process_fd_open(&name), -1);
    close(fd);
}

TEST(a_closed_descriptor_has_no_name) {
    struct gm_kept_file file;
    struct sg_process_fd name;
    int fd = memfd_create("test", MFD_CLOEXEC);
    assert_true(gm_kept_file_set(fd, &file));
    int other = memfd_create("other", MFD_CLOEXEC);
    assert_int_equal(dup2(other, fd), fd);
    assert_false(sg_process_fd_name(&file, &name));
    close(fd);
    close(other);
}

/* A file elsewhere may have the inode's number. */
TEST(another_file_with_the_same_inode_is_not_opened) {
    int fd;
    struct sg_process_fd name = name_memory_file(&fd);
    struct stat status;
    FILE *file = tmpfile();
    assert_non_null(file);
    assert_int_equal(dup2(fileno(file), fd), fd);
    assert_int_equal(fstat(fd, &status), 0);
    name.inode = status.st_ino;
    assert_int_equal(sg_process_fd_open(&name), -1);
    fclose(file);
    close(fd);
}

/* SIGALRM ends the test where opening waits. */
TEST(opening_a_descriptor_replaced_by_a_fifo_does_not_block) {
    char folder[TEMPORARY_ROOM], path[TEMPORARY_ROOM + 8];
    int fd;
    struct sg_process_fd name = name_memory_file(&fd);
    assert_non_null(temporary_folder(folder, "softgpu-fifo"));
    snprintf(path, sizeof path, "%s/fifo", folder);
    assert_int_equal(mkfifo(path, 0600), 0);
    int fifo = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    assert_int_equal(dup2(fifo, fd), fd);
    alarm(20);
    int opened = sg_process_fd_open_other(&name, name.fd, O_RDONLY);
    alarm(0);
    if (opened >= 0)
        close(opened);
    assert_int_equal(sg_process_fd_open(&name), -1);
    close(fifo);
    close(fd);
    unlink(path);
    rmdir(folder);
}
