"""The comparison that a report shows: predicted numbers beside measured means."""

from collections.abc import Callable
from string import Formatter

from ..rows import Row, compared_row
from ..statistics import group_means
from .selecting import PredictedAndMeasured, Select

Line = tuple[str, Select] | tuple[str, Select, Select]


def beside(*lines: Line) -> Callable[[PredictedAndMeasured], list[Row]]:
    """Return a study's comparison: predicted numbers beside means over networks.

    Args:
        lines: What a line is called, with labels in braces; the measured rows, a line
            for each set of these labels; and the predicted rows, by default those of
            the same quantity. Labels of a line that predicted rows have match them;
            measured rows without a prediction are left out.

    Example:
        >>> from theodolite.core import Rows, measured
        >>> law = Rows([{"quantity": "gap", "depth": 2, "value": 1.0}])
        >>> rows = Rows({"quantity": "gap", "depth": d, "value": 1.1, "error": 0.2}
        ...             for d in (2, 4))
        >>> both = PredictedAndMeasured(law, rows)
        >>> beside(("gap, depth {depth}", measured("gap")))(both)
        [{'label': 'gap, depth 2', 'predicted': 1.0, 'measured': 1.1, 'error': 0.2}]
    """

    def compare(both: PredictedAndMeasured) -> list[Row]:
        return [
            row
            for line in lines
            for row in _compared(both, *line[:2], line[2] if len(line) > 2 else None)
        ]

    return compare


def _compared(
    both: PredictedAndMeasured, title: str, rows: Select, law: Select | None
) -> list[Row]:
    by = [field for _, field, _, _ in Formatter().parse(title) if field]
    same = Select(rows.quantity, side="predicted", log=rows.log)
    found, foretold = rows(both), (law or same)(both)
    known = {label for row in foretold for label in row}
    table: list[Row] = []
    for mean in group_means(found, by):
        labels = {label: mean[label] for label in by}
        chosen = {**rows.labels, **labels}
        numbers = foretold.where(**{k: v for k, v in chosen.items() if k in known})
        if not len(numbers):
            continue
        those = found.where(**labels)
        words = {
            label: value.replace("_", "-") if isinstance(value, str) else value
            for label, value in labels.items()
        }
        value = float(numbers.values().mean())
        number = mean if len(those) > 1 else those[0]
        table.append(compared_row(title.format(**words), value, number))
    return table
