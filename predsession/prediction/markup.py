"""Pieces of HTML for notebooks, in the notebook's own ink and on its own ground, light or dark.

Invariant: what comes from outside (names, titles, messages) is escaped, and no piece has a script, a style
sheet or an id: many of them share a page, and some hosts take those out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

RGB = tuple[int, int, int]

FAINT = "rgba(128,128,128,.16)"
LINE = "rgba(128,128,128,.35)"
FAILED = "#d9534f"
_LONGEST = 300
_LONGEST_NAME = 24
_TOLD = 8
_CELL = "padding:2px 10px 2px 0;background:none;border:0"


def escaped(text: str) -> str:
    """Escape a text; signs that are no text at all, as odd file names have them, become question marks.

    Parameters
    ----------
    text : str
        Any.

    Returns
    -------
    str
        For an element or an attribute.
    """
    import html  # with all its names of signs: when something is shown, not when a session is imported

    return html.escape(text.encode("utf-8", "replace").decode("utf-8"))


def shortened(text: str) -> str:
    """Cut a message that would fill the page, and escape it.

    Parameters
    ----------
    text : str
        Any.

    Returns
    -------
    str
        As `escaped`.
    """
    return escaped(text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…")


def swatch(color: RGB) -> str:
    """Return a dot of a class's colour.

    Parameters
    ----------
    color : tuple of int
        R, G, B.

    Returns
    -------
    str
        One ``span``.
    """
    ink = "#{:02x}{:02x}{:02x}".format(*color)
    return (
        f'<span style="display:inline-block;width:.7em;height:.7em;border-radius:50%;background:{ink};'
        f'box-shadow:0 0 0 1px {LINE};margin-right:.4em"></span>'
    )


def class_name(title: str, color: RGB) -> str:
    """Return a class's dot and name, in one line.

    Parameters
    ----------
    title : str
        The name; a long one is cut.
    color : tuple of int
        R, G, B.

    Returns
    -------
    str
        One ``span``, which is not broken between dot and name.
    """
    name = title if len(title) <= _LONGEST_NAME else title[: _LONGEST_NAME - 1] + "…"
    whole = escaped(title[:_LONGEST])
    return f'<span style="white-space:nowrap" title="{whole}">{swatch(color)}{escaped(name)}</span>'


def counted(counts: Mapping[str, int], colors: Mapping[str, RGB], *, most: int) -> str:
    """Return what was found, in a line: dot, class, number.

    Parameters
    ----------
    counts : mapping of str to int
        By class.
    colors : mapping of str to tuple of int
        Of those that have one.
    most : int
        How many are named.

    Returns
    -------
    str
        Spans that wrap between classes only.
    """
    ranked = sorted(counts.items(), key=lambda each: -each[1])
    parts = [
        f'<span style="white-space:nowrap;margin-right:.9em">'
        f"{class_name(title, colors.get(title, (128, 128, 128)))}&nbsp;<b>{count}</b></span>"
        for title, count in ranked[:most]
    ]
    if len(ranked) > most:
        more = len(ranked) - most
        parts.append(f'<span style="opacity:.75">and {more} more class{"es" if more > 1 else ""}</span>')
    return " ".join(parts)


def described(name: str, counts: Mapping[str, int]) -> str:
    """Say what a picture shows, to those who cannot see it.

    Parameters
    ----------
    name : str
        The input's.
    counts : mapping of str to int
        By class.

    Returns
    -------
    str
        Not escaped; as many classes as can be listened to.
    """
    ranked = sorted(counts.items(), key=lambda each: -each[1])
    parts = [f"{title[:_LONGEST_NAME]} {count}" for title, count in ranked[:_TOLD]]
    if len(ranked) > _TOLD:
        parts.append(f"and {len(ranked) - _TOLD} more")
    return f"{name or 'picture'}: {', '.join(parts) or 'nothing found'}"


def table(head: Sequence[str], rows: Iterable[Sequence[str]], *, right: Iterable[int] = ()) -> str:
    """Return a table.

    Parameters
    ----------
    head : sequence of str
        Texts.
    rows : iterable of sequence of str
        Cells of HTML.
    right : iterable of int
        The columns of numbers.

    Returns
    -------
    str
        One ``table``.
    """
    sides = ["right" if column in set(right) else "left" for column in range(len(head))]
    top = "".join(
        f'<th style="{_CELL};text-align:{side};border-bottom:1px solid {LINE}">{escaped(cell)}</th>'
        for cell, side in zip(head, sides, strict=True)
    )
    body = "".join(
        '<tr style="background:none">'
        + "".join(
            f'<td style="{_CELL};text-align:{side}">{cell}</td>'
            for cell, side in zip(row, sides, strict=True)
        )
        + "</tr>"
        for row in rows
    )
    return (
        '<table style="border-collapse:collapse;margin:.5em 0;font-variant-numeric:tabular-nums">'
        f"<thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"
    )


def tile(picture: str, caption: str, *, alt: str = "") -> str:
    """Return a picture with its caption.

    Parameters
    ----------
    picture : str
        Its address, or HTML that stands in its place.
    caption : str
        HTML.
    alt : str
        What the picture shows.

    Returns
    -------
    str
        One ``figure``, as wide as its place.
    """
    frame = f"width:100%;aspect-ratio:4/3;background:{FAINT};border-radius:4px;box-sizing:border-box"
    if picture.startswith("data:"):
        inner = f'<img src="{picture}" alt="{escaped(alt)}" style="{frame};object-fit:contain;display:block">'
    else:
        inner = (
            # By margins, not by align-items: what is too long begins at the top then, and can be scrolled to.
            f'<div style="{frame};padding:.8em;overflow:auto;display:flex">'
            f'<div style="width:100%;margin:auto 0;overflow-wrap:anywhere">{picture}</div></div>'
        )
    return (
        f'<figure style="margin:0;min-width:0">{inner}<figcaption style="margin-top:.3em;font-size:.9em;'
        f'line-height:1.35;overflow-wrap:anywhere;text-align:left">{caption}</figcaption></figure>'
    )


def tiles(parts: Iterable[str], columns: int) -> str:
    """Return tiles side by side.

    Parameters
    ----------
    parts : iterable of str
        From `tile`.
    columns : int
        How many in a row, where the page is wide enough for them.

    Returns
    -------
    str
        One ``div``.
    """
    # A share of the row less its gap, but no less than can be seen: a narrow page has fewer columns.
    least = f"max(130px, calc({100 / columns:.3f}% - 12px))"
    return (
        f'<div style="display:grid;gap:12px;align-items:start;'
        f'grid-template-columns:repeat(auto-fill,minmax({least},1fr))">' + "".join(parts) + "</div>"
    )
