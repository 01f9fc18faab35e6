"""The tables of `ci/gate lab replay`, as Markdown: what was recorded, the rules, the goals."""

import statistics

import numpy as np

from tilegate_ci.core.markdown import table
from tilegate_ci.judge.paired import MIN_PAIRS, PAIRS
from tilegate_ci.lab.proof.recording import KEPT_SAMPLES
from tilegate_ci.lab.proof.replay import SIZES, Replay, figures
from tilegate_ci.lab.proof.runs import SCREEN, SEED, Rate, pairs_of, percent, screen_of


def markdown(replay: Replay) -> str:
    draw = np.random.default_rng(SEED)
    parts = [
        _recorded(replay),
        _independent(replay),
        _rules(replay, draw),
        _notes(replay),
        [f"- {rule.name}: {rule.note}." for rule in replay.rules if rule.note],
        _figures(replay),
        _mutations(replay),
        _scenarios(replay),
        _components(replay),
    ]
    return "\n\n".join("\n".join(lines) for lines in parts if lines)


def _recorded(replay: Replay) -> list[str]:
    parts = [
        f"{s.name} ({len(s.suite)} of the suite, {sum(map(len, s.arms.values()))} of single rungs"
        + (f", {s.void} void" if s.void else "")
        + ")"
        for s in replay.sittings
    ]
    benchmarks = len(replay.sittings[0].names)
    made_on = "; ".join(dict.fromkeys(s.made_on for s in replay.sittings))
    sittings = "; ".join(parts)
    return [f"Recorded processes by sitting, {benchmarks} benchmarks each: {sittings}. {made_on}."]


def _independent(replay: Replay) -> list[str]:
    alone = replay.independent
    text = (
        f"Independent gate runs on unchanged code: {alone.runs}, of {alone.processes} processes on "
        f"{alone.machines} machines; {alone.false_blocks} blocked something, {alone.confirmed} "
        f"needed pairs, {alone.incomparable} were incomparable. By these alone, at 95 %, at most "
        f"{percent(alone.bound)} of gate runs block without a reason."
    )
    if alone.unfinished:
        text += (
            f" Of {alone.unfinished} of them the sitting ended before the run did; the bound takes "
            "them for false blocks."
        )
    return [text]


def _scenarios(replay: Replay) -> list[str]:
    heads = ["simulated", "false blocks", "2 % blocked, where the margin is 1 %"]
    heads += ["at any margin", "inconclusive", "processes of the suite that the screen takes"]
    rows = [
        (
            model.scenario.name,
            f"{model.false_blocks} of {model.runs}",
            percent(model.narrow_share),
            percent(model.detected_anywhere[2.0] / model.runs),
            percent(model.inconclusive),
            f"{model.screened:.2f}",
        )
        for model in replay.scenarios
    ]
    return table(heads, rows)


def _rules(replay: Replay, draw: np.random.Generator) -> list[str]:
    heads = ["rule", "false blocks of whole runs, identical code", "independent runs"]
    heads += [f"{size:g} % blocked" for size in SIZES] + ["inconclusive"]
    rows, gate = [], replay.rules[0]
    for rule in replay.rules:
        independent = replay.independent.runs if rule is gate else rule.false_blocks.independent
        cells = [rule.name, _rate(rule.false_blocks, draw), str(independent)]
        cells += [_rate(rule.detected[size], draw) for size in SIZES]
        rows.append([*cells, _rate(rule.inconclusive, draw) if rule.inconclusive else ""])
    model = replay.simulation
    cells = ["*Tilegate, simulated*", percent(model.false_blocks / model.runs), str(model.runs)]
    cells += [percent(hit / total) if total else "-" for hit, total in model.detected.values()]
    rows.append([*cells, percent(model.inconclusive)])
    return table(heads, rows)


