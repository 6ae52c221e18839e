"""Rows to TensorBoard, MLflow and Weights & Biases.

Start with ``tracking``; ``metrics`` makes numbers of rows. Each tracker imports its
library on first use. Touches core only.
"""
