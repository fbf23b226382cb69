"""How scripts report tests, in TAP."""
import tempfile
import traceback
from pathlib import Path

SHOWN = 60  # lines of a failure


class Skip(Exception):
    """Raised by a test that cannot run here; its text says why."""


class Report:
    """Results as they come; end() says how many there were."""

    def __init__(self):
        self.count = self.failed = 0

    def result(self, title, problems):
        """A failure when there are problems: lines, or one text of them."""
        self.count += 1
        self.failed += bool(problems)
        print(f"{'not ' if problems else ''}ok {self.count} - {title}", flush=True)
        texts = [problems] if isinstance(problems, str) else problems or []
        lines = [line for text in texts for line in str(text).splitlines()]
        left_out = [f"and {len(lines) - SHOWN} more"] if len(lines) > SHOWN else []
        for line in lines[:SHOWN] + left_out:
            print(f"# {line}", flush=True)

    def expect(self, good, title, output=""):
        self.result(title, "" if good else output or "it is not so")

    def skip(self, title, reason):
        self.count += 1
        print(f"ok {self.count} - {title} # SKIP {reason}", flush=True)

    def run(self, title, test, *arguments):
        """A function, which returns problems or raises."""
        try:
            self.result(title, test(*arguments))
        except Skip as reason:
            self.skip(title, reason)
        except Exception as error:  # pylint: disable=broad-except
            self.result(title, str(error) if isinstance(error, AssertionError) and str(error)
                        else traceback.format_exc())

    def end(self):
        """The exit status."""
        print(f"1..{self.count}")
        return 1 if self.failed else 0


def run_all(tests, *arguments):
    """Pairs of a title and what Report.run takes, or problems that are known already; the exit status."""
    report = Report()
    for title, test in tests:
        report.run(title, test if callable(test) else lambda *_, known=test: known, *arguments)
    return report.end()


def in_folder(test):
    """A test of a temporary folder."""
    def run():
        with tempfile.TemporaryDirectory() as folder:
            return test(Path(folder))
    return run


def run_in_folders(tests, before=""):
    """Tests of a folder under their own names; the exit status."""
    return run_all((before + test.__name__.replace("_", " "), in_folder(test)) for test in tests)
