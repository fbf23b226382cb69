"""hashcat finds the words that hashes of Python's hashlib were made from. CLIENT_ROOT has Debian's hashcat; its kernels
are compiled by NVRTC, which this environment has."""
import base64
import functools
import hashlib
import hmac
import os
import shutil
import sys
import sysconfig
import tempfile
from pathlib import Path

from tap import expect_equal, main

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import debian  # noqa: E402  pylint: disable=wrong-import-position

ROOT = Path(os.environ["CLIENT_ROOT"])
NVRTC = next(Path(sysconfig.get_path("purelib")).glob("nvidia/*/lib/libnvrtc.so.1?"))
WORD, SALT = b"grosbeak", b"20261129"
WORDS = [b"%s%d" % (bird, number) for bird in (b"heron", b"plover", b"finch", b"tern") for number in range(60)]


def encoded(data):
    return base64.b64encode(data).decode()


KINDS = {  # hashcat's number, and the line that it reads
    "md5": (0, hashlib.md5(WORD).hexdigest()),
    "sha1": (100, hashlib.sha1(WORD).hexdigest()),
    "sha256": (1400, hashlib.sha256(WORD).hexdigest()),
    "sha512": (1700, hashlib.sha512(WORD).hexdigest()),
    "sha3_256": (17400, hashlib.sha3_256(WORD).hexdigest()),
    "blake2b": (600, "$BLAKE2$" + hashlib.blake2b(WORD).hexdigest()),
    "hmac_of_sha256": (1450, f"{hmac.new(WORD, SALT, 'sha256').hexdigest()}:{SALT.decode()}"),
    "pbkdf2_of_sha256": (10900, f"sha256:1000:{encoded(SALT)}:"
                                f"{encoded(hashlib.pbkdf2_hmac('sha256', WORD, SALT, 1000))}"),
}


@functools.cache
def folder():
    """Outside of /usr/bin hashcat takes all from the folder that has it, and keeps what it compiles there."""
    place = Path(tempfile.mkdtemp())
    shutil.copy(ROOT / "usr/bin/hashcat", place)
    for part in ("OpenCL", "charsets", "hashcat.hcstat2", "modules", "tunings"):
        (place / part).symlink_to((ROOT / "usr/share/hashcat" / part).resolve())
    (place / "libnvrtc.so").symlink_to(NVRTC)
    (place / "words").write_bytes(b"\n".join([*WORDS[:77], WORD, *WORDS[77:]]) + b"\n")
    return place


def found(kind, line, *attack):
    """What hashcat prints of a hash. Its own test of each kernel comes first."""
    path = os.pathsep.join([str(folder()), str(NVRTC.parent), debian.libraries(ROOT), os.environ.get("LD_LIBRARY_PATH", "")])
    return debian.output(folder() / "hashcat", "-m", kind, "--quiet", "--potfile-disable", "--restore-disable",
                         "--logfile-disable", "--backend-ignore-opencl", "--force", "-n", "1", "-u", "1", "-T", "32",
                         *attack[:2], line, *attack[2:], cwd=folder(),
                         environment=dict(os.environ, LD_LIBRARY_PATH=path, HOME=str(folder()))).decode().strip()


def is_found(kind, line):
    expect_equal(found(kind, line, "-a", "0", folder() / "words"), f"{line}:{WORD.decode()}")


for name, row in KINDS.items():
    globals()[f"test_{name}_is_found_in_a_list_of_words"] = functools.partial(is_found, *row)


def test_letters_are_found_by_trying_all():
    line = hashlib.md5(b"owl").hexdigest()
    expect_equal(found(0, line, "-a", "3", "?l?l?l"), f"{line}:owl")


if __name__ == "__main__":
    try:
        main(globals())
    finally:
        shutil.rmtree(folder())
