"""Train one network and take its norms after every epoch."""

from theodolite.studies.li2016demystifying.shared.cifar_training import measure_cell

measure = measure_cell
