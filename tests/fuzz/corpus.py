#!/usr/bin/env python3
"""The inputs of the fuzz targets: an archive for each, tests/fuzz/corpus/TARGET.tar.xz.

    corpus.py unpack TARGET FOLDER   its inputs, and those made of files of the repository, as files of FOLDER
    corpus.py seeds TARGET FOLDER    only those made of files of the repository
    corpus.py pack TARGET FOLDER     the archive anew, of the files *.bin of FOLDER
    corpus.py targets                their names

An archive depends on the names and bytes of its files alone, so that packing again what was unpacked changes
nothing. The suffix .bin keeps tools that judge text away from what is unpacked.
"""
import io
import lzma
import sys
import tarfile
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]
CORPUS = SOURCE / "tests/fuzz/corpus"
IMAGES = SOURCE / "tests/fixtures/images"
TARGETS = ("api", "copy", "files", "objects", "image", "import", "kernel", "profile", "program")
# How tests/fuzz/image.c reads an image, by its first byte: as an input of a link for sm_90, without a name,
# with the machine code preferred, with all log, and for no architecture.
IMAGE_OPTIONS = (0o11, 0o17, 0o57, 0o50)
IMAGE_KINDS = (".cubin", ".fatbin", ".ptx", ".object", ".archive")


def archive_of(target):
    return CORPUS / f"{target}.tar.xz"


def seeds(target, folder):
    """Inputs made of files of the repository, so that the corpus need not repeat them."""
    if target == "files":
        for image in sorted(IMAGES.iterdir()):
            if image.suffix in (".cubin", ".fatbin", ".object"):
                Path(folder, f"seed-{image.name}.bin").write_bytes(image.read_bytes())
    if target != "image":
        return
    for options in IMAGE_OPTIONS:
        for image in sorted(IMAGES.iterdir()):
            if image.suffix in IMAGE_KINDS:
                path = Path(folder, f"seed-{options:03o}-{image.name}.bin")
                path.write_bytes(bytes([options]) + image.read_bytes())


def unpack(target, folder):
    """Writes each input below its name. Nothing else of the archive counts: no path, no mode, no time."""
    if archive_of(target).exists():
        with tarfile.open(archive_of(target)) as archive:
            for member in archive:
                Path(folder, Path(member.name).name).write_bytes(archive.extractfile(member).read())


def packed(files):
    """The bytes of an archive of (name, content)."""
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, content in sorted(files):
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return lzma.compress(raw.getvalue(), preset=9 | lzma.PRESET_EXTREME)


def pack(target, folder):
    files = [(path.name, path.read_bytes()) for path in Path(folder).glob("*.bin")]
    CORPUS.mkdir(exist_ok=True)
    archive_of(target).write_bytes(packed(files))
    return len(files)


def main(arguments):
    if arguments == ["targets"]:
        print(" ".join(TARGETS))
        return 0
    if len(arguments) != 3 or arguments[0] not in ("unpack", "seeds", "pack") or arguments[1] not in TARGETS:
        print(__doc__.split("\n\n")[1], file=sys.stderr)
        return 2
    verb, target, folder = arguments
    if verb == "pack":
        print(f"{target}: {pack(target, folder)} files")
        return 0
    Path(folder).mkdir(parents=True, exist_ok=True)
    seeds(target, folder)
    if verb == "unpack":
        unpack(target, folder)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
