"""Modules of a package's own unittest tests, each a test of ours.

own_tests.py MODULE [-TEST]...  for each module, TESTs are left out; MODULE begins with no "-"
"""
import importlib
import io
import sys
import unittest

from tap import main


def cases_of(suite):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from cases_of(test)
        else:
            yield test


def run_module(name, left_out):
    importlib.import_module(name)  # an ImportError is better told than by unittest's stand-in for a test
    cases = list(cases_of(unittest.defaultTestLoader.loadTestsFromName(name)))
    unknown = [test for test in left_out if not any(case.id().endswith(f".{test}") for case in cases)]
    if unknown:
        raise AssertionError(f"{name} has no {', '.join(unknown)}")
    kept = unittest.TestSuite(case for case in cases
                              if not any(case.id().endswith(f".{test}") for test in left_out))
    text = io.StringIO()
    result = unittest.TextTestRunner(stream=text, buffer=True).run(kept)
    print(f"# {name}: {result.testsRun} run, {len(result.skipped)} skipped, {len(left_out)} left out")
    if result.testsRun == 0 and cases:
        raise AssertionError(f"{name}: nothing of {len(cases)} tests was run")
    if not result.wasSuccessful():
        raise AssertionError(text.getvalue())


def tests_of(words):
    """A function for each module, under the name that TAP shows."""
    tests, module = {}, None
    for word in words:
        if word.startswith("-"):
            module[1].append(word[1:])
        else:
            module = (word, [])
            short = word.rpartition(".tests.")[2]
            tests[f"test_{short}"] = lambda of=module: run_module(*of)
    return tests


if __name__ == "__main__":
    wanted = tests_of(sys.argv[1:])
    del sys.argv[1:]  # the rest is for no one else
    main(wanted)
