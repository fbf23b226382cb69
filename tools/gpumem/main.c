/* gpumem: the command. One cmd_*.c per subcommand, one table. */
#include "cli.h"
#include "descriptor.h"

#include "terminal.h"

#include <stdio.h>
#include <string.h>

const struct cli_command cli_commands[] = {
    {"load", "stream a file into device memory and prove that it arrived", cmd_load_usage, cmd_load,
     false},
    {"replay", "run a log of allocations on other resources", cmd_replay_usage, cmd_replay, false},
    {"share", "memory that grows while processes share it, one of which is killed", cmd_share_usage,
     cmd_share, false},
    {"info", "devices, and what each can do or why not", cmd_info_usage, cmd_info, false},
    {"doctor", "what on this machine helps or hinders", cmd_doctor_usage, cmd_doctor, false},
    {"driver", "every function of the CUDA driver API and its status", cmd_driver_usage, cmd_driver,
     false},
    {"run", "run a program on softgpu", cmd_run_usage, cmd_run, false},
    {"map", "draw what is held as a page of HTML", cmd_map_usage, cmd_map, false},
    {"receive", "import a buffer and check it: the second process of load", "", cmd_receive, true},
    {"attach", "one of the processes that share starts", "", cmd_attach, true},
    {NULL, NULL, NULL, NULL, false},
};

static const struct cli_command *find_command(const char *name) {
    for (const struct cli_command *c = cli_commands; c->name; c++)
        if (strcmp(c->name, name) == 0)
            return c;
    return NULL;
}

static void print_help(FILE *out) {
    cli_lines(out, "usage: gpumem COMMAND [OPTION...]\n\n"
                   "Loads files into GPU memory, says what a machine can do and why not, and runs\n"
                   "programs on softgpu, a CUDA driver in software.\n\n");
    for (const struct cli_command *c = cli_commands; c->name; c++)
        if (!c->hidden)
            cli_line(out, "  %-8s %s", c->name, c->summary);
    cli_lines(
        out,
        "\n"
        "  help COMMAND   its options\n"
        "  --version      of the command\n\n"
        "Every command takes --driver CHOICE (nvidia, softgpu, or a path); else GPUMEM_DRIVER\n"
        "chooses, else libcuda.so.1 is opened by name.\n\n"
        "Exit status: 0 done, 1 failed, 2 wrong usage, 3 no driver or device, 4 the file cannot\n"
        "be read, 5 the file changed while it was read, 6 too little memory, 7 bytes differ,\n"
        "8 the second process failed, 9 run --fail-on: something was left or not reached, 130\n"
        "interrupted.\n");
}

static int help(int argc, char **argv) {
    if (argc < 2) {
        print_help(stdout);
        return CLI_OK;
    }
    const struct cli_command *command = find_command(argv[1]);
    if (!command)
        return cli_error(CLI_USAGE, "no command is called '%s'; try 'gpumem help'", argv[1]);
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
        printf("gpumem %s\n", gpumem_version_string());
        return CLI_OK;
    }
    const struct cli_command *command = find_command(name);
    if (!command)
        return cli_error(CLI_USAGE, "no command is called '%s'; try 'gpumem help'", name);
    if (argc > 2 && (strcmp(argv[2], "--help") == 0 || strcmp(argv[2], "-h") == 0)) {
        cli_lines(stdout, command->usage);
        return CLI_OK;
    }
    return command->run(argc - 1, argv + 1);
}

/* Before the options are read, so that a wrong one is told as an object too. What follows run is
 * another program's command line. */
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
