r"""Figure 3: mean Frobenius norm of the weights along training, by depth.

Li et al. (2016), Demystifying ResNet, figure 3, section 4.1 and appendix B. The claim
in our words: 2-shortcut networks that start near zero stay near zero, the deeper the
nearer, along training and at its end, with or without ReLU at mid.

Departures: see ``STUDY.departures``. Cost: about 15 s of processor time at QUICK; at
PAPER five minutes for linear networks, and three hours for ReLU networks, or ten
minutes of a GPU.
"""

from theodolite.studies import Committed, CommittedRun, Drawing, Study

from .claims import CLAIMS
from .combine import combine
from .config import PRESETS, cells
from .figure import compare, draw_norms, draw_scaling, norms_table, scaling_table
from .measure import measure
from .predict import predict

STUDY = Study(
    title="Figure 3: norms of the weights along training, by depth",
    summary=(
        "How far does a 2-shortcut network travel from zero? The measure is the mean "
        "Frobenius norm of its matrices along full-batch gradient descent on whitened "
        "digits, from a hundredth of Xavier weights. Theory says that all depths leave "
        "zero alike, along the singular vectors of $M$, and that a network of $R$ "
        "units needs norms of order $R^{-1/2}$: each unit does a share $1/R$ of the "
        "work, with two matrices. Networks are trained at rates up to those that lose "
        "them."
    ),
    presets=PRESETS,
    cells=cells,
    predict=predict,
    measure=measure,
    combine=combine,
    compare=compare,
    claims=CLAIMS,
    datasets=lambda config: (config.dataset,),
    drawings=(
        Drawing(
            "norms",
            "Mean Frobenius norm of the weight matrices along training, at the highest "
            "rate at which no network diverges. Lines: mean over networks, bands one "
            "standard deviation. Dashed: growth near zero, the same at every depth.",
            norms_table,
            draw_norms,
        ),
        Drawing(
            "scaling",
            "Mean norm at the end of training against the number of residual units, "
            "each depth at its best rate; both axes are logarithmic. Hollow: the best "
            "rate is the last tried, so that it is not known. Dashed: $R^{-1/2}$ "
            "through the last point.",
            scaling_table,
            draw_scaling,
        ),
    ),
    committed=Committed(
        CommittedRun(
            "theodolite_papers.li2016demystifying", "weight_norms", free=("depths",)
        ),
        ("quantity", "trial", "lr", "step"),
    ),
    departures=(
        "The paper gives neither depths nor rates: depths 4 to 64 are trained at rates "
        "from 0.1 up to 12.8. Depths are compared at one rate, the highest at which no "
        "network diverges; their own best rates are a check beyond the paper.",
        "At the quick scale verdicts rest on a committed run at paper scale (60,000 "
        "digits, 10 networks a depth and rate); the run itself has 4, on 5,000 digits, "
        "of which ReLU networks see every tenth.",
        "Zero initialisation means a hundredth of Xavier weights, as in section 4.1: "
        "at exactly zero the gradient vanishes.",
    ),
)
