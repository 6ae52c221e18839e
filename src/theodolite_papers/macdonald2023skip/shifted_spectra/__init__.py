"""Figures 1 and 2: skips, singular values and speed.

The paper's hypothesis: a skip whose singular values are 1 shifts those of a composite
Jacobian upwards, and that training is faster for it. Figure 1 shows it for a random
matrix, whose law we know in the limit. Figure 2 has three networks that start at the
same weights: a chain, one with skips, and one whose projection $A$ is replaced by $I +
A$. All 320 singular values of the Jacobian from behind the stem to the scores are taken
in train mode over the first ten steps, and those of the two blocks without the readout
beside them, paired over trials; then from other initialisations. Along the training
those of $DF$, the derivative of the scores by all parameters, and the ratio of the
squared gradient to the loss are read.

MacDonald et al. (2023), On skip connections and normalisation layers in deep
optimisation, sections 6.1 and 6.2. Cost: half a minute of processor time at QUICK and
twenty minutes at PAPER.
"""

from theodolite.studies import Committed, CommittedRun, Drawing, gather_study

from . import figure

STUDY = gather_study(
    __name__,
    revision=2,
    datasets=lambda config: (config.dataset,),
    drawings=(
        Drawing(
            "linear",
            "Means of ten equal shares of the singular values of $500 \\times 500$ "
            "matrices with uniform entries, and of the same plus the identity, with "
            "standard deviations over matrices.",
            figure.linear_table,
            figure.draw_linear,
        ),
        Drawing(
            "networks",
            "Means of ten equal shares of the singular values, averaged over the first "
            "steps, and losses; means and standard deviations over trials. Left: from "
            "behind the stem to the scores, samples coupled. Middle: the two blocks "
            "alone, at statistics of the batch.",
            figure.network_table,
            figure.draw_networks,
        ),
        Drawing(
            "starts",
            "What adding skips to the chain (Res) and $I$ to the projection (ResAvg) "
            "changes from other starts, paired over trials, with standard errors: "
            "decimal logarithms of the ratio of mean singular values before the first "
            "step, and by how much the mean logarithm of the loss falls.",
            figure.start_table,
            figure.draw_starts,
        ),
    ),
    committed=Committed(
        CommittedRun.of_study(
            __name__,
            free=("n_seeds", "starts", "start_trials", "script_trials", "matrices"),
        ),
        ("quantity", "metric", "share", "step", "over", "shift", "stride", "map"),
    ),
    departures=(
        "Every trial draws 32 images of its own; the published script has one draw for "
        "all trials.",
        "Images are standardised, as the paper says of all its data; the published "
        "script does not, and a claim of its own says what that changes, from 8 "
        "trials with spectra at the first and the tenth step.",
        "The paper speaks of six convolutions; its script has five and the projection, "
        "and its sizes are used.",
        "Spectra are told by the means of ten equal shares in place of histograms.",
        "Jacobians of the two blocks are taken a sample, with statistics held at those "
        "of the batch, for four samples of the 32.",
        "At the quick scale verdicts rest on a committed run of 20 trials with spectra "
        "at ten steps, of $DF$ of 10 trials at eight; the run itself has 2 trials of "
        "16 images, with spectra at two.",
    ),
)
