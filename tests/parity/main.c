/*
 * parity list
 * parity run [--shuffle SEED] [--scenario PREFIX,…] [--list FILE] [--jobs N] [--deadline SECONDS]
 *            [--together] [-o FILE]
 * parity one NAME …      a scenario, in this process (what run starts)
 * parity helper NAME FD  the other process of a scenario
 */
#include "parity.h"

#include "driver_info.h"

/* Made by the linker, around what SCENARIO and HELPER put into sections of these names. */
extern const par_scenario __start_par_scenarios[], __stop_par_scenarios[];
extern const par_helper __start_par_helpers[], __stop_par_helpers[];

size_t par_scenario_count(void) {
    return (size_t)(__stop_par_scenarios - __start_par_scenarios);
}

const par_scenario *par_scenario_at(size_t index) {
    return &__start_par_scenarios[index];
}

const par_scenario *par_scenario_find(const char *name) {
    for (size_t i = 0; i < par_scenario_count(); i++) {
        if (strcmp(par_scenario_at(i)->name, name) == 0)
            return par_scenario_at(i);
    }
    return NULL;
}

static void open_driver(void) {
    if (gpumem_driver_open(NULL, &par.driver) != GPUMEM_OK) {
        fprintf(stderr, "parity: %s\n", gpumem_last_error()->message);
        exit(2);
    }
    par.api = gpumem_driver_table(par.driver);
}

/* The state of the machine that explains a recording. In a process of its own: it needs cuInit. */
static int print_header(void) {
    int version = 0, ecc = -1, count = 0;
    char name[128] = "";
    open_driver();
    par.api->cuDriverGetVersion(&version);
    CUresult init = par.api->cuInit(0);
    par.api->cuDeviceGetCount(&count);
    par.api->cuDeviceGetName(name, sizeof(name), 0);
    par.api->cuDeviceGetAttribute(&ecc, CU_DEVICE_ATTRIBUTE_ECC_ENABLED, 0);
    const char *path = driver_info(par.driver).path;
    const char *file = path != NULL ? strrchr(path, '/') : NULL;
    printf("# driver %s api %d file %s init %d\n",
           driver_info(par.driver).kind == GPUMEM_DRIVER_SOFTGPU ? "softgpu" : "nvidia", version,
           file != NULL ? file + 1 : path, (int)init);
    printf("# device %s count %d ecc %d imex %s\n", name, count, ecc,
           access("/dev/nvidia-caps-imex-channels/channel0", F_OK) == 0 ? "yes" : "no");
    return 0;
}

static int run_one(int argc, char **argv) {
    const par_scenario *scenario = par_scenario_find(argv[2]);
    if (scenario == NULL) {
        fprintf(stderr, "parity: no scenario '%s'\n", argv[2]);
        return 2;
    }
    if (argc > 6) {
        par.shard = atoi(argv[3]);
        par.shards = atoi(argv[4]);
        par.from = atoi(argv[5]);
        par.seed = (unsigned)strtoul(argv[6], NULL, 10);
    }
    for (int i = 7; i < argc && par.skips < PAR_SKIPS_MAX; i++)
        par.skip[par.skips++] = atoi(argv[i]);
    open_driver();
    par_record_start(scenario->name);
    if (scenario->begin != NULL)
        scenario->begin();
    scenario->run();
    fflush(NULL);
    _exit(0);
}

static int run_helper(const char *name, const char *fd) {
    for (const par_helper *helper = __start_par_helpers; helper < __stop_par_helpers; helper++) {
        if (strcmp(helper->name, name) == 0) {
            par.peer_fd = atoi(fd);
            open_driver();
            par_record_start(name);
            helper->run();
            _exit(0);
        }
    }
    fprintf(stderr, "parity: no helper '%s'\n", name);
    return 2;
}

static int list(void) {
    for (size_t i = 0; i < par_scenario_count(); i++)
        printf("%s\n", par_scenario_at(i)->name);
    return 0;
}

static int usage(void) {
    fputs("usage: parity list\n"
          "       parity run [--shuffle SEED] [--scenario PREFIX,…] [--list FILE] [--jobs N]"
          " [--deadline SECONDS] [--together] [-o FILE]\n",
          stderr);
    return 2;
}

static int parse_run(int argc, char **argv) {
    par_run_options options = {.self = "/proc/self/exe", .jobs = 8};
    for (int i = 2; i < argc; i += 2) {
        if (strcmp(argv[i], "--together") == 0) {
            options.together = true;
            i--; /* it has no value */
            continue;
        }
        if (i + 1 >= argc)
            return usage();
        const char *value = argv[i + 1];
        if (strcmp(argv[i], "--shuffle") == 0)
            options.seed = (unsigned)strtoul(value, NULL, 10);
        else if (strcmp(argv[i], "--scenario") == 0 || strcmp(argv[i], "--chapter") == 0)
            options.scenario = value;
        else if (strcmp(argv[i], "--list") == 0)
            options.list = value;
        else if (strcmp(argv[i], "--jobs") == 0 || strcmp(argv[i], "-j") == 0)
            options.jobs = atoi(value);
        else if (strcmp(argv[i], "--deadline") == 0)
            options.deadline_s = atoi(value);
        else if (strcmp(argv[i], "-o") == 0)
            options.output = value;
        else
            return usage();
    }
    return options.jobs > 0 ? par_run(&options) : usage();
}

int main(int argc, char **argv) {
    if (argc == 2 && strcmp(argv[1], "list") == 0)
        return list();
    if (argc == 2 && strcmp(argv[1], "header") == 0)
        return print_header();
    if (argc >= 3 && strcmp(argv[1], "one") == 0)
        return run_one(argc, argv);
    if (argc == 4 && strcmp(argv[1], "helper") == 0)
        return run_helper(argv[2], argv[3]);
    return argc >= 2 && strcmp(argv[1], "run") == 0 ? parse_run(argc, argv) : usage();
}
