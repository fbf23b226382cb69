/*
 * parity list
 * parity run [--shuffle SEED] [--scenario PREFIX,…] [--jobs N] [--deadline SECONDS] [-o FILE]
 * parity one NAME …      a scenario, in this process (what run starts)
 * parity helper NAME FD  the other process of a scenario
 */
#include "parity.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const par_scenario *const chapters[] = {
    par_init_scenarios,
    par_device_scenarios,
    par_context_scenarios,
    par_memory_scenarios,
    par_host_scenarios,
    par_copy_scenarios,
    par_set_scenarios,
    par_copy_peer_scenarios,
    par_old_scenarios,
    par_vmm_scenarios,
    par_vmm_access_scenarios,
    par_vmm_share_scenarios,
    par_pool_scenarios,
    par_pool_alloc_scenarios,
    par_pool_share_scenarios,
    par_pointer_scenarios,
    par_stream_scenarios,
    par_event_scenarios,
    par_memop_scenarios,
    par_ipc_scenarios,
    par_order_scenarios,
    par_fault_scenarios,
    par_layout_scenarios,
    par_pool_growth_scenarios,
    par_precedence_scenarios,
    par_twin_scenarios,
    par_share_more_scenarios,
    par_state_scenarios,
    par_array_scenarios,
    par_mipmap_scenarios,
    par_sparse_scenarios,
    par_copy_array_scenarios,
    par_copy_array_node_scenarios,
    par_module_scenarios,
    par_module_function_scenarios,
    par_module_option_scenarios,
    par_module_more_scenarios,
    par_library_scenarios,
    par_link_scenarios,
    par_occupancy_scenarios,
    par_launch_scenarios,
    par_graph_build_scenarios,
    par_graph_params_scenarios,
    par_graph_object_scenarios,
    par_graph_more_scenarios,
    par_null_scenarios,
    par_pool_default_scenarios,
    par_pool_import_scenarios,
    par_capture_scenarios,
    par_capture_fork_scenarios,
    par_capture_unsafe_scenarios,
    par_capture_beside_scenarios,
    par_tensor_map_scenarios,
    par_texture_scenarios,
    par_texture_reference_scenarios,
    par_green_scenarios,
    par_report_scenarios,
    par_image_data_scenarios,
    par_external_scenarios,
    par_multicast_scenarios,
    par_fabric_scenarios,
    par_peer_scenarios,
    par_graph_exec_scenarios,
    par_graph_launch_scenarios,
    par_graph_memory_scenarios,
    par_graph_update_scenarios,
    par_managed_scenarios,
    par_range_scenarios,
    par_prefetch_scenarios,
    par_attach_scenarios,
    par_image_header_scenarios,
    par_first_scenarios,
    par_near_pool_scenarios,
    par_near_access_scenarios,
    par_near_host_function_scenarios,
    par_near_texture_scenarios,
    par_near_virtual_scenarios,
    par_graphics_scenarios,
    par_link_more_scenarios,
    par_graph_again_scenarios,
    par_link_again_scenarios,
    par_library_again_scenarios,
    par_checkpoint_scenarios,
};

size_t par_chapter_count(void) {
    return sizeof(chapters) / sizeof(chapters[0]);
}

const par_scenario *par_scenario_at(size_t chapter, size_t index) {
    return chapters[chapter][index].name != NULL ? &chapters[chapter][index] : NULL;
}

const par_scenario *par_scenario_find(const char *name) {
    for (size_t c = 0; c < par_chapter_count(); c++) {
        for (size_t i = 0; par_scenario_at(c, i) != NULL; i++) {
            if (strcmp(chapters[c][i].name, name) == 0) {
                return &chapters[c][i];
            }
        }
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
    const char *path = gpumem_driver_path(par.driver);
    const char *file = path != NULL ? strrchr(path, '/') : NULL;
    printf("# driver %s api %d file %s init %d\n",
           gpumem_driver_get_kind(par.driver) == GPUMEM_DRIVER_SOFTGPU ? "softgpu" : "nvidia",
           version, file != NULL ? file + 1 : path, (int)init);
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
    for (int i = 7; i < argc && par.skips < PAR_SKIPS_MAX; i++) {
        par.skip[par.skips++] = atoi(argv[i]);
    }
    open_driver();
    par_record_start(scenario->name);
    scenario->run();
    fflush(NULL);
    _exit(0);
}

static int run_helper(const char *name, const char *fd) {
    const par_helper *const tables[] = {par_share_helpers,      par_pool_helpers, par_ipc_helpers,
                                        par_share_more_helpers, par_peer_helpers, par_first_helpers,
                                        par_checkpoint_helpers};
    for (size_t t = 0; t < sizeof(tables) / sizeof(tables[0]); t++) {
        for (size_t i = 0; tables[t][i].name != NULL; i++) {
            if (strcmp(tables[t][i].name, name) == 0) {
                par.peer_fd = atoi(fd);
                open_driver();
                par_record_start(name);
                tables[t][i].run();
                _exit(0);
            }
        }
    }
    fprintf(stderr, "parity: no helper '%s'\n", name);
    return 2;
}

static int list(void) {
    for (size_t c = 0; c < par_chapter_count(); c++) {
        for (size_t i = 0; par_scenario_at(c, i) != NULL; i++) {
            printf("%s\n", chapters[c][i].name);
        }
    }
    return 0;
}

static int usage(void) {
    fputs("usage: parity list\n"
          "       parity run [--shuffle SEED] [--scenario PREFIX,…] [--jobs N] [--deadline SECONDS]"
          " [-o FILE]\n",
          stderr);
    return 2;
}

static int parse_run(int argc, char **argv) {
    par_run_options options = {.self = "/proc/self/exe", .jobs = 8};
    for (int i = 2; i < argc; i += 2) {
        if (i + 1 >= argc) {
            return usage();
        }
        const char *value = argv[i + 1];
        if (strcmp(argv[i], "--shuffle") == 0) {
            options.seed = (unsigned)strtoul(value, NULL, 10);
        } else if (strcmp(argv[i], "--scenario") == 0 || strcmp(argv[i], "--chapter") == 0) {
            options.scenario = value;
        } else if (strcmp(argv[i], "--jobs") == 0 || strcmp(argv[i], "-j") == 0) {
            options.jobs = atoi(value);
        } else if (strcmp(argv[i], "--deadline") == 0) {
            options.deadline_s = atoi(value);
        } else if (strcmp(argv[i], "-o") == 0) {
            options.output = value;
        } else {
            return usage();
        }
    }
    return options.jobs > 0 ? par_run(&options) : usage();
}

int main(int argc, char **argv) {
    if (argc == 2 && strcmp(argv[1], "list") == 0) {
        return list();
    }
    if (argc == 2 && strcmp(argv[1], "header") == 0) {
        return print_header();
    }
    if (argc >= 3 && strcmp(argv[1], "one") == 0) {
        return run_one(argc, argv);
    }
    if (argc == 4 && strcmp(argv[1], "helper") == 0) {
        return run_helper(argv[2], argv[3]);
    }
    return argc >= 2 && strcmp(argv[1], "run") == 0 ? parse_run(argc, argv) : usage();
}
