#!/usr/bin/env python3
"""What ./dev mutate makes of a small program that is written here: which faults its tests find, which they do
not, which are none; that a run that was ended goes on; that a list is tried again. Needs gcc alone."""
import collections
import contextlib
import io
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import changes  # noqa: E402
import faults  # noqa: E402
import hunt  # noqa: E402

SOURCE = """\
#include <stdio.h>
#include <string.h>
/* Says whether a + b is more. */
int sum(int a, int b) {
    return a + b;
}
int unlooked(int a) {
    return a - 2;
}
int never(int a) {
    return a * 3;
}
unsigned same(unsigned a) {
    return a > 7 ? a : 8;
}
int main(int argc, char **argv) {
    if (argc == 2 && strcmp(argv[1], "sum") == 0)
        return sum(2, 3) != 5;
    return unlooked(5) == 100;
}
"""
Test = collections.namedtuple("Test", "name argument")
SUM, OTHER = Test("the sum", "sum"), Test("another", "other")
# Which test runs which line, as coverage would say.
REACH = {5: [OTHER, SUM], 8: [OTHER], 11: [], 14: [SUM]}


class Small:
    """A project of one file, src/a.c."""

    def __init__(self, folder, lines=tuple(REACH)):
        self.folder, self.numbers, self.broken = folder, lines, set()
        self.text, self.ran = SOURCE, []
        self.mend("src/a.c")

    def sources(self):
        return ["src/a.c"]

    def lines(self, _source):
        return self.numbers

    def read(self, _source):
        return self.text

    def split(self, _source):
        return self.text.split("\n"), changes.code_of(self.text).split("\n")

    def plant(self, _source, text):
        (self.folder / "a.c").write_text(text)

    def mend(self, source):
        self.plant(source, self.text)

    def compiled(self, _source):
        done = subprocess.run(["gcc", "-O1", "-c", "-o", "a.o", "a.c"], cwd=self.folder, check=False,
                              stderr=subprocess.DEVNULL)
        return (self.folder / "a.o").read_bytes() if done.returncode == 0 else None

    def rounds(self, _source, line):
        return [REACH[line]] if REACH[line] else []

    def tests_named(self, names):
        return [test for test in (SUM, OTHER) if test.name in names]

    def build(self, _tests):
        return subprocess.run(["gcc", "-O1", "-o", "a", "a.c"], cwd=self.folder, check=False).returncode == 0

    def fails(self, test, seconds):
        if seconds <= 0:
            return None
        self.ran.append(test.name)
        status = subprocess.run([self.folder / "a", test.argument], check=False).returncode
        return "exit status" if status or test in self.broken else ""


def fault(line, becomes, change="a change"):
    return faults.fault_at("src/a.c", SOURCE, line, change, becomes)


class Case:
    """A hunt in a folder of its own."""

    def __init__(self, lines=tuple(REACH)):
        self.folder = Path(tempfile.mkdtemp())
        self.project, self.list = Small(self.folder, lines), self.folder / "list.jsonl"

    def hunt(self):
        return hunt.Hunt(self.project, faults.Record(self.list), jobs=1)

    def results(self, *planted):
        looking = self.hunt()
        looking.again(planted, later())
        return [looking.record.rows[one]["result"] for one in planted]

    def close(self):
        shutil.rmtree(self.folder)


def later():
    return time.monotonic() + 60


def a_fault_that_a_test_sees_is_found(case):
    one = fault(5, "    return a - b;")
    return case.results(one) == [faults.FOUND] and case.hunt().record.rows[one]["by"] == SUM.name


def a_fault_that_no_test_sees_survives_and_is_listed(case):
    one = fault(8, "    return a + 2;", "sum for difference")
    text = faults.score(faults.Record(case.list).rows) if case.results(one) == [faults.SURVIVED] else ""
    return "survived: src/a.c:8: sum for difference" in text and "+ return a + 2;" in text


def a_line_that_no_test_runs_is_unreached(case):
    return case.results(fault(11, "    return a / 3;")) == [faults.UNREACHED]


def a_change_without_effect_or_that_does_not_compile_is_none(case):
    return case.results(fault(14, "    return a >= 8 ? a : 8;"), fault(14, "    return a > ;")) == [faults.DROPPED] * 2


def another_is_drawn_for_one_without_effect(case):
    # Of line 14, `>=` is the same code, and `7` to `8` as well: one of them is drawn first for some seed.
    for seed in range(20):
        case.list.unlink(missing_ok=True)
        looking = case.hunt()
        looking.run(1, seed, later())
        results = [row["result"] for row in looking.record.rows.values()]
        if faults.DROPPED in results:
            return results == [faults.DROPPED, faults.SURVIVED]
    return False


