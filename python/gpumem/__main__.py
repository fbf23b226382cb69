"""Where the files are that programs are built with: python3 -m gpumem --cmakedir, or --pkgconfigdir."""
import importlib.metadata
import sys

# What is asked for, and a file of that folder.
FOLDERS = {"--cmakedir": "gpumemConfig.cmake", "--pkgconfigdir": "gpumem.pc"}


def folder_of(name):
    """Wherever pip has put it: an environment, the user's folder, --target."""
    try:
        files = importlib.metadata.files("gpumem") or []
    except importlib.metadata.PackageNotFoundError:
        files = []
    for file in files:
        if file.name == name:
            return file.locate().resolve().parent
    sys.exit(f"gpumem: pip has installed no {name}")


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] not in FOLDERS:
        sys.exit(f"usage: python3 -m gpumem {' | '.join(FOLDERS)}")
    print(folder_of(FOLDERS[sys.argv[1]]))
