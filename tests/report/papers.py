"""Summaries as studies write them, with every verdict and every kind of claim."""

import json

from theodolite.core import (
    Choice,
    Claim,
    Kind,
    Number,
    Verdict,
    above,
    all_of,
    below,
    judge,
    known,
    near,
    our_margin,
    parse_summary,
    sampled,
    to_strict_json,
)
from theodolite.core.verdicts.claims import Ruling
from theodolite.report import render
from theodolite.report.finished_runs import JudgedRun

ROUNDING = below(1e-10, source="rounding", why="products of this length")


def page_of(runs):
    """The page of the one paper of these runs."""
    _, page = render(runs).values()
    return page


def saved(study, drawn):
    """A run of a study, read straight from its text."""
    svg = {
        f"figures/{one['name']}.svg": drawn[one["name"]][f"{one['name']}.svg"].decode()
        for one in study["figures"]
    }
    info = {
        "config": study["config"],
        "version": "0.1.0",
        "commit": "0123abc",
        "device": "cpu",
        "seeds": [0, 1, 2, 3],
    }
    summary = parse_summary(json.dumps(study), source="summary.json")
    return JudgedRun(summary=summary, info=info, svg=svg)


def spread(centre, error, n=16):
    """Values over networks with a given mean and standard error."""
    step = error * n**0.5 * ((n - 1) / n) ** 0.5
    return [centre + step * (1 if i % 2 else -1) for i in range(n)]


def claim(name, place, statement, judged, numbers, rival="", **more):
    """A claim and its verdict as a summary keeps them.

    ``own`` is what the run's own rows say where ``judged`` is of a committed run.
    """
    declared = Claim(
        name=name,
        place=place,
        statement=statement,
        test=lambda both: judged,
        rival=rival,
        kind=more.get("kind", Kind.CLAIM),
        printed=more.get("printed", ""),
        corrected=more.get("corrected", ""),
        choices=more.get("choices", ()),
    )
    asides = {key: Number(*pair) for key, pair in numbers.items()}
    counts = Ruling(judged=judged, corrected=more.get("right"), asides=asides)
    own = more.get("own")
    verdict = (
        Verdict(claim=declared, own=counts)
        if own is None
        else Verdict(claim=declared, own=Ruling(judged=own), committed=counts)
    )
    return to_strict_json(verdict.to_dict())


def study(paper, name, title, summary, claims, **more):
    return {
        "format": 1,
        "paper": paper,
        "study": {
            "name": name,
            "title": title,
            "summary": summary,
            "departures": more.get("departures", []),
        },
        "scale": "quick",
        "judged": more.get("judged", "2026-03-02T10:00:00Z"),
        "command": f"theodolite run {paper['name']}/{name} --scale quick",
        "cost": {"wall_s": 12.1, "cpu_s": 23.9, "passes": 20480},
        "claims": claims,
        "comparison": more.get("comparison", []),
        "figures": more.get("figures", []),
        "config": more.get("config", {"widths": [10], "depths": [2, 4, 8, 16]}),
    }


def compared(label, predicted, measured, error, predicted_error=None):
    return {
        "label": label,
        "predicted": predicted,
        "predicted_error": predicted_error,
        "measured": measured,
        "error": error,
    }


def figure(name, caption):
    files = [f"figures/{name}.{kind}" for kind in ("svg", "png", "pdf")]
    return {"name": name, "caption": caption, "files": files}


LI = {
    "name": "li2016demystifying",
    "title": "Demystifying ResNet",
    "authors": "Li, Jiao, Han & Weissman",
    "year": 2016,
    "studies": ["training_error", "initial_condition", "final_losses"],
    "story": [
        {
            "title": "The point at zero",
            "text": "What does the Hessian at $W = 0$ look like?",
            "findings": [
                {
                    "claim": "initial_condition/two_shortcut_constant",
                    "numbers": ["slope"],
                },
                {"claim": "initial_condition/three_shortcut_zero"},
                {"claim": "initial_condition/transposed_block"},
            ],
        },
        {
            "title": "What is reached",
            "text": "Which networks end lower?",
            "findings": [
                {"claim": "training_error/two_beats_three"},
                {"claim": "final_losses/lowest"},
            ],
        },
    ],
}
ORHAN = {
    "name": "orhan2018skip",
    "title": "Skip connections eliminate singularities",
    "authors": "Orhan & Pitkow",
    "year": 2018,
}

