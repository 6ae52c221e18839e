"""The page of findings: what every rule said of every network of the bay.

``python -m tests.known_failures.scores docs/findings.md`` writes it.
"""

import json
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from scipy.stats import binomtest

from tests.known_failures.evaluation import Visit, again, rounds
from tests.known_failures.pairs import PAIRS
from theodolite.runs import write_text
from theodolite.survey.advice.prescribing import advise
from theodolite.survey.advice.trials import try_advice
from theodolite.survey.findings.rule import Rule
from theodolite.survey.findings.rulebook import RULES, find
from theodolite.survey.records.finding import Advice

# Of every trial on the page.
SEEDS, STEPS = 4, 40
# Draws of all networks besides the one that the tables show; earlier ones were looked
# at while levels were chosen.
DRAWS = range(11, 15)

_HEAD = """\
# Findings

A finding is a number of a survey that lies beyond a threshold by more than its error.
`make findings` writes this page from surveys and from saved scores; only the figures of
other tools are copied.

A finding is "sick" or a "warning", which ask for action, or a "note", which is for
information and has no advice. The tables count a note as found. Branches stuck at zero,
and dead units in gates and in layers of fewer than 16 units, are notes, because sound
networks have them too. A survey praises a network only if every trained parameter gets
a gradient.
"""


_BAY = """\
## Networks that the rules were written for

Every rule below was tried on small networks of ours: pairs of a sick network and a
healthy twin that differ in one thing, and networks of common kinds with their usual
initial weights.
"""
_SEALED = """\
## Networks that the rules were not written for

Eight authors who saw neither rules nor code wrote broken training set-ups, each beside
a repaired twin, and sound ones. They were sealed, and each set was opened once, after
the last change of the rules that it judges: 60 faults and 154 sound set-ups of three
authors for the first rules, 61 and 100 of two authors for the second, then 64 and 130
of three authors for the third. Each was surveyed with its own data, loss,
optimiser and training step at the usual effort. A reader who did not know the rules
compared the first finding with the cause that the author had written down. Intervals
are Clopper and Pearson's at 95 %.

| | third rules | share | second rules | share | first rules | share | goal |
|---|---|---|---|---|---|---|---|
{rates}

With the third rules {words} Advice helps if, trained as the author does from three
seeds, it closes half of the gap to the repaired twin, and harms if it loses a tenth of
it. The set-ups are small and by few authors, and the third rules reach {reached} of the
six goals. What was missed is listed in `sealed_scores_3.json` in the folder
`tests/known_failures/authored` (and in `sealed_scores_2.json` and `sealed_scores.json`
for earlier rules).

The rules as they are now are fewer. After these rates were measured, all three sets
were looked at again, which is the second opening of the third. Checks that had fired on
none of the 185 faults were removed, except where this documentation promises them or a
paper of this project is about them (skips and branches). Checks that had alarmed as
often, or nearly, on sound set-ups were removed or became notes, and the causes of
five of the false alarms of the third set were repaired. So rates of the present rules
on these sets are not out of sample; they need other set-ups.
On the third set, for which they are no independent judge, the present rules detect
{alarms_broken} faults, alarm on {alarms_repaired} repaired twins and on {alarms_sound}
sound networks; the first advice helps on {helps} and harms on {harms}
(`sealed_scores_3_again.json`).

The second and the third set have 25 faults without a warning. At least six of them are
about what data or a loss mean: an event flag that says censored (twice), the levels of
two quantiles exchanged, a wrong likelihood of a mixture, codes of categories taken as
numbers, a real class that the loss ignores. The model, its batches and its first steps
then look like those of a sound training, so that no survey can tell. The rest had no
rule, and each author brings new ones.

Published tools for the same job, on 32 public questions (other faults than these, so
that the figures are not comparable one by one; none reports alarms on repaired
programs): causes named by DEFault 21, DeepFD 19, UMLAUT 13, AutoTrainer 6, DeepLocalize
5. An earlier version of this survey, with other rules, named 12 of the 32.
"""
_AUTHORED = Path(__file__).parent / "authored"
# What is counted: its name, the state of the set-up, the label and its value, the goal.
_COUNTED = (
    ("faults detected (a warning or worse)", "broken", "alarms", "", "≥ 95 %"),
    ("right cause listed first", "broken", "cause_first", "right", "≥ 80 %"),
    ("first advice helps", "broken", "advice", "helps", "≥ 75 %"),
    ("first advice harms", "broken", "advice", "harms", "≤ 2 %"),
    ("repaired twins alarmed", "repaired", "alarms", "", "≤ 4 %"),
    ("sound networks alarmed", "sound", "alarms", "", "≤ 2 %"),
)


