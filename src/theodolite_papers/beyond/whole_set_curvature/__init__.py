r"""Beyond theorem 4.5: curvature of the whole set, and what batches show of it.

Batch normalisation couples samples: a loss over all of them by statistics of all of
them is not a mean of losses of batches, so that no theorem says how the largest
eigenvalues $\lambda_{\max}$ of batches compare with that of the whole set. We read both
along full-batch and stochastic descent, tell what is due to few samples from what is
due to their statistics, and ask which of the two sits at the edge of stability, $2(1 +
\mu)/\eta$.

Beyond MacDonald et al. (2023), On skip connections and normalisation layers in deep
optimisation: batch normalisation of its theory (example A.3, theorem 4.5) takes the
statistics of all samples, and its step is bounded by the curvature of the loss of all
of them; its experiments, and most tools that read curvature, take 128 at a time. We
read the largest eigenvalue of the Hessian over the whole set, by statistics of the
whole set and differentiated through them, beside what batches say. Cost: 14 s of
processor time at QUICK; PAPER needs a GPU.
"""

from theodolite.studies import Committed, Drawing, gather_study

from . import figure
from .config import RUN

STUDY = gather_study(
    __name__,
    revision=2,
    datasets=lambda config: (config.dataset,),
    splits=("train", "test"),
    committed=Committed(RUN, ("quantity", "reading", "moment"), on="CIFAR-10"),
    drawings=(
        Drawing(
            "courses",
            "Largest eigenvalue of the Hessian along training over the curvature that "
            "descent stands (dotted): of the whole set by its statistics, and the mean "
            "of single batches by their own. Geometric means over networks, with their "
            "standard deviations; of CIFAR-10 three networks of 20 layers a rule, else "
            "four of one block.",
            figure.table,
            figure.draw_courses,
        ),
        Drawing(
            "corners",
            "The same after training, by the samples that it is read over and by whose "
            "statistics: differentiated, or constant as running statistics are. The "
            "fourth to sixth lines are what a network in evaluation mode shows. Of "
            "stochastic descent three are read.",
            figure.table,
            figure.draw_corners,
        ),
    ),
    departures=(
        "The paper has no such experiment. Its networks are PreAct-ResNet18; these are "
        "pre-activation ResNets of 20 layers and 16, 32 and 64 channels, trained "
        "without augmentation, decay and schedule, so that there is one loss of the "
        "whole set and one edge.",
        "Full-batch descent trains on 5,000 images, all of which pass at every step; "
        "they are its whole set. Stochastic descent has all 50,000.",
        "Readings that tell samples from statistics are made of full-batch descent, "
        "after training. Of a set, 16 batches are read one by one.",
        "On a card networks are trained in TF32 and read in float32.",
        "An eigenvalue is known to a hundredth if Lanczos missed none: its error is "
        "the residual squared over the gap. Rounding is looked into once a moment.",
        "The quick scale has narrow networks, 128 digits of 8×8 pixels and batches of "
        "16, so that it needs no files and no GPU. It trains in float64: descent at "
        "the edge of stability magnifies rounding, and two verdicts in float32 went "
        "with it.",
        "A run on a GPU that is taken up again trains its networks anew, where kernels "
        "need not give the same bits: moments of one network are then those of two.",
    ),
)
