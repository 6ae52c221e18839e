"""What the paper prints, and parameters by formula."""

from theodolite.studies.macdonald2023skip.shared.image_predict import predict_table

predict = predict_table(1, 2, 3)
