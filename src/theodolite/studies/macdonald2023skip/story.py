"""What the paper argues, step by step, and which verdicts answer.

The prose asks and the verdicts answer: nothing here states a result.
"""

from theodolite.studies.story import Chapter, Finding

STORY = (
    Chapter(
        "An identity added to projections",
        "Where a ResNet changes its shape, its skip is a random 1×1 convolution $A$. "
        "Hypothesis 6.1 predicts that $I + A$, with $I$ an average pool scaled to "
        "singular values 1, trains faster, and the paper reports that it does so "
        "consistently, if modestly, at the same accuracy. We train both from the same "
        "weights on the same batches, at the paper's four rates, and count every run.",
        (
            Finding("image_tables/faster-at-the-best-rate"),
            Finding("image_tables/faster-at-first"),
            Finding("image_tables/consistently-faster"),
            Finding("image_tables/same-accuracy"),
            Finding("image_tables/order-of-final-losses"),
            Finding("image_tables/best-rate"),
            Finding("image_tables/original-diverges"),
            Finding("image_tables/modified-never-diverges"),
            Finding("image_tables/losses-as-printed"),
            Finding("image_tables/accuracies-as-printed"),
        ),
    ),
    Chapter(
        "What the printed tables say of themselves",
        "Means and deviations over ten trials allow tests of their own. We ask whether "
        "the modified network ends lower in every row, whether accuracies differ by "
        "more than chance, whether ten trials can have the mean that is printed at "
        "rate 0.2, and whether table 2 shows four rates at all.",
        (
            Finding("image_tables/ends-lower-in-print"),
            Finding("image_tables/accuracies-differ-in-print"),
            Finding("image_tables/trials-left-out"),
            Finding("image_tables/one-rate-in-table-2"),
            Finding("image_tables/rates-matter"),
            Finding("image_tables/batch-statistics-alike"),
            Finding("image_tables_imagenet/better-in-print"),
        ),
    ),
    Chapter(
        "CIFAR-100 and ImageNet",
        "The same comparison with a hundred classes, and with PreAct-ResNet50, "
        "momentum and weight decay. It is ready to run where the images are.",
        (
            Finding("image_tables_cifar100/faster-on-cifar100"),
            Finding("image_tables_cifar100/same-accuracy-on-cifar100"),
            Finding("image_tables_imagenet/faster-on-imagenet"),
            Finding("image_tables_imagenet/better-on-imagenet"),
            Finding("image_tables_imagenet/modified-fails-at-0.2"),
        ),
    ),
)
