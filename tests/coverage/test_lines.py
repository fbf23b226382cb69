#!/usr/bin/env python3
"""Counters of gcc are read, added up and written so that gcov understands them; what ran nothing is left out; the
table has the right sums; what is known of changed sources is refused."""
import json
import lzma
import re
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import counters  # noqa: E402
import lines  # noqa: E402
import reach  # noqa: E402
import suites  # noqa: E402

PROGRAM = """\
int main(int count, char **words) {
    int sum = 0;
    for (int i = 1; i < count; i++)
        sum += words[i][0] == 'a' ? 1 : 2;
    if (count > 9)
        return 1;
    return sum < 0;
}
int other(void) {
    return 3;
}
"""


def counters_of(folder, *words):
    """What one run of the program counts."""
    kept = folder / "p.gcda"
    kept.unlink(missing_ok=True)
    subprocess.run([folder / "p", *words], check=True)
    return kept.read_bytes()


def build(folder):
    (folder / "p.c").write_text(PROGRAM)
    subprocess.run(["gcc", "--coverage", "-c", "-o", "p.o", "p.c"], cwd=folder, check=True)
    (folder / "q.c").write_text("int q(void) { return 1; }\n")
    subprocess.run(["gcc", "--coverage", "-c", "-o", "q.o", "q.c"], cwd=folder, check=True)
    subprocess.run(["gcc", "--coverage", "-o", "p", "p.o", "q.o"], cwd=folder, check=True)


def counts_of_sum(folder, *files):
    """The count of each line, as gcov has it, of the sum of some files."""
    total = counters.Sum()
    for data in files:
        total.add(data)
    (folder / "p.gcda").write_bytes(total.to_bytes())
    (said,) = lines.gcov([folder / "p.gcda"])
    return {line["line_number"]: line["count"] for line in said["files"][0]["lines"]}


def the_sum_of_two_runs(folder):
    counts = counts_of_sum(folder, counters_of(folder, "a", "b"), counters_of(folder, "a"))
    return (counts[2], counts[4], counts[6], counts[7], counts[10]) == (2, 3, 0, 2, 0)


def one_run_by_itself(folder):
    return counts_of_sum(folder, counters_of(folder))[2] == 1


def a_file_of_zeros_is_known(folder):
    data = counters_of(folder)
    return counters.counted(data) and not counters.counted((folder / "q.gcda").read_bytes())


def counters_of_another_build_are_refused(folder):
    total = counters.Sum()
    total.add(counters_of(folder))
    try:
        total.add((folder / "q.gcda").read_bytes())
    except ValueError:
        return True
    return False


def counters_of_an_object_have_the_stamp_of_its_note(folder):
    data = counters_of(folder)
    return (counters.stamp(data) == counters.stamp((folder / "p.gcno").read_bytes())
            != counters.stamp((folder / "q.gcno").read_bytes()))


def the_table_has_sums(_folder):
    sources = {"src/a/x.c": {"lines": {1: 2, 2: 0}, "branches": {1: [1, 0]}},
               "src/a/y.c": {"lines": {1: 1}, "branches": {}},
               "src/b/z.c": {"lines": {7: 0}, "branches": {}}}
    return lines.table_rows(sources) == [["src/a", 3, 2, 2, 1], ["src/b", 1, 0, 0, 0], ["all", 4, 2, 2, 1]]


def branches_of_two_objects_are_taken_in_either(_folder):
    return lines.merge_branches([1, 0], [0, 5]) == [1, 5] and lines.merge_branches([1], [0, 0]) == [0, 0]


def what_is_known_of_changed_sources_is_refused(folder):
    (folder / "outcomes.json").write_text("{}")
    for of, wanted in ((lines.checksum("src"), ""), ("another", "has changed")):
        (folder / "lines.json").write_text(json.dumps({"of": of, "ran": {}, "sources": {}}))
        try:
            reach.Reach(folder)
            said = ""
        except reach.Stale as error:
            said = str(error)
        if wanted not in said or bool(wanted) != bool(said):
            return False
    return True


def without_measurements_a_person_is_told_how_to_get_them(folder):
    (folder / "lines.json").unlink(missing_ok=True)
    try:
        reach.Reach(folder)
    except reach.Stale as error:
        return "./dev coverage" in str(error)
    return False


def every_recorded_chapter_is_measured(_folder):
    """By the recordings, which know scenarios by name whatever the form of their declarations."""
    recorded = set()
    for path in (suites.PARITY / "recordings").glob("*.txt.xz"):
        with lzma.open(path, "rt") as file:
            recorded |= set(re.findall(r"^\[([\w-]+)/", file.read(), re.M))
    return len(recorded) > 50 and recorded <= set(suites.chapters())


CASES = [every_recorded_chapter_is_measured, one_run_by_itself, the_sum_of_two_runs, a_file_of_zeros_is_known, counters_of_another_build_are_refused,
         counters_of_an_object_have_the_stamp_of_its_note,
         the_table_has_sums, branches_of_two_objects_are_taken_in_either, what_is_known_of_changed_sources_is_refused,
         without_measurements_a_person_is_told_how_to_get_them]


def main():
    print(f"1..{len(CASES)}")
    good = True
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        build(folder)
        for number, case in enumerate(CASES, 1):
            passed = case(folder)
            good = good and passed
            print(f"{'ok' if passed else 'not ok'} {number} - {case.__name__.replace('_', ' ')}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
