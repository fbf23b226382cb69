#!/usr/bin/env python3
"""All programs of tests/programs/cu, each linked with both of our runtimes; once more with queued work done as late as
can be; and under the four checkers, which find nothing but what a program says of itself. It prints the same each time."""
import json
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "programs"))
import cuda_programs  # noqa: E402  pylint: disable=wrong-import-position
from test_cuda_programs import Report  # noqa: E402  pylint: disable=wrong-import-position

# Programs ask for what is refused, on purpose, and some of their memory only has an address.
EXPECTED = {"api-error", "unused-memory"}
CHECKS = ("--check", "memory,race,init,sync", "--check-format", "json", "--check-output")


def checked(program, path, folder):
    output = folder / "report"
    problems = cuda_programs.prints_golden(program, path, *CHECKS, output)
    lines = [json.loads(line) for line in output.read_text().splitlines()] if output.exists() else []
    if not lines:
        return [*problems, "there is no report"]
    kinds = {line["kind"] for line in lines if "kind" in line}
    told = set(program.settings_together.get("findings", "").split())
    found = [json.dumps(line) for line in lines if line.get("kind") not in EXPECTED | told | {None}]
    return problems + found + [f"there is no finding of the kind {kind}" for kind in sorted(told - kinds)]


def main():
    report = Report()
    why = cuda_programs.missing()
    if why:
        report.skip("programs of CUDA's runtime", why)
        return report.end()
    compiler = cuda_programs.Compiler()
    chosen = cuda_programs.programs()
    compiler.compile_all(chosen)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        for program in chosen:
            for abi in program.runtimes:
                report.run(f"{program.name} with libcudart.so.{abi}",
                           lambda program=program, abi=abi: cuda_programs.prints_golden(
                               program, compiler.link(program, abi, folder)))
            path = folder / f"{program.name}.{program.runtimes[0]}"
            report.run(f"{program.name} with all work done late",
                       lambda program=program, path=path: cuda_programs.prints_golden(program, path, "--schedule", "late"))
            report.run(f"{program.name} under the checkers",
                       lambda program=program, path=path: checked(program, path, folder))
    return report.end()


if __name__ == "__main__":
    sys.exit(main())
