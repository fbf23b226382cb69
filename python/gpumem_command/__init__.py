"""The command gpumem of the installed package: a program of its own, in the place of this process."""
import importlib.util
import os
import sys


def main():
    # The package is found and not imported: the command needs nothing of it.
    package = importlib.util.find_spec("gpumem").submodule_search_locations[0]
    command = os.path.join(package, "bin", "gpumem")
    try:
        os.execv(command, [command, *sys.argv[1:]])
    except OSError as error:
        sys.exit(f"gpumem: {command}: {error.strerror}")