INITIAL = study(
    LI,
    "initial_condition",
    "Conditioning at the initial point",
    "At the zero initial point of a linear network with shortcuts of depth $n$, the "
    "Hessian is $H_{kl}=(Q_k\\Sigma Q_l^\\top)\\otimes(P_k^\\top P_l)$, and for $n=2$ "
    "its condition number does not depend on the number of units $R=L/n$. We build "
    "the network, take the dense Hessian of the mean squared loss and read off "
    "$|\\lambda|_{\\max}/|\\lambda|_{(0.1)}$.\n\nNetworks are drawn afresh for each "
    "seed; errors are standard errors over 16 of them.",
    [
        claim(
            "two_shortcut_constant",
            "Theorem 2, Eq 9",
            "With 2-shortcuts and zero weights the condition number is "
            "$\\mathrm{cond}(H)=\\sqrt{\\mathrm{cond}(M^\\top M)}$, with "
            "$M=\\Sigma^{XX}-\\Sigma^{YX}$, at every depth $L$.",
            all_of(
                [
                    judge(known("gap of the closed form", 4.1e-13, 2e-13), ROUNDING),
                    judge(
                        sampled("slope of the ratio", spread(0.001, 0.002)),
                        our_margin(0.05, "a factor of 1.2 over all depths"),
                    ),
                ]
            ),
            {
                "ratio at depth 2": (1.4698213, 1.2e-12),
                "ratio at depth 16": (1.4698213, 3.4e-12),
                "slope against $\\log L$": (2.1e-14, 1.7e-13),
            },
            rival="a condition number that grows with depth, as the plain network's "
            "does: slope $1.02 \\pm 0.03$",
        ),
        claim(
            "one_shortcut_rank",
            "Section 3, below Eq 7",
            "With 1-shortcuts the Hessian at zero has rank at most $d^2$ of $Ld^2$, "
            "so its ordinary condition number is infinite.",
            judge(known("largest further eigenvalue", 3e-16, 1e-15), ROUNDING),
            {"rank": (100, None), "condition number": (None, None)},
            rival="full rank",
        ),
        claim(
            "three_shortcut_zero",
            "Theorem 3, stationary part",
            "For $n \\geq 3$ the zero point is a stationary point of order $n-1$: "
            "every derivative below order $n$ vanishes.",
            judge(sampled("largest derivative", spread(0.2, 0.3, 4)), below(0.5)),
            {"largest derivative": (3.2e-17, 4e-17)},
            rival="a Hessian that is not zero",
        ),
        claim(
            "transposed_block",
            "Appendix A, Eq 22",
            "The off-diagonal block of the Hessian is printed with its factors "
            "transposed; dimensions agree, so the slip is easily missed.",
            judge(known("gap of the printed block", 0.8312, 0.0021), ROUNDING),
            {"printed, gap": (0.8312, 0.0021), "corrected, gap": (1.1e-15, None)},
            rival="both blocks agree up to the order of the weights",
            kind=Kind.ERRATUM,
            right=judge(known("gap of the corrected block", 1.1e-15, 1e-15), ROUNDING),
            printed="$H_{kl}=(P_k\\Sigma P_l^\\top)\\otimes(Q_k^\\top Q_l)$",
            corrected="$H_{kl}=(Q_k\\Sigma Q_l^\\top)\\otimes(P_k^\\top P_l)$",
        ),
    ],
    departures=[
        "The paper's data are whitened MNIST; here they are the 64 pixels of digits.",
        "Eigenvalues are dense, not by Lanczos, up to $d=10$.",
    ],
    comparison=[
        compared("ratio at depth 2", 1.4698213, 1.4698213, 1.2e-12),
        compared("ratio at depth 4", 1.4698213, 1.4698213, 1.9e-12),
        compared("ratio of the plain network, $L=16$", 182.4, 179.6, 3.2, 1.1),
        compared("smallest $|\\lambda|$", 1.3e-7, 1.31e-7, 4e-9),
        compared("condition number, 1-shortcut", None, None, None),
    ],
    figures=[
        figure(
            "condition",
            "Condition number $|\\lambda|_{\\max}/|\\lambda|_{(0.1)}$ against depth. "
            "Lines: prediction; points: measurement, mean and standard error over 16 "
            "networks; hollow points are lower bounds.",
        )
    ],
    config={
        "widths": [10],
        "depths": [2, 4, 8, 16],
        "n_seeds": 16,
        "init_scale": 0.01,
        "dataset": "digits",
        "whiten": True,
    },
)

