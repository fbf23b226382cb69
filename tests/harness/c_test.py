"""How the tests of a C file are run: each folder has one program for all of its files."""
from pathlib import Path


def command(build, name, *arguments):
    """The command line of a file's tests, by the name that the runner shows: 'conformance/test_stream'."""
    folder, _, file = name.rpartition("/")
    return [str(Path(build) / "tests" / folder / "run"), file, *arguments]
