/* The command ptx_record: see usage. */
#include "ptx.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

typedef int record(const struct ptx_options *options, FILE *to);

static const struct kind {
    const char *name;
    record *run;
    const char *file; /* its file in a whole recording; NULL: it has none */
} kinds[] = {
    {"forms", ptx_forms_record, "forms.txt"},
    {"programs", ptx_programs_record, "programs.txt"},
    {"plain", ptx_programs_record_plain, "plain.txt"},
    {"scenes", ptx_scenes_record, "scenes.txt"},
    {"approximate", ptx_approximate_record, "approximate.txt"},
    {"steps", ptx_approximate_steps, "steps.bin"},
    {"count", ptx_approximate_count, NULL},
};
#define KINDS (sizeof kinds / sizeof kinds[0])

static int usage(void) {
    fputs("usage: ptx_record forms [--only TEXT] [-o FILE]      each instruction at its edges\n"
          "       ptx_record scenes [-o FILE]  what kernels do beyond one instruction\n"
          "       ptx_record approximate [--only TEXT] [--every N] [-o FILE]\n"
          "                                 hashes of the approximate functions; one in N blocks\n"
          "       ptx_record count [--only TEXT] [--every N] [-o FILE]\n"
          "                                 inputs of them that differ from softgpu's\n"
          "       ptx_record steps -o FILE  results of some ranges of them, binary\n"
          "       ptx_record programs|plain [--from SEED] [--to SEED] [-o FILE]\n"
          "                                 random programs; plain: compiled without optimising\n"
          "       ptx_record show|answer --from SEED [--drop N,N...]          one, without "
          "statements\n"
          "       ptx_record all FOLDER     every recording, a file for each\n"
          "       ptx_record inputs FORM    the values that a form is tried with, a line each\n"
          "--jobs N: processes (8). GPUMEM_DRIVER chooses the driver.\n",
          stderr);
    return 2;
}

/* Writes the header, which describes the recording. */
static int put_header(FILE *to) {
    char name[128] = "";
    int version = 0;
    ptx_open(NULL);
    cu->cuDriverGetVersion(&version);
    cu->cuDeviceGetName(name, sizeof name, 0);
    fprintf(to, "# device %s api %d\n", name, version);
    fflush(to);
    return 0;
}

/* Records in a process of its own, so that the driver is opened after fork and faults stay
 * there. */
static int apart(const struct kind *kind, const struct ptx_options *options, FILE *to,
                 bool header) {
    int status;
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0)
        exit(header ? put_header(to) : kind->run(options, to));
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        return 2;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 2;
}

static int record_one(const struct kind *kind, const struct ptx_options *options,
                      const char *path) {
    FILE *to = path ? fopen(path, "we") : stdout;
    if (to == NULL) {
        perror(path);
        return 2;
    }
    int status = kind->file && strstr(kind->file, ".txt") ? apart(kind, options, to, true) : 0;
    if (status == 0)
        status = apart(kind, options, to, false);
    if (path != NULL)
        fclose(to);
    return status;
}

static int record_all(const struct ptx_options *options, const char *folder) {
    int worst = 0;
    if (mkdir(folder, 0777) != 0 && access(folder, W_OK) != 0) {
        perror(folder);
        return 2;
    }
    for (size_t i = 0; i < KINDS && kinds[i].file != NULL; i++) {
        char path[4096];
        time_t start = time(NULL);
        snprintf(path, sizeof path, "%s/%s", folder, kinds[i].file);
        int status = record_one(&kinds[i], options, path);
        printf("%s: status %d, %ld s\n", kinds[i].file, status, (long)(time(NULL) - start));
        fflush(stdout);
        worst = status > worst ? status : worst;
    }
    return worst;
}

int main(int argc, char **argv) {
    struct ptx_options options = {.jobs = 8, .every = 1, .to = 3000};
    const char *path = NULL, *folder = NULL;
    if (argc < 2)
        return usage();
    if (strcmp(argv[1], "inputs") == 0 && argc == 3)
        return ptx_forms_inputs(argv[2]);
    for (int i = 2; i < argc; i++) {
        bool more = i + 1 < argc;
        if (strcmp(argv[i], "--jobs") == 0 && more)
            options.jobs = (unsigned)strtoul(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--every") == 0 && more)
            options.every = (unsigned)strtoul(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--from") == 0 && more)
            options.from = strtoull(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--to") == 0 && more)
            options.to = strtoull(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--drop") == 0 && more)
            options.drop = argv[++i];
        else if (strcmp(argv[i], "--only") == 0 && more)
            options.only = argv[++i];
        else if (strcmp(argv[i], "-o") == 0 && more)
            path = argv[++i];
        else if (argv[i][0] != '-' && folder == NULL)
            folder = argv[i];
        else
            return usage();
    }
    if (options.jobs < 1 || options.jobs > 256 || options.every < 1)
        return usage();
    if (strcmp(argv[1], "show") == 0)
        return ptx_program_show(&options);
    if (strcmp(argv[1], "answer") == 0)
        return ptx_program_answer(&options);
    if (strcmp(argv[1], "all") == 0 && folder != NULL)
        return record_all(&options, folder);
    for (size_t i = 0; i < KINDS; i++)
        if (strcmp(argv[1], kinds[i].name) == 0 && folder == NULL)
            return record_one(&kinds[i], &options, path);
    return usage();
}
