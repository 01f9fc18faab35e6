"""What reports say of a fleet: its verdict, each model's, and what the shared budget changed."""

from tilegate_ci.judge.fleet import Fleet, Member
from tilegate_ci.judge.paired import ALPHA
from tilegate_ci.model import EXIT_MEANINGS
from tilegate_ci.report import render, templates

COLUMNS = ("verdict", "model", "exit code", "by itself", "found")


def word(member: Member) -> str:
    if member.verdict is not None:
        return render.result(member.verdict)
    return "not judged" if member.alone == 4 else "error"


def result(fleet: Fleet) -> str:
    return EXIT_MEANINGS[fleet.exit_code].split(":")[0]


def headline(fleet: Fleet) -> str:
    count = len(fleet.models)
    bad = [f"{member.name}: {word(member)}" for member in fleet.models if member.exit_code]
    if bad:
        verb = "do" if bad[1:] else "does"
        return f"{len(bad)} of {count} models {verb} not pass ({'; '.join(bad)})."
    return f"All {count} models pass."


def remarks(fleet: Fleet) -> list[str]:
    found = []
    if fleet.tests:
        found.append(
            f"One error budget for all models: the chance that unchanged code is blocked is at "
            f"most {100 * ALPHA:g} %, over {fleet.tests} tests, by Holm's method."
        )
    for member in fleet.models:
        if member.changed:
            found.append(
                f"The shared budget changed the verdict on {member.name}: inconclusive, by itself "
                f"regressed: {', '.join(member.changed)}."
            )
    return found


def cells(member: Member) -> dict[str, str]:
    return {
        "verdict": word(member),
        "model": member.name,
        "exit code": str(member.exit_code),
        "by itself": str(member.alone),
        "found": render.headline(member.verdict) if member.verdict else member.error,
    }


def console(fleet: Fleet, colour: bool = False) -> str:
    lines = [render.first_line(fleet.exit_code, headline(fleet), colour)]
    lines += [f"Exit {fleet.exit_code}, {EXIT_MEANINGS[fleet.exit_code]}", *remarks(fleet), ""]
    for member in fleet.models:
        own = "" if member.alone == member.exit_code else f", by itself {member.alone}"
        lines.append(f"{member.name}: exit {member.exit_code}{own}, {cells(member)['found']}")
    return "\n".join(lines) + "\n"


def markdown(fleet: Fleet) -> str:
    return templates.markdown(
        "fleet",
        result=result(fleet),
        headline=headline(fleet),
        code=fleet.exit_code,
        meaning=EXIT_MEANINGS[fleet.exit_code],
        remarks=remarks(fleet),
        columns=COLUMNS,
        rows=[cells(member) for member in fleet.models],
    )
