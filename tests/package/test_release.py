#!/usr/bin/env python3
"""What a release consists of is made twice with the same bytes, of a clone of the commit; what is in the way of one is
said, and is an error without --dry-run."""
import hashlib
import json
import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("GPUMEM_BUILD_DIR", SOURCE / "build")).resolve()
sys.path.insert(0, str(SOURCE / "tests/harness"))
from tap_report import Report  # noqa: E402  pylint: disable=wrong-import-position


def run(*command, **more):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, **more)


def release(clone, dist, *options):
    """Without wheels, which are built from the sources, for minutes: ./dev release --dry-run compares those, too."""
    env = dict(os.environ, GPUMEM_WITHOUT_WHEELS="1")
    return run(sys.executable, clone / "packaging/release.py", BUILD, dist, *options, env=env)


def files_are_complete(dist, said):
    assert said.returncode == 0, said.stdout + said.stderr
    assert "made twice, with the same bytes" in said.stdout and "not tagged" in said.stdout, said.stdout
    names = {path.name for path in dist.iterdir() if path.is_file()}
    assert any(name.endswith(".deb") for name in names) and "SHA256SUMS" in names, names
    assert any(name.endswith(".whl") for name in names) or "no wheel" in said.stdout, said.stdout
    for line in (dist / "SHA256SUMS").read_text().splitlines():
        sum_of, name = line.split()
        assert hashlib.sha256((dist / name).read_bytes()).hexdigest() == sum_of, name
        names.discard(name)
    assert names == {"SHA256SUMS"}, f"without a checksum: {names}"


def package_is_whole(dist):
    said = run("dpkg-deb", "--contents", next(dist.glob("*.deb")))
    assert said.returncode == 0 and "libgpumem.so.0" in said.stdout, said.stdout + said.stderr


def sources_are_the_commits(clone, dist):
    with tarfile.open(next(dist.glob("*.tar.gz"))) as archive:
        packed = {name.partition("/")[2] for name in archive.getnames()} - {""}
    listed = set(run("git", "-C", clone, "ls-files").stdout.splitlines())
    assert listed <= packed, sorted(listed - packed)[:5]


def materials_name_what_is_linked(dist):
    document = json.loads(next(dist.glob("*.spdx.json")).read_text())
    names = {package["name"]: package for package in document["packages"]}
    licences = {path.stem for path in (SOURCE / "packaging/licences").glob("*.txt")}
    assert licences <= set(names), f"{licences} are shipped, {set(names)} are named"
    assert all(package["versionInfo"] and package["licenseDeclared"] for package in names.values()), names
    assert len(document["files"]) >= 2 and document["spdxVersion"] == "SPDX-2.3"


def what_is_in_the_way_is_an_error(clone, dist):
    (clone / "left.txt").write_text("not committed")
    said = release(clone, dist)
    assert said.returncode == 1 and "not committed" in said.stderr, said.stdout + said.stderr
    assert not run("git", "-C", clone, "tag").stdout.strip(), "a tag was made"


def main():
    report = Report()
    if run("git", "-C", SOURCE, "rev-parse", "HEAD").returncode != 0:
        report.skip("a release is made", "the sources are no clone of the repository")
        return report.end()
    with tempfile.TemporaryDirectory() as name:
        clone, dist = Path(name) / "clone", Path(name) / "dist"
        run("git", "clone", "-q", "--no-tags", SOURCE, clone)
        # What is not committed yet is tried, too.
        for script in ("release.py", "make.sh", "wheel.py", "deb.cmake"):
            if (SOURCE / "packaging" / script).exists():
                (clone / "packaging" / script).write_bytes((SOURCE / "packaging" / script).read_bytes())
                (clone / "packaging" / script).chmod(0o755)
        said = release(clone, dist, "--dry-run")
        report.run("files are made twice, with checksums", files_are_complete, dist, said)
        report.run("the Debian package can be read", package_is_whole, dist)
        report.run("the tarball has the commit's files", sources_are_the_commits, clone, dist)
        report.run("the bill of materials names what is linked in", materials_name_what_is_linked, dist)
        report.run("what is in the way of a release is an error", what_is_in_the_way_is_an_error, clone, dist)
    return report.end()


if __name__ == "__main__":
    sys.exit(main())
