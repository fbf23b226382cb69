/* gpumem: the command. One cmd_*.c per subcommand, one table. */
#include "cli.h"
#include "descriptor.h"

#include "terminal.h"

#include <stdio.h>
#include <string.h>

const struct cli_command cli_commands[] = {
    {"load", "stream a file into device memory and verify it there", cmd_load_usage, cmd_load,
     false},
    {"replay", "repeat a log of allocations on other resources", cmd_replay_usage, cmd_replay,
     false},
    {"share", "demonstrate memory that grows while processes share it", cmd_share_usage, cmd_share,
     false},
    {"info", "devices, their capabilities, and why some are missing", cmd_info_usage, cmd_info,
     false},
    {"doctor", "check this machine and say what to change", cmd_doctor_usage, cmd_doctor, false},
    {"driver", "every function of the CUDA driver API and its status", cmd_driver_usage, cmd_driver,
     false},
    {"run", "run a program on softgpu", cmd_run_usage, cmd_run, false},
    {"map", "draw held memory as an HTML page", cmd_map_usage, cmd_map, false},
    {"receive", "import a buffer and check it: the second process of load", "", cmd_receive, true},
    {"attach", "a process started by share", "", cmd_attach, true},
    {NULL, NULL, NULL, NULL, false},
};

static const struct cli_command *find_command(const char *name) {
    for (const struct cli_command *c = cli_commands; c->name; c++)
        if (strcmp(c->name, name) == 0)
            return c;
    return NULL;
}

static void print_help(FILE *out) {
    cli_lines(out,
              "usage: gpumem COMMAND [OPTION...]\n\n"
              "Loads files into GPU memory, reports what a machine can and cannot do, and runs\n"
              "programs on softgpu, a software CUDA driver.\n\n");
    for (const struct cli_command *c = cli_commands; c->name; c++)
        if (!c->hidden)
            cli_line(out, "  %-8s %s", c->name, c->summary);
    cli_lines(out,
              "\n"
              "  help COMMAND   describes a command and its options\n"
              "  --version      prints the version\n\n"
              "Every command takes --driver CHOICE (nvidia, softgpu, or a path). Without it\n"
              "GPUMEM_DRIVER chooses, else libcuda.so.1 is opened by name.\n\n"
              "Exit status: 0 done, 1 failed, 2 wrong usage, 3 no driver or device, 4 the file\n"
              "cannot be read, 5 the file changed while it was read, 6 too little memory, 7\n"
              "bytes differ, 8 the second process failed, 9 run --fail-on: something was not\n"
              "freed or not reached, 130 interrupted.\n");
}

static int help(int argc, char **argv) {
    if (argc < 2) {
        print_help(stdout);
        return CLI_OK;
    }
    const struct cli_command *command = find_command(argv[1]);
    if (!command)
        return cli_error(CLI_USAGE, "there is no command '%s'; try 'gpumem help'", argv[1]);
    cli_lines(stdout, command->usage);
    return CLI_OK;
}

static int run_command(int argc, char **argv) {
    if (argc < 2) {
        print_help(stderr);
        return CLI_USAGE;
    }
    const char *name = argv[1];
    if (strcmp(name, "help") == 0 || strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
        return help(argc - 1, argv + 1);
    if (strcmp(name, "--version") == 0 || strcmp(name, "version") == 0) {
        printf("gpumem %s\n", GPUMEM_VERSION_STRING);
        return CLI_OK;
    }
    const struct cli_command *command = find_command(name);
    if (!command)
        return cli_error(CLI_USAGE, "there is no command '%s'; try 'gpumem help'", name);
    int status = command->run(argc - 1, argv + 1);
    if (!cli_help_wanted())
        return status;
    cli_lines(stdout, command->usage);
    return CLI_OK;
}

/* Decided before the options are read, so that a wrong option is reported as JSON too. After `run`
 * comes another program's command line. */
static bool asks_for_json(int argc, char **argv) {
    if (argc < 2 || strcmp(argv[1], "run") == 0)
        return false;
    for (int i = 2; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strcmp(argv[i], "--json") == 0)
            return true;
    return false;
}

int main(int argc, char **argv) {
    cli_hold_standard();
    if (asks_for_json(argc, argv))
        cli_json_wanted();
    int status = run_command(argc, argv);
    if (status != CLI_OK)
        cli_print_failure(status);
    if (fflush(stdout) != 0 || ferror(stdout))
        return cli_error(CLI_FAILED, "cannot write to standard output");
    return status;
}
