#!/bin/sh
# pages.sh GPUMEM FOLDER: writes the man pages of the command and its subcommands, made from
# its own help texts. The date is that of the newest commit (or SOURCE_DATE_EPOCH), so that the same
# sources give the same pages.
set -eu

gpumem=$1
folder=$2
here=$(cd "$(dirname "$0")" && pwd)

date_of_sources() {
    if [ -n "${SOURCE_DATE_EPOCH:-}" ]; then
        date -u -d "@$SOURCE_DATE_EPOCH" +%Y-%m-%d
    else
        git -C "$here" log -1 --format=%cs 2>/dev/null || date -u -r "$here/page.awk" +%Y-%m-%d
    fi
}

# page NAME SUMMARY HELP...: one page, of what HELP prints. Not in a pipe, which would hide a failure.
page() {
    name=$1
    summary=$2
    shift 2
    file=$folder/gpumem${name:+-$name}.1
    "$@" >"$folder/help"
    awk -v name="$name" -v summary="$summary" -v version="$version" -v date="$date" \
        -v others="$commands" -v examples="$here/examples.txt" -f "$here/page.awk" \
        "$folder/help" >"$file"
    rm "$folder/help"
}

mkdir -p "$folder"
rm -f "$folder"/gpumem*.1
date=$(date_of_sources)
version=$("$gpumem" --version)
version=${version#gpumem }
# The first list of the help: a name, two spaces or more, a summary.
"$gpumem" help >"$folder/help"
list=$(sed -n '/^  help /q;s/^  \([a-z-]*\)   *\([^ ].*\)/\1 \2/p' "$folder/help")
commands=$(printf '%s\n' "$list" | cut -d ' ' -f 1 | tr '\n' ' ')
page "" "GPU memory of every kind, on NVIDIA's driver or on a software GPU" "$gpumem" help
printf '%s\n' "$list" | while read -r name summary; do
    page "$name" "$summary" "$gpumem" help "$name"
done
