/*
 * Runs a fuzz target on each file that is named, in order: replay FILE... Prints the name of each
 * before it runs, and at last how many there were, so that the end of the output names the one that
 * crashed or hung.
 */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Each input takes milliseconds. */
#define SECONDS_MOST 60

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void too_long(int signal) {
    static const char text[] = "this input took more than 60 s\n";
    (void)signal;
    _exit(write(STDOUT_FILENO, text, sizeof text - 1) > 0 ? 1 : 2);
}

/* Allocated to the byte, so that a sanitizer sees a read behind the end. */
static uint8_t *read_whole(const char *path, size_t *size) {
    struct stat status;
    FILE *file = fopen(path, "rb");
    uint8_t *data = NULL;
    if (file && fstat(fileno(file), &status) == 0 && S_ISREG(status.st_mode)) {
        *size = (size_t)status.st_size;
        data = malloc(*size ? *size : 1);
        if (data && fread(data, 1, *size, file) != *size) {
            free(data);
            data = NULL;
        }
    }
    if (file)
        fclose(file);
    return data;
}

int main(int argc, char **argv) {
    signal(SIGALRM, too_long);
    for (int i = 1; i < argc; i++) {
        size_t size = 0;
        uint8_t *data = read_whole(argv[i], &size);
        printf("%s\n", argv[i]);
        fflush(stdout);
        if (!data) {
            printf("cannot be read\n");
            return 1;
        }
        alarm(SECONDS_MOST);
        int result = LLVMFuzzerTestOneInput(data, size);
        alarm(0);
        free(data);
        if (result != 0 && result != -1) { /* what libFuzzer accepts */
            printf("the target returned %d\n", result);
            return 1;
        }
    }
    printf("Executed %d inputs\n", argc - 1);
    return 0;
}
