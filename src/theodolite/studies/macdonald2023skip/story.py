"""What the paper argues, step by step, and which verdicts answer.

The prose asks and the verdicts answer: nothing here states a result.
"""

from theodolite.studies.story import Chapter, Finding

STORY = (
    Chapter(
        "Do skips shift singular values upwards?",
        "The theory asks for Jacobians whose least singular values stay away from "
        "zero. Section 6 turns that into a hypothesis on whole spectra: a skip whose "
        "singular values are 1, put across random layers, shifts the singular values "
        "of their composite upwards. Figure 1 shows it for one random matrix, figure 2 "
        "for small networks. What exactly the added map is, we look at first.",
        (
            Finding("shifted_spectra/linear-shift"),
            Finding("shifted_spectra/linear-law"),
            Finding("shifted_spectra/rise-at-every-variance"),
            Finding("shifted_spectra/lemma-is-silent"),
            Finding("shifted_spectra/average-pool-is-no-isometry"),
            Finding("shifted_spectra/skips-shift-scores"),
            Finding("shifted_spectra/average-shifts-scores"),
            Finding("shifted_spectra/skips-shift-blocks"),
            Finding("shifted_spectra/average-shifts-blocks"),
            Finding("shifted_spectra/script-shifts-scores"),
        ),
    ),
    Chapter(
        "And is training faster for it?",
        "The shift is to be the cause of speed, at least initially and at least for "
        "some common initialisation schemes. We follow the losses of the three "
        "networks from equal weights, and then vary what the paper leaves as an open "
        "problem: the scheme, and the variance of the weights.",
        (
            Finding("shifted_spectra/skips-train-faster"),
            Finding("shifted_spectra/average-trains-faster"),
            Finding("shifted_spectra/skips-faster-initially"),
            Finding("shifted_spectra/average-faster-initially"),
            Finding("shifted_spectra/some-initialisation"),
            Finding("shifted_spectra/scores-see-less"),
            Finding("shifted_spectra/small-weights-want-skips"),
            Finding("shifted_spectra/small-weights-narrow-spectra"),
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
)
