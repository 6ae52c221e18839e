"""Claims of figure 3 and table 2 on networks trained on CIFAR-100."""

from theodolite.core import Claim

from ..shared.image_claims import LOST_COUNT, SPEED, faster, same_accuracy

BEST = 0.05  # appendix C: "the optimal learning rate, … 0.05 for CIFAR100"

CLAIMS = (
    Claim(
        name="faster-on-cifar100",
        place="Figure 3, section 6.3",
        statement="At rate 0.05, where the original network does best, the modified "
        "one trains faster on CIFAR-100.",
        test=faster(SPEED, rate=BEST, dataset="cifar100"),
        rival="curves that cross or coincide, or a slower modified network",
        choices=(LOST_COUNT,),
    ),
    Claim(
        name="same-accuracy-on-cifar100",
        place="Section 6.3, table 2",
        statement="Test accuracies of the two networks do not differ on CIFAR-100, at "
        "the rate of figure 3.",
        test=same_accuracy(BEST, dataset="cifar100"),
        rival="a difference of half a point or more",
        choices=(LOST_COUNT,),
    ),
)
