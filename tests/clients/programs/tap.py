"""Runs the functions test_* of a program in order and says in TAP how each went."""
import sys
import traceback


class Skip(Exception):
    """Raised by a test that cannot run here; the text says why."""


def expect(condition, message="expectation failed"):
    if not condition:
        raise AssertionError(message)


def expect_equal(got, wanted):
    if got != wanted:
        raise AssertionError(f"got {got!r}, wanted {wanted!r}")


def raises(kind, function, *arguments, **more):
    """The exception of that kind, which the call must end with."""
    try:
        function(*arguments, **more)
    except kind as error:
        return error
    raise AssertionError(f"no {kind.__name__} from {function}")


def main(names):
    """`names` are the program's globals. Arguments choose tests by name."""
    chosen = sys.argv[1:]
    tests = [(name, value) for name, value in names.items()
             if name.startswith("test_") and callable(value) and (not chosen or name in chosen)]
    print(f"1..{len(tests)}", flush=True)
    failed = 0
    for number, (name, test) in enumerate(tests, 1):
        try:
            test()
            print(f"ok {number} - {name}", flush=True)
        except Skip as why:
            print(f"ok {number} - {name} # SKIP {why}", flush=True)
        except Exception:  # pylint: disable=broad-except  # a client's failure is what is looked for
            failed += 1
            print("".join(f"# {line}\n" for line in traceback.format_exc().splitlines()), end="")
            print(f"not ok {number} - {name}", flush=True)
    sys.exit(1 if failed else 0)
