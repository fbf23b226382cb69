#!/usr/bin/env python3
"""Makes what a release consists of, twice, and compares the bytes: the sources as a tarball, the Debian package, the
wheels, checksums, and a bill of materials (SPDX 2.3).

release.py BUILD DIST [--dry-run]: of the commit that is checked out and the release build in the folder BUILD, into
DIST. With --dry-run what keeps it from being a release is listed, and nothing is tagged; without it these are errors,
and the tag vVERSION is made, which is pushed by hand. docs/release.md has the checklist."""
import gzip
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from datetime import datetime, timezone
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[1]
PARTLY = 77  # of make.sh: no wheel
# What is linked in, with its licence and the header that has its version.
LINKED = {"lz4": ("BSD-2-Clause", "lz4.h", r"LZ4_VERSION_(MAJOR|MINOR|RELEASE) +(\d+)"),
          "zstd": ("BSD-3-Clause", "zstd.h", r"ZSTD_VERSION_(MAJOR|MINOR|RELEASE) +(\d+)"),
          "zlib": ("Zlib", "zlib.h", r'ZLIB_(VERSION) "([\d.]+)')}


def git(*words):
    return subprocess.run(["git", "-C", SOURCE, *words], capture_output=True, check=True).stdout


def version():
    text = (SOURCE / "include/gpumem/status.h").read_text()
    return ".".join(re.search(rf"define GPUMEM_VERSION_{part} +(\d+)", text).group(1) for part in ("MAJOR", "MINOR", "PATCH"))


def obstacles(number):
    """What keeps this commit from being a release."""
    found = []
    if git("status", "--porcelain").strip():
        found.append("files are not committed")
    heading = re.search(rf"^## {re.escape(number)}(.*)$", (SOURCE / "CHANGELOG.md").read_text(), re.M)
    if not heading:
        found.append(f"CHANGELOG.md has no section {number}")
    elif not re.search(r"\d{4}-\d\d-\d\d", heading.group(1)):
        found.append(f"CHANGELOG.md does not say when {number} was released")
    if git("tag", "--list", f"v{number}").strip():
        found.append(f"there is a tag v{number}")
    return found


def tarball(folder, number):
    archive = git("archive", "--format=tar", f"--prefix=gpumem-{number}/", "HEAD")
    with open(folder / f"gpumem-{number}.tar.gz", "wb") as file, gzip.GzipFile("", "wb", 9, file, mtime=0) as packed:
        packed.write(archive)


def built_with(build):
    """{library: version} of what this build has linked in, by the headers that it was compiled with."""
    cache = (build / "CMakeCache.txt").read_text()
    found = {}
    for name, (_, header, pattern) in LINKED.items():
        include = re.search(rf"^GPUMEM_{name.upper()}_INCLUDE:PATH=(.*)$", cache, re.M)
        if include and (Path(include.group(1)) / header).exists():
            numbers = re.findall(rf"define {pattern}", (Path(include.group(1)) / header).read_text(errors="replace"))
            found[name] = ".".join(value for _, value in numbers)
    return found


