"""How the tests of the Python package run: unittest's cases, reported in TAP, on the package that the build
folder has. A module ends with `if __name__ == "__main__": suite.main()`; it imports gpumem after suite.

With AddressSanitizer the extension is loaded into a Python that has none, so the process is started again
with the sanitizer's library in front. What the interpreter itself leaves is no leak of ours; what the driver
should have got back is found by softgpu: SOFTGPU_FAIL_ON=leaks, at the end of every module. One whose driver
refuses to take memory back sets GPUMEM_TEST_LOSES before it imports suite.
"""
import faulthandler
import gc
import os
import subprocess
import sys
import unittest
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("GPUMEM_BUILD_DIR", SOURCE / "build"))
PACKAGE = BUILD / "python"
sys.path.insert(0, str(SOURCE / "tests/harness"))


def _skip_all(reason):
    print(f"skip: {reason}")
    print(f"1..0 # SKIP {reason}")
    sys.exit(0)


def environment(**more):
    """Of a child process that imports gpumem, on softgpu and with leaks found."""
    wanted = {"PYTHONPATH": str(PACKAGE), "GPUMEM_DRIVER": "softgpu",
              "SOFTGPU_FAIL_ON": "" if os.environ.get("GPUMEM_TEST_LOSES") else "leaks",
              "PYTHONDONTWRITEBYTECODE": "1"}
    if os.environ.get("GPUMEM_SANITIZE", "off") == "address":
        wanted["ASAN_OPTIONS"] = os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"
        wanted["LD_PRELOAD"] = subprocess.run(["gcc", "-print-file-name=libasan.so"], capture_output=True,
                                              text=True, check=True).stdout.strip()
        wanted["PYTHONMALLOC"] = "malloc"
    return {**os.environ, **wanted, **more}


def child(program, *arguments, flags=(), **more):
    """The finished run of a Python program, with its output as text. `more`: environment, or input."""
    given = {"input": more.pop("input")} if "input" in more else {}
    return subprocess.run([sys.executable, *flags, "-c", program, *arguments], env=environment(**more),
                          capture_output=True, text=True, timeout=120, check=False, **given)


def _begin():
    if sys.version_info < (3, 11):
        _skip_all(f"Python {sys.version.split()[0]} is older than 3.11")
    if not list((PACKAGE / "gpumem").glob("_core.*so")):
        _skip_all("the build has no gpumem for Python: no headers of Python (python3-dev)")
    wanted = environment()
    if any(os.environ.get(name) != wanted[name] for name in ("SOFTGPU_FAIL_ON", "PYTHONPATH")):
        os.execve(sys.executable, [sys.executable, "-X", "dev", "-W", "error", *sys.argv], wanted)
    faulthandler.enable()


_begin()


class Result(unittest.TestResult):
    """TAP, a line for each test, named by its method's words."""

    def _line(self, good, test, more=""):
        title = getattr(test, "_testMethodName", str(test)).removeprefix("test_").replace("_", " ")
        print(f"{'' if good else 'not '}ok {self.testsRun} - {title}{more}", flush=True)

    def addSuccess(self, test):
        self._line(True, test)

    def addSkip(self, test, reason):
        self._line(True, test, f" # SKIP {reason}")

    def addError(self, test, err):
        super().addError(test, err)
        self._tell(test, self.errors[-1][1])

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self._tell(test, self.failures[-1][1])

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            kept = self.failures if issubclass(err[0], test.failureException) else self.errors
            print(f"# {subtest}")
            self._tell(test, kept[-1][1])

    def _tell(self, test, text):
        for line in text.splitlines():
            print(f"# {line}")
        self._line(False, test)


def main():
    module = sys.modules["__main__"]
    loader = unittest.TestLoader()
    loader.testNamePatterns = [f"*{word}*" for word in sys.argv[1:]] or None
    tests = loader.loadTestsFromModule(module)
    print(f"1..{tests.countTestCases()}", flush=True)
    result = Result()
    tests.run(result)
    del tests
    gc.collect()
    sys.exit(0 if result.wasSuccessful() else 1)
