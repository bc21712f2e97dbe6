"""Names of classes as matplotlib can write them: in a font that has their signs, or as the signs' numbers.

Matplotlib's own font knows no Chinese, Japanese or Korean; it draws a box for each such sign, warns of it
when the plot is drawn, and all names look the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.container import BarContainer
    from matplotlib.figure import Figure
    from matplotlib.legend import Legend
    from matplotlib.lines import Line2D
    from matplotlib.text import Text

_WIDE = (
    "Noto Sans CJK", "Noto Sans JP", "Noto Sans SC", "Source Han Sans", "PingFang", "Hiragino Sans",
    "Apple SD Gothic Neo", "Yu Gothic", "Microsoft YaHei", "Malgun Gothic", "MS Gothic", "SimHei",
    "WenQuanYi", "IPAexGothic", "IPAGothic", "TakaoGothic", "NanumGothic", "Droid Sans Fallback", "Unifont",
    "Arial Unicode MS", "Noto Sans",
)  # fmt: skip
"""How families begin that have what the usual ones have not; those that look best first."""
_MOST_NAMED = 47  # and a line that says how many more: more colours cannot be told apart
_ROWS = 16
_COLUMN = 2.3
"""Inches that a column of a legend is wide, with names as long as they can be."""


class Lettering:
    """How some names are written.

    Parameters
    ----------
    names : iterable of str
        All that are in a plot.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._families: list[str] = []
        self._missing = {sign for name in names if not name.isascii() for sign in name}
        if self._missing:
            self._look()

    def _look(self) -> None:
        """Find fonts for the signs, the user's own first; what is in none stays missing."""
        for family, path in _fonts():
            if found := self._missing & _signs(path):
                self._missing -= found
                self._families.append(family)
            if not self._missing:
                return

    def text(self, name: str) -> str:
        """Return a name whose signs are all in some font.

        Parameters
        ----------
        name : str
            One of the names.

        Returns
        -------
        str
            The same, or with numbers in place of signs, which tells it from others.
        """
        return "".join(ascii(sign)[1:-1] if sign in self._missing else sign for sign in name)

    def dress(self, texts: Iterable[Text]) -> None:
        """Have texts drawn in the fonts that have their signs.

        Parameters
        ----------
        texts : iterable of Text
            Matplotlib's, of the names.
        """
        if self._families:
            for text in texts:
                text.set_fontfamily([*text.get_fontfamily(), *self._families])


def _fonts() -> Iterator[tuple[str, str]]:
    """Yield families with their files: those that matplotlib takes anyway, then those that have more."""
    from matplotlib import rcParams
    from matplotlib.font_manager import fontManager

    chosen = cast("Mapping[str, list[str]]", rcParams)
    own = [name for family in chosen["font.family"] for name in chosen.get(f"font.{family}", [family])]
    entries = {entry.name: entry.fname for entry in reversed(fontManager.ttflist)}
    yield from ((name, entries[name]) for name in own if name in entries)
    for start in _WIDE:
        yield from ((name, path) for name, path in entries.items() if name.startswith(start))


@cache
def _signs(path: str) -> frozenset[str]:
    """Return the signs that a font has."""
    from matplotlib.font_manager import get_font

    return frozenset(map(chr, get_font(path).get_charmap()))


def several_of(count: int, what: str) -> str:
    """Return a number and what it counts, in the singular or the plural."""
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def write_legend(
    axes: Axes, drawn: Sequence[BarContainer | Line2D], names: Sequence[str], *, beside: bool
) -> None:
    """Say which colour is which class.

    Parameters
    ----------
    axes : Axes
        With what was drawn.
    drawn : sequence of BarContainer or Line2D
        One for each name.
    names : sequence of str
        Any: matplotlib alone leaves out those that begin with ``_``.
    beside : bool
        Beside the plot, whose figure is ours and gets room for it; else within, above what is drawn.
    """
    if not names:
        return
    shown, listed = list(drawn[:_MOST_NAMED]), list(names[:_MOST_NAMED])
    if len(names) > _MOST_NAMED:
        shown.append(axes.plot([], [], linestyle="none")[0])
        listed.append(f"and {len(names) - _MOST_NAMED} more")
    columns = -(-len(shown) // _ROWS)
    legend = axes.legend(shown, ["x"] * len(shown), frameon=False, fontsize="small", ncols=columns)
    if beside:
        figure = cast("Figure", axes.figure)
        figure.set_figwidth(figure.get_figwidth() + _COLUMN * (columns - 1))
        legend.set_loc("upper left")
        legend.set_bbox_to_anchor((1.01, 1), axes.transAxes)
        legend.borderaxespad = 0
    lettering = Lettering(listed)
    for text, name in zip(legend.get_texts(), listed, strict=True):
        text.set_text(lettering.text(name))
    lettering.dress(legend.get_texts())
    if not beside:
        _make_room(axes, legend)


def _make_room(axes: Axes, legend: Legend) -> None:
    """Lift the top of the scale, so that a legend within the plot covers nothing; to the 2.5-fold at most."""
    share = legend.get_window_extent().height / axes.get_window_extent().height
    bottom, top = axes.get_ylim()
    axes.set_ylim(top=bottom + (top - bottom) / (1 - min(share + 0.05, 0.6)))
    legend.set_loc("upper right")