def materials(folder, number, build, epoch):
    """The bill of materials; files are those that lie in the folder."""
    commit = git("rev-parse", "HEAD").decode().strip()
    main = {"SPDXID": "SPDXRef-gpumem", "name": "gpumem", "versionInfo": number, "licenseConcluded": "Apache-2.0", "licenseDeclared": "Apache-2.0",
            "copyrightText": "NOASSERTION", "downloadLocation": "NOASSERTION", "filesAnalyzed": False, "sourceInfo": f"git commit {commit}"}
    packages, relations = [main], [("SPDXRef-DOCUMENT", "DESCRIBES", "SPDXRef-gpumem")]
    for name, linked in built_with(build).items():
        packages.append({"SPDXID": f"SPDXRef-{name}", "name": name, "versionInfo": linked, "licenseConcluded": LINKED[name][0],
                         "licenseDeclared": LINKED[name][0], "copyrightText": "NOASSERTION", "downloadLocation": "NOASSERTION", "filesAnalyzed": False})
        relations.append(("SPDXRef-gpumem", "STATIC_LINK", f"SPDXRef-{name}"))
    files = []
    for i, path in enumerate(sorted(path for path in folder.iterdir() if path.is_file())):
        files.append({"SPDXID": f"SPDXRef-file-{i}", "fileName": f"./{path.name}", "copyrightText": "NOASSERTION", "licenseConcluded": "Apache-2.0",
                      "checksums": [{"algorithm": "SHA256", "checksumValue": digest(path)}]})
        relations.append(("SPDXRef-gpumem", "CONTAINS", f"SPDXRef-file-{i}"))
    document = {"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": f"gpumem-{number}",
                "documentNamespace": f"urn:gpumem:{number}:{commit}", "packages": packages, "files": files,
                "creationInfo": {"created": datetime.fromtimestamp(epoch, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"), "creators": ["Tool: gpumem-release"]},
                "relationships": [{"spdxElementId": one, "relationshipType": kind, "relatedSpdxElement": other} for one, kind, other in relations]}
    (folder / f"gpumem-{number}.spdx.json").write_text(json.dumps(document, indent=1) + "\n")


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def set_member_times(package, epoch):
    """Of a Debian package, an ar archive: cpack writes when it was made into the header of each member."""
    data = bytearray(package.read_bytes())
    at = len(b"!<arch>\n")
    while at + 60 <= len(data):
        data[at + 16:at + 28] = f"{epoch:<12}".encode()
        size = int(data[at + 48:at + 58])
        at += 60 + size + size % 2
    package.write_bytes(data)


def make(folder, number, build, epoch):
    """All files of the release; what make.sh left out, as it says it."""
    folder.mkdir(parents=True)
    tarball(folder, number)
    done = subprocess.run([SOURCE / "packaging/make.sh", folder, build], env=dict(os.environ, SOURCE_DATE_EPOCH=str(epoch)),
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode not in (0, PARTLY):
        sys.exit(f"release.py: packaging failed\n{done.stdout}")
    for package in folder.glob("*.deb"):
        set_member_times(package, epoch)
    materials(folder, number, build, epoch)
    sums = "".join(f"{digest(path)}  {path.name}\n" for path in sorted(folder.iterdir()) if path.is_file())
    (folder / "SHA256SUMS").write_text(sums)
    return done.stdout.strip().splitlines()[-1] if done.returncode == PARTLY else ""


def different(one, other):
    names = sorted({path.name for folder in (one, other) for path in folder.iterdir() if path.is_file()})
    return [name for name in names if not ((one / name).exists() and (other / name).exists() and digest(one / name) == digest(other / name))]


def main():
    dry = "--dry-run" in sys.argv
    build, dist = (Path(word).resolve() for word in [word for word in sys.argv[1:] if not word.startswith("-")][:2])
    number, epoch = version(), int(git("log", "-1", "--format=%ct"))
    hindered = obstacles(number)
    if hindered and not dry:
        sys.exit("release.py: no release: " + "; ".join(hindered))
    shutil.rmtree(dist, ignore_errors=True)
    left = make(dist, number, build, epoch)
    with tempfile.TemporaryDirectory() as name:
        make(Path(name) / "again", number, build, epoch)
        changed = different(dist, Path(name) / "again")
    if changed:
        sys.exit(f"release.py: made twice, these differ: {', '.join(changed)}")
    print(*(f"{path.stat().st_size:>10}  {path.name}" for path in sorted(dist.iterdir()) if path.is_file()), sep="\n")
    print("made twice, with the same bytes")
    for why in [*hindered, *([left] if left else [])]:
        print(f"in the way of a release: {why}")
    if left and not dry:
        sys.exit("release.py: no release without the wheels")
    if dry:
        print(f"not tagged; a release would be v{number} (docs/release.md)")
        return 0
    subprocess.run(["git", "-C", SOURCE, "tag", "-a", f"v{number}", "-m", f"gpumem {number}"], check=True)
    print(f"tagged v{number}; git push origin v{number}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
