"""A table of measurements, as text, as Markdown or as plain rows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

Row = dict[str, Any]


@dataclass
class Table:
    name: str
    title: str
    # key in a row → heading
    columns: dict[str, str]
    rows: list[Row]
    notes: list[str] = field(default_factory=list)

    def cells(self) -> list[list[str]]:
        return [[show(row.get(key)) for key in self.columns] for row in self.rows]

    def text(self) -> str:
        lines = [list(self.columns.values()), *self.cells()]
        widths = [max(len(line[i]) for line in lines) for i in range(len(self.columns))]
        numeric = [self._is_numeric(key) for key in self.columns]

        def aligned(line: list[str]) -> str:
            padded = (
                cell.rjust(width) if right else cell.ljust(width)
                for cell, width, right in zip(line, widths, numeric, strict=True)
            )
            return "  ".join(padded).rstrip()

        rule = "  ".join("-" * width for width in widths)
        body = [aligned(lines[0]), rule, *(aligned(line) for line in lines[1:])]
        return "\n".join([f"== {self.title}", *self.notes, "", *body, ""])

    def markdown(self) -> str:
        def line(cells: list[str]) -> str:
            return "| " + " | ".join(cells) + " |"

        marks = ["---:" if self._is_numeric(key) else "---" for key in self.columns]
        body = [line(list(self.columns.values())), line(marks), *(line(cells) for cells in self.cells())]
        return "\n".join([f"### {self.title}", "", *self.notes, *([""] if self.notes else []), *body, ""])

    def _is_numeric(self, key: str) -> bool:
        values = [row[key] for row in self.rows if row.get(key) is not None]
        return bool(values) and all(isinstance(value, int | float) for value in values)


def show(value: Any) -> str:
    """Format a value: about three significant digits, no exponent; empty if it was not measured."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        if abs(value) >= 100:
            return f"{value:,.0f}"
        return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"
    return f"{value:,}" if isinstance(value, int) else str(value)