def _notes(replay: Replay) -> list[str]:
    gate = replay.rules[0]
    notes = [
        "In brackets 95 % intervals, bootstrapped over sittings. Detection counts benchmarks of "
        "the planted rung whose delta is 1 % in the baseline. Tilegate's runs start at each "
        "process of a sitting and so share processes; the independent ones above share none. They "
        "screen against another sitting's baseline. The other rules see what suits them best: two "
        "processes of one sitting, next to each other. A recording keeps at most "
        f"{KEPT_SAMPLES} replays of a process: with all of them compare.py and criterion would "
        "block more, the newer NVBench less.",
        "A cell is a benchmark in a sitting. Its runs share rounds, and the cells of a sitting "
        "share processes.",
    ]
    planted = sum(bool(count.total) for count in gate.detected[SIZES[0]].counts)
    if planted == 2:
        notes.append("Plants are of two sittings: their intervals are the range between those.")
    pairs = sorted({pairs_of(len(s.suite)) for s in replay.sittings})
    confirming = [str(count) for count in pairs if MIN_PAIRS <= count < PAIRS]
    if confirming:
        notes.append(
            f"On identical code {' or '.join(confirming)} pairs confirm, not {PAIRS}: a sitting "
            "has no more processes. Fewer pairs make false blocks likelier and true ones rarer."
        )
    planted_arms = [
        rounds for s in replay.sittings for arm, rounds in s.arms.items() if arm.plant_percent
    ]
    rounds = sorted({len(arm) for arm in planted_arms})
    for count in rounds:
        screened = screen_of(count)
        if screened:
            notes.append(
                f"Of {count} rounds of a planted rung {screened} screen and "
                f"{min(PAIRS, count - screened)} confirm; a gate run has {SCREEN} and {PAIRS}."
            )
    if any(r and not screen_of(len(r)) for s in replay.sittings for r in s.arms.values()):
        notes.append(
            f"With at most {MIN_PAIRS} rounds, as of the mutations, the processes that screen "
            "confirm too."
        )
    if gate.incomparable is not None and gate.incomparable.hits:
        share = f"{gate.incomparable.hits} of {gate.incomparable.total}"
        notes.append(f"Incomparable, as a canary had moved: {share} runs on identical code.")
    return [" ".join(notes)]


def _figures(replay: Replay) -> list[str]:
    words = {True: "yes", False: "**no**", None: "**not recorded**"}
    rows = [(f.name, f.goal, f.found, words[f.reached]) for f in figures(replay)]
    return table(("figure", "to reach", "found", "reached"), rows, left=4)


def _mutations(replay: Replay) -> list[str]:
    heads = ["mutation", "slow-down of the rung's benchmarks", "runs that block it"]
    heads += ["benchmarks blocked, of those slower by twice delta"]
    rows = []
    for mutation in replay.mutations:
        slower = sorted(100 * np.expm1(value) for value in mutation.slowdowns.values())
        spread = "-"
        if slower:
            spread = f"{statistics.median(slower):+.1f} % ({slower[0]:+.1f} to {slower[-1]:+.1f})"
        name = f"{mutation.rung}: {mutation.name.replace('_', ' ')}"
        rows.append([name, spread, _rate(mutation.runs), _rate(mutation.benchmarks)])
    return table(heads, rows, left=2) if rows else []


def _components(replay: Replay) -> list[str]:
    parts = replay.simulation.components
    what = "standard deviation of log(cuBLAS time / rung time)"
    rows = []
    for name, values in (
        ("left of a process' own replays in its median (rung's time)", parts.within),
        ("between processes of a sitting", parts.between_processes),
        ("between sittings", parts.between_sittings),
    ):
        middle, high = np.quantile(values, (0.5, 0.9))
        rows.append([name, percent(float(middle), 3), percent(float(high), 3)])
    return table([what, "median", "90 % of benchmarks below"], rows)


def _rate(rate: Rate, draw: np.random.Generator | None = None) -> str:
    if rate.share is None:
        return "-"
    interval = rate.interval(draw) if draw is not None else None
    around = f" [{100 * interval[0]:.3g}, {100 * interval[1]:.3g}]" if interval else ""
    return percent(rate.share) + around
