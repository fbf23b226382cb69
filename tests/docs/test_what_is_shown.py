#!/usr/bin/env python3
"""Each page that shows code is run by a test that is named here, or says that no test runs it; names of tests exist."""
import re
import sys

from pages import BLOCK, SOURCE, report

# Page: the tests that run what it shows, or compare with a run.
RUN = {
    "README.md": ("docs/test_examples.py", "install/test_building.py", "runner/test_dev.py", "docs/test_cpp.sh"),
    "CONTRIBUTING.md": ("runner/test_dev.py",),
    "docs/api-tour.md": ("docs/test_api_tour.sh",),
    "docs/building-with-gpumem.md": ("install/test_building.py", "package/test_package.py"),
    "docs/checkers.md": ("cli/test_check_reports.py", "cli/test_check_race.py"),
    "docs/ci.md": ("docs/test_cuda_programs_page.py", "clients/test_page_programs.py"),
    "docs/clients.md": ("clients/test_kernels_numba.py",),
    "docs/cpp.md": ("docs/test_cpp.sh",),
    "docs/cuda-programs.md": ("docs/test_cuda_programs_page.py", "clients/test_page_programs.py"),
    "docs/python.md": ("python/test_buffers.py",),
    "docs/runtime.md": ("docs/test_cuda_programs_page.py", "programs/test_cuda_programs.py", "cli/test_doctor_files.py"),
    "docs/snapshot.md": ("cli/test_map.py",),
    "docs/softgpu.md": ("clients/test_page_programs.py", "cli/test_run.py", "package/test_package.py"),
}
# Of measurements, with the command that makes them, and of how the sources are laid out.
FIGURES = {"docs/h200.md", "docs/architecture.md"}
WHOLE = re.compile(r"The whole program is \[`(examples/\w+\.c)`\]")
SAID = re.compile(r"no test (?:compiles|runs) them")


def problems_of(page, text):
    if not BLOCK.search(text) or page in FIGURES or WHOLE.search(text) or SAID.search(text):
        return []
    if page not in RUN:
        return [f"{page} shows code: which test runs it?"]
    return [f"{page}: there is no tests/{name}" for name in RUN[page] if not (SOURCE / "tests" / name).exists()]


def main():
    pages = {name: (SOURCE / name).read_text() for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")}
    pages |= {f"docs/{path.name}": path.read_text() for path in sorted((SOURCE / "docs").glob("*.md"))}
    missed = [] if problems_of("docs/other.md", "```c\nint a;\n```\n") else ["a page that nothing runs goes unnoticed"]
    return report([("what pages show is run, or they say that it is not", [problem for page, text in pages.items() for problem in problems_of(page, text)]),
                   ("a planted page is noticed", missed)])


sys.exit(main())
