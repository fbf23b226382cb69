/*
 * What gpumem doctor reads of programs, libraries and wheels: the input is the file. No crash, no
 * hang, and what is found keeps within its bounds.
 */
#include "../../tools/gpumem/device_code.h"
#include "../../tools/gpumem/wheel.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct profiles profiles = {
    .profile = {{"a100", 80}, {"h200", 90}, {"rtx5090", 120}}, .count = 3, .newest_ptx = 95};

static void require(bool true_here) {
    if (!true_here)
        abort();
}

static void read_code(const struct source *source) {
    static struct device_code code;
    char why[256] = "", name[32];
    if (!device_code_read(source, &profiles, &code, why, sizeof why)) {
        require(why[0]);
        return;
    }
    require(code.target_count <= MOST_TARGETS && code.library_count <= MOST_LIBRARIES);
    for (size_t i = 0; i < code.target_count; i++)
        require(code.targets[i].images && device_code_target(&code.targets[i], name)[0]);
    for (size_t i = 0; i < profiles.count; i++)
        require(code.runs[i] <= code.binaries);
}

static void read_member(void *user, const char *name, const struct source *member) {
    (void)user;
    require(name != NULL);
    read_code(member);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char why[1400] = "";
    int fd = memfd_create("input", MFD_CLOEXEC);
    require(fd >= 0 && write(fd, data, size) == (ssize_t)size);
    struct source source = {fd, 0, size};
    if (!wheel_is(&source))
        read_code(&source);
    else if (!wheel_each(&source, read_member, NULL, why, sizeof why))
        require(why[0]);
    close(fd);
    return 0;
}
