"""Runs Python programs one after another, each in a process forked from this one, which has no driver: they begin
without the time that an interpreter takes to start.

Each line of standard input is a program in JSON: arguments, of which the first is its file; environment; and files
for its standard output and standard error. Each is answered with its status, as subprocess has it.
"""
import ctypes  # noqa: F401  so that the programs have it
import json
import os
import sys


def become(request):
    """In the child: the program's environment and files. Its text."""
    os.environ.update(request["environment"])
    for number, name, flags in ((0, os.devnull, os.O_RDONLY), (1, request["output"], os.O_WRONLY),
                                (2, request["error"], os.O_WRONLY)):
        opened = os.open(name, flags)
        os.dup2(opened, number)
        os.close(opened)
    sys.argv = request["arguments"]
    with open(sys.argv[0], encoding="utf-8") as file:
        return compile(file.read(), sys.argv[0], "exec")


def programs():
    """The text of a program, in its process."""
    for line in iter(sys.stdin.readline, ""):
        request = json.loads(line)
        child = os.fork()
        if child == 0:
            return become(request)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        print(status, flush=True)
    return "None"


exec(programs(), {"__name__": "__main__", "__file__": sys.argv[0]})  # pylint: disable=exec-used