def sealed_rates() -> str:
    """Return the rates on the sealed set-ups of other authors."""
    sets = [
        json.loads((_AUTHORED / f"sealed_scores{which}.json").read_text())
        for which in ("_3", "_2", "")
    ]
    rates = "\n".join(
        f"| {name} | {' | '.join(_rate(rows, *what) for rows in sets)} | {goal} |"
        for name, *what, goal in _COUNTED
    )
    third = sets[0]
    reached = sum(
        count >= share * len(values) if goal[0] == "≥" else count <= share * len(values)
        for _, *what, goal in _COUNTED
        for count, values in [_count(third, *what)]
        for share in [float(goal.split()[1]) / 100]
    )
    first, advice = (
        Counter(row[name] for row in third if row["state"] == "broken")
        for name in ("cause_first", "advice")
    )
    words = (
        f"{first['related']} of the other first findings name the right place or a "
        f"symptom and {first['wrong']} something else; {advice['instruction']} "
        "pieces of advice are instructions that a person must carry out and "
        f"{advice['none']} faults got none, which both count as not helping."
    )
    again = json.loads((_AUTHORED / "sealed_scores_3_again.json").read_text())
    now = {
        key: f"{count} of {len(values)}"
        for key, *what in (
            ("alarms_broken", "broken", "alarms", ""),
            ("alarms_repaired", "repaired", "alarms", ""),
            ("alarms_sound", "sound", "alarms", ""),
            ("helps", "broken", "advice", "helps"),
            ("harms", "broken", "advice", "harms"),
        )
        for count, values in [_count(again, *what)]
    }
    return _SEALED.format(rates=rates, words=words, reached=reached, **now)


def _count(
    rows: Sequence[dict], state: str, label: str, wanted: str
) -> tuple[int, list[Any]]:
    """Return how many set-ups have a value of a label, and the values of all.

    Any value counts where none is wanted.
    """
    values = [row[label] for row in rows if row["state"] == state]
    return sum(value == wanted if wanted else bool(value) for value in values), values


def _rate(rows: Sequence[dict], state: str, label: str, wanted: str) -> str:
    """Return a count and its share with an interval."""
    count, values = _count(rows, state, label, wanted)
    ends = binomtest(count, len(values)).proportion_ci(method="exact")
    share = f"{count / len(values):.1%} [{ends.low:.1%}, {ends.high:.1%}]"
    return f"{count} of {len(values)} | {share}"


def findings_page(
    visits: Sequence[Visit],
    repeated: Sequence[Visit],
    tried: Iterable[tuple[str, Advice]],
) -> str:
    """Return the page.

    Args:
        visits: Of all networks of the bay.
        repeated: Of networks drawn anew.
        tried: Names of pairs with the advice that was tried on the sick one.
    """
    parts = [_HEAD, sealed_rates(), _BAY, _tally(visits), _repeated(repeated)]
    parts += [_rules(visits)]
    parts += [_pairs(visits), _standards(visits), _trials(tried)]
    return "\n".join(parts)


def _tally(visits: Sequence[Visit]) -> str:
    sick = [v for v in visits if v.state == "sick"]
    others = [v for v in visits if v.state != "sick"]
    expected = sum(len(v.expected) for v in sick)
    told = sum(v.fired.get(rule) == "note" for v in sick for rule in v.expected)
    misses = [f"`{rule}` on {v.name}" for v in sick for rule in v.misses]
    alarms = [f"`{r}` on {v.name} ({v.state})" for v in visits for r in v.false_alarms]
    notes = sum(len(v.fired) - len(v.false_alarms) for v in others)
    return (
        f"{len(visits)} networks, {len(RULES)} rules, {len(visits) * len(RULES)} "
        "judgements.\n\n"
        "| | |\n|---|---|\n"
        f"| findings that had to be made | {expected} |\n"
        f"| found as notes | {told} |\n"
        f"| misses | {len(misses)}{_listed(misses)} |\n"
        f"| false alarms (sick or warning, not known to be true) | "
        f"{len(alarms)}{_listed(alarms)} |\n"
        f"| notes on the {len(others)} healthy networks | {notes} |\n"
    )


def _repeated(visits: Sequence[Visit]) -> str:
    """Count again on networks that nobody looked at when levels were chosen."""
    sick = [v for v in visits if v.state == "sick"]
    due = [(v, r) for v in sick for r in v.expected]
    misses = Counter(f"`{r}` on {v.name}" for v, r in due if r in v.misses)
    alarms = Counter(
        f"`{r}` on {v.name} ({v.state})" for v in visits for r in v.false_alarms
    )
    return (
        "Thresholds were chosen on these networks. The same networks with "
        f"{len(DRAWS)} other draws of weights and samples, {len(visits)} in all, on "
        "which no threshold was chosen:\n\n"
        "| | |\n|---|---|\n"
        f"| findings that had to be made | {len(due)} |\n"
        f"| misses | {misses.total()}{_counted(misses)} |\n"
        f"| false alarms, or true findings that nobody listed | {alarms.total()}"
        f"{_counted(alarms)} |\n"
    )


