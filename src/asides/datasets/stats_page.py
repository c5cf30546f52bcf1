"""The statistics as one HTML page: tables, and plots in SVG without scripts, and nothing of the content of rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape

from asides.datasets.stats import Group, Lengths, Stats

_WIDTH, _HEIGHT, _LEFT, _BOTTOM = 640, 220, 48, 34
_THINKING, _ANSWER = "#7a5cc8", "#2b8a5e"
_MAX_BARS = 60
_STYLE = """
body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:46rem;padding:0 1rem;color:#222;background:#fff}
table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}
th,td{padding:.25rem .5rem;text-align:right;border-bottom:1px solid #ddd}
th:first-child,td:first-child{text-align:left}
svg{width:100%;height:auto}svg text{font:11px system-ui,sans-serif;fill:currentColor}
@media(prefers-color-scheme:dark){body{color:#ddd;background:#181818}th,td{border-color:#444}}
"""


def write_page(stats: Stats) -> str:
    """The page. It loads nothing."""
    total = stats.sum()
    parts = [
        f"<p>{total.rows:,} rows, {total.thinking.count:,} with thinking, {total.unclosed:,} unclosed.</p>",
        f"<p>Thinking is {total.share:.0%} of all characters.</p>",
        "<h2>Lengths</h2>",
        _draw_lengths(total),
        "<h2>Share of thinking by day</h2>",
        _draw_shares(stats.by_day()),
        "<h2>By model</h2>",
        _write_table("model", stats.by_model()),
        "<h2>By day</h2>",
        _write_table("day", stats.by_day()),
    ]
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width"><title>Thinking and answers</title>'
        f"<style>{_STYLE}</style></head><body><h1>Thinking and answers</h1>{''.join(parts)}</body></html>\n"
    )


def _write_table(name: str, groups: Mapping[str, Group]) -> str:
    head = (name, "rows", "with thinking", "median", "p95", "answer median", "p95", "share", "unclosed")
    rows = [
        (
            key,
            f"{group.rows:,}",
            f"{group.thinking.count:,}",
            f"{group.thinking.estimate(0.5):,}",
            f"{group.thinking.estimate(0.95):,}",
            f"{group.answer.estimate(0.5):,}",
            f"{group.answer.estimate(0.95):,}",
            f"{group.share:.0%}",
            f"{group.unclosed:,}",
        )
        for key, group in groups.items()
    ]
    body = "".join(_write_row("td", row) for row in rows)
    return f"<table><thead>{_write_row('th', head)}</thead><tbody>{body}</tbody></table>"


def _write_row(tag: str, cells: Iterable[str]) -> str:
    return f"<tr>{''.join(f'<{tag}>{escape(cell)}</{tag}>' for cell in cells)}</tr>"


def _draw_lengths(group: Group) -> str:
    """How many rows have thinking and answers of each length; each step is twice the one before."""
    powers = sorted({*group.thinking.powers, *group.answer.powers})
    if not powers:
        return "<p>No rows.</p>"
    steps = range(powers[0], powers[-1] + 1)
    labels = [f"{(1 << power) >> 1:,}" for power in steps]
    series = [(name, colour, _read_counts(lengths, steps)) for name, colour, lengths in _list_series(group)]
    return _draw_bars("Rows by length in characters", labels, series)


def _list_series(group: Group) -> tuple[tuple[str, str, Lengths], ...]:
    return ("thinking", _THINKING, group.thinking), ("answer", _ANSWER, group.answer)


def _read_counts(lengths: Lengths, steps: Iterable[int]) -> list[float]:
    return [lengths.powers.get(step, 0) for step in steps]


def _draw_shares(days: Mapping[str, Group]) -> str:
    shown = list(days.items())[-_MAX_BARS:]
    series = [("share of thinking in %", _THINKING, [group.share * 100 for _, group in shown])]
    return _draw_bars("Share of thinking by day", [day for day, _ in shown], series)


def _draw_bars(title: str, labels: Sequence[str], series: Sequence[tuple[str, str, Sequence[float]]]) -> str:
    most = max((value for _, _, values in series for value in values), default=0) or 1
    step = (_WIDTH - _LEFT) / max(len(labels), 1)
    width = step * 0.8 / max(len(series), 1)
    floor, height = _HEIGHT - _BOTTOM, _HEIGHT - _BOTTOM - 24
    drawn = [f'<line x1="{_LEFT}" y1="{floor}" x2="{_WIDTH}" y2="{floor}" stroke="#888"/>']
    drawn += [
        f'<text x="{_LEFT - 6}" y="{floor - height * part + 4:.1f}" text-anchor="end">{most * part:,.0f}</text>'
        for part in (0, 0.5, 1)
    ]
    for place, (name, colour, values) in enumerate(series):
        drawn.append(f'<rect x="{_LEFT + place * 160}" y="2" width="10" height="10" fill="{colour}"/>')
        drawn.append(f'<text x="{_LEFT + 14 + place * 160}" y="11">{escape(name)}</text>')
        for number, (label, value) in enumerate(zip(labels, values, strict=True)):
            left, tall = _LEFT + number * step + step * 0.1 + place * width, height * value / most
            drawn.append(
                f'<rect x="{left:.1f}" y="{floor - tall:.1f}" width="{width:.1f}" height="{tall:.1f}" fill="{colour}">'
                f"<title>{escape(label)}: {value:,.0f}</title></rect>"
            )
    every = max(1, -(-len(labels) // 8))
    drawn += [
        f'<text x="{_LEFT + (number + 0.5) * step:.1f}" y="{floor + 16}" text-anchor="middle">{escape(label)}</text>'
        for number, label in enumerate(labels)
        if number % every == 0
    ]
    return (
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{escape(title)}"><title>{escape(title)}</title>'
        f"{''.join(drawn)}</svg>"
    )
