"""Every study at QUICK: the verdicts that the README and the errata quote."""

import pytest

from theodolite.studies import catalogue, plan_study, run_study

# Errata, as printed.
REFUTED = {
    "small_weights/bracket-under-the-root",
    "small_weights/units-not-shortcuts",
    "small_weights/labels-repeat",
    "weight_norms/linear-optimum-is-singular",
    "vanishing_partials/lemma-3-whole-unit",
    "around_zero/biases-flatten",
    "around_zero/biases-couple-units",
    "around_zero/relu-half-space-moments",
    "around_zero/relu-has-no-curvature",
    "around_zero/zero-is-a-saddle",
    "initial_condition/one-shortcut-explodes",
    "initial_condition/conventions-unstated",
    "along_training/ratio-diverges",
    "path_counts/least-square-norm",
    "path_weights/sum-from-one",
    "path_weights/factor-of-the-lines",
    "path_weights/legendre-from-zero",
    "path_weights/intervals-of-scale",
    "path_weights/normaliser-depends-on-scale",
    "path_weights/derivative-lacks-the-scale",
    "path_weights/wide-is-not-deep",
    "spin_glass_field/one-factor-short",
    "critical_points/eq-48",
    "two_degree_losses/growth-is-strict",
    "two_degree_losses/sign-of-the-derivative",
    "two_degree_losses/gradient-left-out",
    "two_degree_losses/deep-square-twice",
    "two_degree_losses/inverse-size-turns",
    "batch_norm_scales/squares-add-up",
    "norm_flow/decay-for-a-multiplier",
    "norm_flow/projected-twice",
    "norm_flow/rate-of-squares",
    "norm_flow/depth-counted-twice",
    "norm_flow/sphere-repels",
    "norm_flow/norm-grows-monotonically",
    "norm_flow/smallest-norm-first",
    "norm_flow/growth-is-logistic",
    "norm_flow/deep-is-slow",
    "norm_flow/rest-without-pull",
    "norm_flow/norm-at-least-one",
    "norm_flow/noise-lowers-the-norm",
    "norm_flow/rest-at-kinks",
    "linear_flows/speeds-of-a-linear-network",
    "linear_flows/one-step-expands",
    "linear_flows/contributions-are-positive",
    "linear_flows/sum-is-not-each",
    "linear_flows/margins-become-equal",
    "normalised_layers/projection-left-out",
    "normalised_layers/mean-neglected",
    "normalised_layers/projector-needs-the-batch",
    "normalised_layers/root-of-the-rows",
    "margins_and_bounds/ramp-is-above",
    "stationary_layers/collapse-at-rest",
    "stationary_layers/diagonal-is-preserved",
    "stationary_layers/diagonal-weights",
    "stationary_layers/equal-projections",
    "stationary_layers/every-sample",
    "stationary_layers/features-are-the-last-layer",
    "stationary_layers/means-are-opposite",
    "stationary_layers/orthogonal-matrices",
    "stationary_layers/output-at-rest",
    "stationary_layers/random-is-orthogonal",
    "stationary_layers/sum-over-samples",
    "trained_norms/start-is-not-zero",
    "trained_norms/figure-1-has-decay",
    "image_tables/one-rate-in-table-2",
    "image_tables/accuracies-differ-in-print",
    "image_tables/trials-left-out",
}
# What is not so: claims of the papers, and what we asked beyond them.
FAILURES = {
    "scheduled_norm/grown-has-wider-margins",
    "stationary_layers/recurrent-is-forward",
    "stationary_layers/training-orthogonalises",
    "measured_ensemble/beta-is-rho",
    "batch_norm_scales/scales-grow",
    "batch_norm_scales/later-stages-higher",
    "batch_norm_scales/first-layer-differs",
    "batch_norm_scales/standard-first-layer-differs",
    "weight_norm_growth/norm-grows-steadily",
    "depth_along_training/unit-scales-extremely-shallow",
    "depth_along_training/early-gradients-shallow",
    "depth_along_training/scale-is-lambda",
    "depth_along_training/deeper-with-batch-norm",
    "depth_along_training/deeper-without-norm",
    "depth_along_training/deeper-and-deeper",
    "depth_along_training/scales-are-the-mechanism",
    "depth_along_training/images-initially-below-half",
    "depth_along_training/images-extremely-shallow",
    "depth_along_training/images-deeper-with-batch-norm",
    "depth_along_training/images-deeper-and-deeper",
    "depth_along_training/images-scales-are-the-mechanism",
    "depth_along_training/gradients-deeper-with-batch-norm",
    "depth_along_training/gradients-deeper-and-deeper",
    "depth_along_training/gradients-moved-by-scales",
    "depth_along_training/deeper-late",
    "depth_along_training/gains-foretell-depth",
    "along_training/better-at-another-depth",
    "final_losses_linear/two-shortcut-loss-invariant",
    "phase_diagram/errors-are-late-divergence",
    "image_tables/ends-lower-in-print",
}
UNDECIDED = {
    "scheduled_norm/grown-forgets-its-start",
    "scheduled_norm/bare-errs-no-more",
    "scheduled_norm/bare-has-wider-margins",
    "scheduled_norm/bare-forgets-its-start",
    "scheduled_norm/growth-beats-holding",
    "critical_points/counts-within-a-tenth",
    "weight_norm_growth/growth-is-first-order",
    "depth_along_training/gradients-deeper-without-norm",
    "depth_along_training/paper-s-beta-foretells-depth",
    "weight_norms/norms-fall-at-best-rates",
    "along_training/better-at-every-loss",
    "along_training/one-shortcut-like-orthogonal",
    "along_training/index-always-smaller",
    "final_losses_relu/two-shortcut-higher-rates-relu",
    "shortcut_depth_cifar/only-two-gains-beyond-400",
    "shortcut_depth_cifar/longer-than-four-worse",
    "shortcut_depth_cifar/only-two-gains-below-400",
    "shortcut_depth_cifar/two-shortcut-best-when-deep",
    "phase_diagram/most-foretold",
    "phase_diagram/two-shortcut-trains-widest",
    "image_tables/faster-at-the-best-rate",
    "image_tables/consistently-faster",
    "image_tables/order-of-final-losses",
    "image_tables/same-accuracy",
    "image_tables/best-rate",
    "image_tables/original-diverges",
    "image_tables/modified-never-diverges",
    "image_tables/losses-as-printed",
    "image_tables/accuracies-as-printed",
    "image_tables/rates-matter",
    "image_tables/batch-statistics-alike",
    "image_tables_cifar100/faster-on-cifar100",
    "image_tables_cifar100/same-accuracy-on-cifar100",
    "image_tables_imagenet/faster-on-imagenet",
    "image_tables_imagenet/better-on-imagenet",
    "image_tables_imagenet/modified-fails-at-0.2",
    "image_tables_imagenet/better-in-print",
}


def wanted(study, claim):
    """Return the verdict that the documents quote."""
    name = f"{study}/{claim}"
    if name in UNDECIDED:
        return "UNDECIDED"
    return "FAILS" if name in REFUTED | FAILURES else "HOLDS"


def test_every_verdict_that_is_quoted_is_of_a_claim():
    kinds = {
        f"{entry.name}/{claim.name}": str(claim.kind)
        for entry in catalogue()
        for claim in entry.study.claims
    }
    assert kinds.keys() >= REFUTED | FAILURES | UNDECIDED
    assert {name for name, kind in kinds.items() if kind == "erratum"} == REFUTED


@pytest.mark.slow
@pytest.mark.parametrize("entry", catalogue(), ids=lambda e: e.full_name)
def test_verdicts_at_quick(entry, tmp_path):
    plan = plan_study(entry, scale="quick")
    claims = run_study(plan, root=tmp_path).summary.claims
    assert {c.claim: c.verdict for c in claims} == {
        c.name: wanted(entry.name, c.name) for c in entry.study.claims
    }
