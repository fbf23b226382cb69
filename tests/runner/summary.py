"""What stands at the end of a run: what was skipped and why, what took longest, what failed, how many."""
import re

SLOWEST = 10
# Parts of a reason in which two skips for the same reason differ.
VARIABLE = re.compile(r"0x[0-9a-f]+|\b\d+(?:\.\d+)*\b|\b(?:cu|CU_|CUDA_|sm_)\w+|(?<![\w.])/[\w./+-]+|'[^']*'")
WIDEST = 110


def folded(reason):
    return VARIABLE.sub("…", reason)


def skip_table(outcomes):
    """A line for each reason: how many tests, why, and in which folders."""
    groups = {}
    for outcome in outcomes:
        for test, reason in outcome.skips:
            groups.setdefault(folded(reason), []).append((outcome, reason))
    lines = []
    for key, skips in sorted(groups.items(), key=lambda group: (-len(group[1]), group[0])):
        reasons = {reason for _, reason in skips}
        text = reasons.pop() if len(reasons) == 1 else key
        where = sorted({outcome.title.rpartition("/")[0] or outcome.title for outcome, _ in skips})
        text += f"  ({', '.join(where[:3])}{', …' if len(where) > 3 else ''})"
        lines.append(f"{len(skips):6}  {text if len(text) <= WIDEST else text[:WIDEST - 1] + '…'}")
    return lines


def slowest(outcomes):
    tests = [outcome for outcome in outcomes if not outcome.is_step]
    longest = sorted(tests, key=lambda outcome: -outcome.seconds)[:SLOWEST]
    return [f"{outcome.seconds:6.1f} s  {outcome.title}" for outcome in longest]


def failures(outcomes):
    lines = []
    for outcome in outcomes:
        lines += [f"failed: {outcome.title}: {what}" for what in outcome.failures]
        if outcome.failures and outcome.repeat:
            lines.append(f"repeat: {outcome.repeat}")
    return lines


def counts(outcomes):
    return (sum(outcome.passed for outcome in outcomes), sum(len(outcome.failures) for outcome in outcomes),
            sum(len(outcome.skips) for outcome in outcomes))


def count_line(outcomes):
    passed, failed, skipped = counts(outcomes)
    return f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else "")


def sum_up(screen, outcomes):
    """Prints all of it; the exit status. Nothing that ran is no success."""
    passed, failed, skipped = counts(outcomes)
    if skipped:
        table = skip_table(outcomes)
        screen.say(f"\nskipped ({skipped}, for {len(table)} reason{'s' * (len(table) > 1)}):")
        for line in table:
            screen.say(line)
    longest = slowest(outcomes)
    if len(longest) > 1:
        screen.say("\nslowest:")
        for line in longest:
            screen.say(line)
    if screen.log:
        screen.say(f"\nevery line is in {screen.log.name}")
    screen.say()
    for line in failures(outcomes):
        screen.say(line)
    screen.say(count_line(outcomes))
    return 1 if failed or not passed + skipped else 0
