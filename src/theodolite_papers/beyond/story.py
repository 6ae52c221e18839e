"""Our questions beyond the papers, and the verdicts that answer them.

The text asks questions and the verdicts answer them: no result is stated here.
"""

from theodolite.studies import Chapter, Finding

STORY = (
    Chapter(
        "Which networks train",
        "Li et al. (2016) argue that the starting point decides. We test more than "
        "they do: loss, gradient and Hessian at the first step foretell, over depth, "
        "shortcut length, scale and learning rate, whether a run trains, stays or "
        "diverges, and the runs are then made.",
        (
            Finding("phase_diagram/phases-foretold", ("share right",)),
            Finding("phase_diagram/most-foretold", ("share right",)),
            Finding("phase_diagram/errors-are-late-divergence"),
            Finding("phase_diagram/two-shortcut-trains-widest"),
        ),
    ),
    Chapter(
        "Norms on a schedule",
        "Section 6.1 of Poggio and Liao (2020) asks whether $\\rho(t)$, controlled "
        "apart from the directions, could lead to good solutions more reliably and "
        "from any start. We built an optimizer that does it, let norms grow as "
        "equation 28 has them grow, with batch norm and without, and set it beside "
        "batch norm with weight decay.",
        (
            Finding("scheduled_norm/grown-errs-no-more"),
            Finding("scheduled_norm/grown-has-wider-margins"),
            Finding("scheduled_norm/grown-forgets-its-start"),
            Finding("scheduled_norm/bare-errs-no-more"),
            Finding("scheduled_norm/bare-has-wider-margins"),
            Finding("scheduled_norm/bare-forgets-its-start"),
            Finding("scheduled_norm/growth-beats-holding"),
            Finding("scheduled_norm/decay-keeps-the-start"),
        ),
    ),
    Chapter(
        "Is it because of spectra?",
        "A cause can be tested by moving it. The added map can be scaled, turned, and "
        "put elsewhere, with weights and images as they are. Each change moves the "
        "spectrum and the speed; if the one acts by the other, they move together.",
        (
            Finding("why_it_helps/scale-shifts-blocks"),
            Finding("why_it_helps/more-is-faster"),
            Finding("why_it_helps/blocks-foretell-speed"),
            Finding("why_it_helps/scores-foretell-speed"),
            Finding("why_it_helps/directions-do-not-matter"),
            Finding("why_it_helps/branch-keeps-the-spectrum"),
        ),
    ),
    Chapter(
        "The curvature of all samples",
        "Batch normalisation of the theory takes the statistics of all samples, and "
        "the curvature that bounds its step is of the loss of all of them. Batches "
        "have statistics of their own, so that their losses do not even add up to it. "
        "We read the largest eigenvalue of the whole set beside those of batches, tell "
        "what is due to few samples from what is due to their statistics, and look "
        r"which of them descent brings to $2(1 + \mu)/\eta$.",
        (
            Finding("whole_set_curvature/batches-overestimate"),
            Finding("whole_set_curvature/alike-at-the-start"),
            Finding("whole_set_curvature/twofold-late"),
            Finding("whole_set_curvature/gap-grows"),
            Finding("whole_set_curvature/samples-not-statistics"),
            Finding("whole_set_curvature/batches-together-suffice"),
            Finding("whole_set_curvature/constant-statistics-suffice"),
            Finding("whole_set_curvature/running-statistics-suffice"),
            Finding("whole_set_curvature/descent-at-the-edge"),
            Finding("whole_set_curvature/batches-misplace-the-edge"),
            Finding("whole_set_curvature/stochastic-below-the-edge"),
            Finding("whole_set_curvature/stochastic-batches-at-the-edge"),
        ),
    ),
    Chapter(
        "Does the certificate last?",
        "MacDonald et al. (2023) bound the ratio of the squared gradient to the loss "
        "below, layer by layer, and theorem 4.7 wants skips and normalised branches. "
        "The bound may vanish as weights grow. We follow it along training beside the "
        "true ratio, with skips and norms, with one of them, and with neither.",
        (
            Finding("certified_ratio/both-stay"),
            Finding("certified_ratio/skips-alone-fall"),
            Finding("certified_ratio/norms-alone-fall"),
            Finding("certified_ratio/neither-falls"),
            Finding("certified_ratio/norms-keep-it"),
            Finding("certified_ratio/certified-orders-true"),
        ),
    ),
)