def _counted(counter: "Counter[str]") -> str:
    return _listed([f"{what} ({count}×)" for what, count in counter.most_common()])


def _listed(names: Sequence[str]) -> str:
    return f": {', '.join(names)}" if names else ""


def _rules(visits: Sequence[Visit]) -> str:
    lines = [
        "## Rules\n",
        "What each number is on the sick network and on its twin; in brackets how well "
        "the rule is founded.\n",
        "| rule | number | sick | threshold | twin | source |",
        "|---|---|---|---|---|---|",
    ]
    for rule in RULES:
        lines.append(_rule_line(rule, visits))
    return "\n".join(lines) + "\n"


def _rule_line(rule: Rule, visits: Sequence[Visit]) -> str:
    sick = next((v for v in visits if rule.name in v.expected), None)
    cells = ["", "", ""]
    if sick is not None:
        twin = next(v for v in visits if v.name == sick.name and v.state == "healthy")
        cells = _numbers(rule, sick, twin)
    study = f"; [`{rule.study}`](studies.md)" if rule.study else ""
    source = f"{rule.source}{study} ({rule.confidence})"
    return (
        f"| `{rule.name}` ({rule.severity}) | {rule.quantity} | {cells[0]} | "
        f"{cells[1]} | {cells[2]} | {source} |"
    )


def _numbers(rule: Rule, sick: Visit, twin: Visit) -> list[str]:
    evidence, other = rule.read(sick.survey), rule.read(twin.survey)
    if evidence is None:
        return ["not measured", "", ""]
    sign = ">" if evidence.above else "<"
    silent = "–" if other is None else str(other.figure)
    return [str(evidence.figure), f"{sign} {evidence.threshold:.3g}", silent]


def _pairs(visits: Sequence[Visit]) -> str:
    lines = [
        "## Pairs\n",
        "What was found on each sick network, what else is true of it, and what was "
        "said of its twin.\n",
        "| pair | what is wrong | twin | found | also found | on the twin |",
        "|---|---|---|---|---|---|",
    ]
    for pair in PAIRS:
        sick, twin = (
            v for v in visits if v.name == pair.name and v.state != "standard"
        )
        rules = [rule for rule in sick.expected if rule in sick.fired]
        lines.append(
            f"| {pair.name} | {pair.illness} | {pair.cure} | {_codes(rules)} | "
            f"{_codes(sick.others)} | {_codes(twin.fired)} |"
        )
    return "\n".join(lines) + "\n"


def _standards(visits: Sequence[Visit]) -> str:
    lines = [
        "## Networks of common kinds\n",
        "| network | parameters | found | praised for |",
        "|---|---|---|---|",
    ]
    for visit in visits:
        if visit.state == "standard":
            good = [f.rule for f in find(visit.survey) if f.severity == "good"]
            lines.append(
                f"| {visit.name} | {visit.survey.n_parameters:,} | "
                f"{_codes(visit.fired)} | {_codes(good)} |"
            )
    return "\n".join(lines) + "\n"


def _codes(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names) or "–"


def _trials(tried: Iterable[tuple[str, Advice]]) -> str:
    lines = [
        "## Advice, tried\n",
        f"Each piece of advice on a copy of the sick network: {STEPS} steps on the "
        f"same batches, {SEEDS} seeds. The difference is that of the loss, with the "
        "advice less without, with its least and largest value over the seeds. "
        "Networks without an optimiser of their own are trained by Adam at a rate of "
        "0.001.\n",
        "| pair | advice | difference | helped |",
        "|---|---|---|---|",
    ]
    for name, advice in tried:
        trial = advice.trial
        assert trial is not None
        span = f"{trial.difference:+.3g} [{trial.low:+.3g}, {trial.high:+.3g}]"
        told = trial.said if trial.difference != trial.difference else span
        lines.append(f"| {name} | {advice.title} | {told} | {trial.helped} |")
    return "\n".join(lines) + "\n"


def trials_of(visits: Iterable[Visit]) -> list[tuple[str, Advice]]:
    """Try the advice for what every sick network is in the bay for."""
    made = {pair.name: pair.sick for pair in PAIRS}
    trials: list[tuple[str, Advice]] = []
    for visit in visits:
        if visit.state == "sick":
            findings = [f for f in find(visit.survey) if f.rule in visit.expected]
            advice = advise(visit.survey, findings)
            patient = made[visit.name]()
            tried = try_advice(advice, patient, seeds=SEEDS, steps=STEPS)
            trials += [(visit.name, each) for each in tried if each.trial]
    return trials


def main(destination: str) -> None:
    """Go the rounds, try the advice and write the page."""
    visits = list(rounds())
    repeated = [visit for draw in DRAWS for visit in again(draw)]
    page = findings_page(visits, repeated, trials_of(visits))
    write_text(destination, page)


if __name__ == "__main__":
    main(sys.argv[1])
