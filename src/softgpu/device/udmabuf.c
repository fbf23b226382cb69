#include "softgpu/device/udmabuf.h"

#include "base/descriptor.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <unistd.h>

int sg_udmabuf_make(struct udmabuf_create_list *list, size_t count) {
    int maker = gm_fd_open("/dev/udmabuf", O_RDWR, 0);
    if (maker < 0)
        return -1;
    list->flags = UDMABUF_FLAGS_CLOEXEC;
    list->count = (uint32_t)count;
    int fd = gm_fd_keep(ioctl(maker, UDMABUF_CREATE_LIST, list));
    int error = errno;
    close(maker);
    errno = error;
    return fd;
}

struct udmabuf_create_list *sg_udmabuf_list(size_t count) {
    return calloc(1,
                  sizeof(struct udmabuf_create_list) + count * sizeof(struct udmabuf_create_item));
}

bool sg_udmabuf_seal(int file) {
    int seals = fcntl(file, F_GET_SEALS);
    return seals >= 0 &&
           ((seals & F_SEAL_SHRINK) != 0 || fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK) == 0);
}

/* A file beyond the process's limit (ulimit -f) would raise SIGXFSZ. */
static bool grow(int file, size_t size) {
    struct rlimit limit;
    bool allowed = getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur >= size;
    return allowed && ftruncate(file, (off_t)size) == 0;
}

static bool try_one_page(void) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    struct udmabuf_create_list *list = sg_udmabuf_list(1);
    int file = list ? gm_fd_memory("softgpu probe") : -1;
    int fd = -1;
    if (file >= 0 && grow(file, page) && sg_udmabuf_seal(file)) {
        list->list[0] = (struct udmabuf_create_item){.memfd = (uint32_t)file, .size = page};
        fd = sg_udmabuf_make(list, 1);
    }
    free(list);
    if (file >= 0)
        close(file);
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

bool sg_udmabuf_usable(void) {
    static int usable = -1;
    if (usable < 0)
        usable = try_one_page();
    return usable == 1;
}