TRAINING = study(
    LI,
    "training_error",
    "Training error over depth",
    "Networks with 2-shortcuts reach the same error at every depth from near-zero "
    "weights, where Xavier-initialised plain networks do not.",
    [
        claim(
            "two_beats_three",
            "Figure 5",
            "2-shortcut networks end with lower training error than 3-shortcut "
            "networks of the same depth.",
            judge(sampled("paired difference", spread(-0.021, 0.0041)), above(0)),
            {"difference": (0.00213, 0.0041), "p-value": (0.6124, None)},
            rival="no difference between 2 and 3",
        ),
        claim(
            "depth_invariance",
            "Figure 4, left panel",
            "The final error of 2-shortcut networks does not grow with depth: its "
            "slope on logarithmic axes is $\\leq 0.05$.",
            judge(sampled("slope", spread(0.0104, 0.0093)), below(0.05)),
            {"slope": (0.0104, 0.0193)},
            rival="the plain network's slope, $0.71 \\pm 0.05$",
            choices=(Choice(what="deep is $L \\geq 8$", why="the paper does not say"),),
        ),
        claim(
            "shallow_too",
            "Beyond figure 4",
            "The same is true of networks with one unit.",
            judge(sampled("slope of one unit", spread(0.3, 0.02)), near(0, 0.05)),
            {},
            kind=Kind.BEYOND,
        ),
    ],
    figures=[
        figure(
            "spectrum",
            "Density of the Hessian's eigenvalues $\\lambda$ after training.",
        )
    ],
    judged="2026-03-01T08:30:00Z",
)

SINGULAR = study(
    LI,
    "degenerate_directions",
    "Degenerate directions and training speed",
    "The fraction of degenerate eigenvalues is lower with skip connections.",
    [
        claim(
            "fewer_degenerate",
            "Figure 2b",
            "Residual networks have fewer degenerate eigenvalues than plain ones.",
            judge(sampled("plain less residual", spread(0.231, 0.016)), above(0)),
            {"residual": (0.112, 0.008), "plain": (0.343, 0.014)},
            rival="equal fractions",
            own=judge(sampled("plain less residual", spread(0.2, 0.2, 4)), above(0)),
        ),
        claim(
            "sign_of_overlap",
            "Eq 4",
            "The overlap is printed without its absolute value.",
            judge(sampled("least overlap", spread(-0.001, 0.004)), above(0)),
            {"least overlap": (-0.0, 0.004)},
            kind=Kind.ERRATUM,
            printed="$\\langle u, v\\rangle / (\\|u\\|\\,\\|v\\|)$",
            corrected="$|\\langle u, v\\rangle| / (\\|u\\|\\,\\|v\\|)$",
        ),
    ],
)

# Of one paper, and so on one page; or of two.
STUDIES = (INITIAL, TRAINING, SINGULAR)
OF_TWO_PAPERS = (INITIAL, TRAINING, {**SINGULAR, "paper": ORHAN})
CLAIMS = [one for each in STUDIES for one in each["claims"]]