def the_source_is_whole_again_after_each_fault(case):
    case.results(fault(5, "    return a - b;"), fault(8, "    return a + ;"))
    return (case.folder / "a.c").read_text() == SOURCE


def a_run_that_was_ended_goes_on(case):
    whole = Case()
    try:
        whole.hunt().run(3, 7, later())
        lines = whole.list.read_text().splitlines()
        case.list.write_text(f"{lines[0]}\n")
        looking = case.hunt()
        complete = looking.run(3, 7, later())
        seen = [{**row, "seconds": 0} for row in looking.record.rows.values()]
        return complete and seen == [{**row, "seconds": 0} for row in whole.hunt().record.rows.values()]
    finally:
        whole.close()


def no_fault_begins_after_the_time(case):
    looking = case.hunt()
    return looking.run(3, 7, time.monotonic()) is False and not looking.record.rows


def one_whose_tests_had_no_time_is_cut_and_tried_again_with_more(case):
    looking = hunt.Hunt(case.project, faults.Record(case.list), jobs=1, seconds=0)
    one = fault(5, "    return a - b;")
    looking.again([one], later())
    cut = looking.record.rows[one]["result"] == faults.CUT and not case.project.ran
    return cut and case.results(one) == [faults.FOUND]


def the_same_seed_chooses_the_same(case):
    first = list(faults.draws_of_folder(case.project, "src", ["src/a.c"], 3))
    other = list(faults.draws_of_folder(case.project, "src", ["src/a.c"], 4))
    return first == list(faults.draws_of_folder(case.project, "src", ["src/a.c"], 3)) and first != other


def a_fault_is_known_after_its_line_has_moved(case):
    one = fault(5, "    return a - b;")
    case.project.text = SOURCE.replace("int sum", "\n\nint sum")
    return one.number(case.project.text) == 7 and "\n\nint sum(int a, int b) {\n    return a - b;" in one.planted(
        case.project.text)


def one_whose_line_is_gone_is_said_to_be(case):
    one = fault(5, "    return a - b;")
    case.project.text = SOURCE.replace("a + b;", "b + a;")
    return case.results(one) == [faults.GONE]


def what_a_test_found_that_always_fails_does_not_count(case):
    case.project.broken = {OTHER}
    one, looking = fault(8, "    return a + 2;"), case.hunt()
    looking.again([one], later())
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        trusted = looking.check_finders()
    return not trusted and "does not count" in said.getvalue() and one not in faults.Record(case.list).rows


def each_folder_gets_one_and_the_rest_by_size(_case):
    given = faults.shares({"big": 900, "middle": 90, "small": 10}, 13)
    few = faults.shares({"big": 900, "middle": 90, "small": 10}, 2)
    return given == {"big": 10, "middle": 2, "small": 1} and few == {"big": 1, "middle": 1}


def nothing_is_changed_that_is_no_code(_case):
    lines = ['    puts("1 + 2"); /* 3 < 4 */', "    assert(a == 1);", "#define N 3", "    char text[8];"]
    code = changes.code_of("\n".join(lines)).split("\n")
    found = [changes.changes_of(lines, code, number) for number in range(1, 5)]
    return found == [[("a statement left out", "    ;")], [], [], []]


def a_declaration_is_not_left_out(_case):
    lines = ["{", "    int a = 0;", "    a = b;", "    f(a,", "      b);"]
    left = [number for number in range(1, 6)
            for name, _ in changes.changes_of(lines, lines, number) if name == "a statement left out"]
    return left == [3]


CASES = [a_fault_that_a_test_sees_is_found, a_fault_that_no_test_sees_survives_and_is_listed,
         a_line_that_no_test_runs_is_unreached, a_change_without_effect_or_that_does_not_compile_is_none,
         another_is_drawn_for_one_without_effect, the_source_is_whole_again_after_each_fault,
         a_run_that_was_ended_goes_on, no_fault_begins_after_the_time,
         one_whose_tests_had_no_time_is_cut_and_tried_again_with_more, the_same_seed_chooses_the_same,
         a_fault_is_known_after_its_line_has_moved, one_whose_line_is_gone_is_said_to_be,
         what_a_test_found_that_always_fails_does_not_count, each_folder_gets_one_and_the_rest_by_size,
         nothing_is_changed_that_is_no_code, a_declaration_is_not_left_out]


def main():
    print(f"1..{len(CASES)}")
    good = True
    for number, case in enumerate(CASES, 1):
        place = Case((8, 14)) if case is another_is_drawn_for_one_without_effect else Case()
        said = io.StringIO()
        try:
            with contextlib.redirect_stdout(said):
                passed = case(place)
        finally:
            place.close()
        good = good and passed
        print(f"{'ok' if passed else 'not ok'} {number} - {case.__name__.replace('_', ' ')}")
        if not passed:
            print("".join(f"# {line}\n" for line in said.getvalue().splitlines()), end="")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
