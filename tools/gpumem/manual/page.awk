# Makes a man page, on standard output, of a help text of gpumem, on standard input:
#
#     gpumem help load | awk -v name=load -v summary=... -v version=... -v date=... -v others=... \
#         -v examples=FILE -f page.awk
#
# `name` is empty for the page of gpumem itself; `others` are all commands, separated by spaces.
# cli.h describes the form of a help text.

# Text as it is printed: a hyphen stays one that can be typed, and no line is taken for a request.
function literal(text) {
    gsub(/\\/, "\\e", text)
    gsub(/-/, "\\-", text)
    gsub(/'/, "\\(aq", text)
    gsub(/\^/, "\\(ha", text)
    gsub(/~/, "\\(ti", text)
    gsub(/`/, "\\(ga", text)
    return text ~ /^\./ ? "\\&" text : text
}

# Bold what is typed as it stands, italic what stands for something else: that is in capitals.
function styled(text,    out, word) {
    out = ""
    while (match(text, /[A-Za-z0-9_-]+/)) {
        word = substr(text, RSTART, RLENGTH)
        out = out literal(substr(text, 1, RSTART - 1)) \
            (word ~ /^[A-Z]+$/ ? "\\fI" : "\\fB") literal(word) "\\fR"
        text = substr(text, RSTART + RLENGTH)
    }
    return out literal(text)
}

function page_of(command) {
    return command == "" ? "gpumem" : "gpumem-" command
}

# The titles come in this order; a second text of one section does not begin it anew.
function section(title) {
    if (title != current)
        print ".SH " title
    begun = title != current
    current = title
}

function paragraph() {
    if (!begun)
        print ".PP"
    begun = 0
}

function indent_of(line) {
    match(line, /^ */)
    return RLENGTH
}

function is_term(line) {
    return line ~ /^  [^ ]/
}

# Whether the list that begins in this line has an option.
function lists_options(at) {
    for (; lines[at] ~ /^  /; at++)
        if (lines[at] ~ /^  --/)
            return 1
    return 0
}

# A term and its meaning, which may have values with meanings of their own, further to the right.
# Returns the first line after it.
function definition(at,    term, meaning, column, values) {
    term = substr(lines[at], 3)
    meaning = ""
    column = 0
    if (match(term, /  +/)) {
        meaning = substr(term, RSTART + RLENGTH)
        column = 1 + RSTART + RLENGTH
        term = substr(term, 1, RSTART - 1)
    }
    print ".TP\n" styled(term)
    if (meaning != "")
        print literal(meaning)
    values = 0
    for (at++; lines[at] ~ /^   /; at++) {
        if (!column)
            column = indent_of(lines[at])
        meaning = substr(lines[at], indent_of(lines[at]) + 1)
        if (indent_of(lines[at]) > column && match(meaning, /^[a-z0-9_-]+  +/)) {
            term = substr(meaning, 1, RLENGTH)
            meaning = substr(meaning, RLENGTH + 1)
            gsub(/ /, "", term)
            print (values++ ? "" : ".RS\n") ".TP\n" styled(term)
        }
        print literal(meaning)
    }
    if (values)
        print ".RE"
    begun = 0
    return at
}

function definitions(at) {
    if (lists_options(at))
        section("OPTIONS")
    else if (name == "")
        section("COMMANDS")
    while (is_term(lines[at]))
        at = definition(at)
    return at
}

function prose(at,    text) {
    text = lines[at]
    if (sub(/^Exit status: */, "", text)) {
        section("EXIT STATUS")
        text = toupper(substr(text, 1, 1)) substr(text, 2)
    } else if (current == "SYNOPSIS")
        section("DESCRIPTION")
    else if (current != "DESCRIPTION")
        section("NOTES")
    paragraph()
    for (; at <= NR && text != "" && !is_term(text); text = lines[++at])
        print literal(text)
    return at
}

# From a file in which [load] begins those of load: what an example does, and indented the command.
function print_examples(    line, inside) {
    while ((getline line < examples) > 0) {
        if (line ~ /^\[/)
            inside = line == "[" (name == "" ? "gpumem" : name) "]"
        else if (inside && line ~ /^    /)
            print ".PP\n.RS 4\n.nf\n" literal(substr(line, 5)) "\n.fi\n.RE"
        else if (inside && line != "") {
            section("EXAMPLES")
            paragraph()
            print literal(line)
        }
    }
}

function print_references(    count, list, i, line) {
    count = split(others, list, " ")
    line = name == "" ? "" : ".BR gpumem (1)"
    for (i = 1; i <= count; i++)
        if (list[i] != name)
            line = line (line == "" ? "" : ",\n") ".BR " literal(page_of(list[i])) " (1)"
    print ".SH SEE ALSO\n" line
}

{ lines[NR] = $0 }

END {
    print ".\\\" Made from the text of 'gpumem help'."
    print ".TH " literal(toupper(page_of(name))) " 1 " date " \"gpumem " version "\" \"User Commands\""
    print ".SH NAME\n" literal(page_of(name)) " \\- " literal(summary)
    section("SYNOPSIS")
    print ".nf"
    for (at = 1; lines[at] != ""; at++)
        print styled(substr(lines[at], length("usage: ") + 1))
    print ".fi"
    while (at <= NR)
        at = lines[at] == "" ? at + 1 : is_term(lines[at]) ? definitions(at) : prose(at)
    print_examples()
    print_references()
}
