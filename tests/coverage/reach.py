"""Which tests run a line of src/, by what lines.py kept. Worked out for a source when it is asked for, since
for all of them it takes long, and then kept in BUILD/reach."""
import json
import tempfile
import zipfile
from pathlib import Path

from lines import checksum, gcov, lines_of


class Stale(Exception):
    """What was measured is of other sources."""


class Reach:
    def __init__(self, build):
        self.build = build
        try:
            known = json.loads((build / "lines.json").read_text())
            self.outcomes = json.loads((build / "outcomes.json").read_text())
        except FileNotFoundError as error:
            raise Stale(f"there is no {error.filename}: run ./dev coverage") from error
        if known["of"] != checksum("src"):
            raise Stale("src/ has changed since its coverage was measured: run ./dev coverage")
        self.ran, self.sources, self.known = known["ran"], known["sources"], {}

    def lines(self, source):
        """The numbers of a source's lines with code, and how often each ran."""
        return {int(line): count for line, count in self.sources[source]["lines"].items()}

    def seconds(self, test):
        return self.outcomes[test]["seconds"]

    def tests(self, source, line):
        """The names of the tests that run a line and pass, the quickest first."""
        if source not in self.known:
            self.known[source] = self.look_up(source)
        names = self.known[source].get(str(line), [])
        good = [name for name in names if self.outcomes[name]["passed"] and not self.outcomes[name]["failures"]]
        return sorted(good, key=lambda name: (self.seconds(name), name))

    def look_up(self, source):
        path = self.build / "reach" / f"{source}.json"
        if path.exists():
            return json.loads(path.read_text())
        found = self.ask(source)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(found))
        return found

    def ask(self, source):
        """{line: [test]}: what gcov says of this source for each test by itself."""
        found = {}
        with tempfile.TemporaryDirectory() as folder:
            asked = [(test, thing) for thing in self.sources[source]["objects"] for test in self.ran.get(thing, [])]
            paths = [self.unpack(Path(folder) / str(number), *pair) for number, pair in enumerate(asked)]
            for (test, _), said in zip(asked, gcov(paths)):
                for line, (count, _) in lines_of(said).get(source, {}).items():
                    if count:
                        found.setdefault(str(line), set()).add(test)
        return {line: sorted(names) for line, names in found.items()}

    def unpack(self, base, test, thing):
        with zipfile.ZipFile(self.build / "counters" / f"{test}.zip") as packed:
            Path(f"{base}.gcda").write_bytes(packed.read(f"{thing}.gcda"))
        Path(f"{base}.gcno").symlink_to(self.build / f"{thing}.gcno")
        return Path(f"{base}.gcda")
