"""What each shell completes a command line to, by its own machinery. `ask(lines, folder)` of a shell gives
a list of words for each line, which ends where the cursor is."""
import os
import pty
import shlex
import subprocess
import tempfile
import threading
import time
from pathlib import Path

import harness

FOLDER = harness.SOURCE / "tools/gpumem/completion"
LIMIT = 50  # seconds, all lines together


def environment(**more):
    path = f"{Path(harness.COMMAND).parent}:{os.environ['PATH']}"
    return harness.environment(PATH=path, TERM="dumb", **more)


def run_script(shell, script, folder):
    done = subprocess.run([*shell, script], cwd=folder, env=environment(HOME=str(folder)), text=True,
                          capture_output=True, stdin=subprocess.DEVNULL, timeout=LIMIT, check=False)
    harness.expect(done.returncode == 0 and not done.stderr, f"{shell}: {done.returncode}\n{done.stderr}")
    return [part.split("\n")[:-1] for part in done.stdout.split("==\n")[1:]]


# ---- bash: the function is called as readline does, with the line taken apart ---------------------

def bash_words(line):
    """As COMP_WORDBREAKS has it: an equals sign is a word of its own."""
    words = shlex.split(line.replace("=", " = "))
    return words if not line.endswith(" ") else [*words, ""]


def bash(lines, folder):
    calls = []
    for line in lines:
        words = bash_words(line)
        calls.append(f"COMP_WORDS=({' '.join(map(shlex.quote, words))}); COMP_CWORD={len(words) - 1}\n"
                     "COMPREPLY=(); echo ==; _gpumem; [ ${#COMPREPLY[@]} = 0 ] || printf '%s\\n' \"${COMPREPLY[@]}\"")
    # compopt works only where readline has called.
    script = f"compopt() {{ :; }}\nsource {shlex.quote(str(FOLDER / 'gpumem.bash'))}\n" + "\n".join(calls)
    return run_script(["bash", "--norc", "-c"], script + "\n:\n", folder)


# ---- fish -----------------------------------------------------------------------------------------

def fish(lines, folder):
    asked = "\n".join(f"echo ==; complete -C {shlex.quote(line)} | string replace -r '\\t.*' ''" for line in lines)
    script = f"source {shlex.quote(str(FOLDER / 'gpumem.fish'))}\n{asked}\ntrue"
    # With --option=value it answers with the option.
    return [[word.rpartition("=")[2] for word in words] for words in run_script(["fish", "--no-config", "-c"], script, folder)]


# ---- zsh: an interactive one on a terminal, whose matches are written down ------------------------

ZSH = r"""
fpath=($FUNCTIONS $fpath)
autoload -U compinit
compinit -u -D
compadd() {
    local word
    for word in "$@"; do
        [[ $word == (-|--) ]] && break
        [[ $word == -*[OAD]* ]] && { builtin compadd "$@"; return }
    done
    local -a hits
    builtin compadd -O hits "$@"
    (( $#hits )) && print -rl -- $hits >>$ANSWERS
    builtin compadd "$@"
}
answer() {
    _main_complete
    print -- '==' >>$ANSWERS
}
zle -C answer complete-word answer
bindkey '^I' answer
print -- '==' >>$ANSWERS
"""


class Terminal:
    """Keeps reading, so that what is written to it is never held up."""

    def __init__(self, command, env, folder):
        self.child, self.file = pty.fork()
        if self.child == 0:
            os.chdir(folder)
            os.execvpe(command[0], command, env)
        self.reader = threading.Thread(target=self.drain)
        self.reader.start()

    def drain(self):
        try:
            while os.read(self.file, 65536):
                pass
        except OSError:
            pass  # the other end is closed

    def type(self, text):
        os.write(self.file, text.encode())

    def close(self):
        os.kill(self.child, 9)
        os.waitpid(self.child, 0)
        self.reader.join()
        os.close(self.file)


def wait_for_answer(answers, end):
    """What was written until the mark, which is on a line of its own."""
    while not (text := answers.read_text()).endswith("==\n"):
        harness.expect(time.monotonic() < end, f"zsh does not answer; so far {text!r}")
        time.sleep(0.01)
    return text.split("\n")[:-2]


def zsh(lines, folder):
    with tempfile.TemporaryDirectory() as place:
        setup, answers = Path(place) / "setup", Path(place) / "answers"
        setup.write_text(ZSH)
        answers.write_text("")
        terminal = Terminal(["zsh", "-f", "-i"], environment(ANSWERS=str(answers), FUNCTIONS=str(FOLDER)), folder)
        try:
            end = time.monotonic() + LIMIT
            terminal.type(f"source {setup}\n")
            wait_for_answer(answers, end)
            found = []
            for line in lines:
                answers.write_text("")
                terminal.type(f"\x15{line}\t")  # ^U empties the line
                found.append([word.rstrip("/") for word in wait_for_answer(answers, end)])
            return found
        finally:
            terminal.close()
