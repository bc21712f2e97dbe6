"""The renderer: all of it inside the picture, readable on small and large ones, the caller's left alone."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image, ImageChops

from predsession.render import Scale, draw

RED, GREEN, BLUE = (230, 30, 30), (30, 200, 30), (30, 30, 230)


def black(width: int = 200, height: int = 150) -> np.ndarray:
    """Return a black picture."""
    return np.zeros((height, width, 3), np.uint8)


def boxes(*rows: tuple[float, float, float, float]) -> np.ndarray:
    """Return boxes as float32."""
    return np.array(rows, np.float32).reshape(-1, 4)


def extent(picture: np.ndarray, color: tuple[int, int, int]) -> tuple[int, int, int, int]:
    """Return the half-open box of the pixels of that colour."""
    rows, columns = np.nonzero((picture == color).all(axis=2))
    return int(columns.min()), int(rows.min()), int(columns.max()) + 1, int(rows.max()) + 1


@pytest.mark.parametrize("thickness", [None, 1, 5])
def test_a_box_is_drawn_where_it_is(thickness: int | None) -> None:
    """The frame fills exactly the half-open box, its inside stays as it was, whatever the line's width."""
    picture = draw(black(), boxes=boxes((20, 10, 60, 30)), colors=[RED], thickness=thickness)
    assert extent(picture, RED) == (20, 10, 60, 30)
    assert not picture[17:23, 30:50].any()
    assert not draw(black(), boxes=boxes((20, 10, 60, 30)), box_rows=[False]).any()


def test_the_callers_picture_is_not_changed() -> None:
    """What is handed in stays black, also if it cannot be written to."""
    ground = black()
    ground.flags.writeable = False
    picture = draw(ground, boxes=boxes((20, 10, 60, 30)), labels=["cat"])
    assert picture.any()
    assert not ground.any()


def test_nothing_to_draw_is_the_picture() -> None:
    """No rows: a copy, pixel by pixel."""
    ground = np.random.default_rng(0).integers(0, 255, (40, 50, 3), np.uint8)
    picture = draw(ground, boxes=boxes())
    assert (picture == ground).all()
    assert picture is not ground


def test_a_box_outside_is_drawn_at_the_border() -> None:
    """A box that is larger than the picture has its frame at the border, where it can be seen."""
    picture = draw(black(), boxes=boxes((-50, -50, 500, 500)), colors=[RED], thickness=1)
    assert extent(picture, RED) == (0, 0, 200, 150)
    assert not picture[1:-1, 1:-1].any()


def test_a_mask_is_mixed_in() -> None:
    """Half opacity is the mean of ground and colour, on the mask's pixels only."""
    mask = np.zeros((10, 10), bool)
    mask[2:5, 3:9] = True
    ground = np.full((150, 200, 3), 100, np.uint8)
    picture = draw(ground, boxes=boxes((50, 40, 60, 50)), masks=[(50, 40, mask)], colors=[(200, 0, 100)],
                   opacity=0.5, box_rows=[False])  # fmt: skip
    changed = (picture != ground).any(axis=2)
    assert np.argwhere(changed).min(axis=0).tolist() == [42, 53]
    assert changed.sum() == mask.sum()
    assert picture[43, 55].tolist() == [150, 50, 100]


def test_outlines_lines_points_and_trails_are_drawn() -> None:
    """Each in the colour of its row, where its points say, closed only where it is an outline."""
    ring = np.array([[20, 20], [80, 20], [80, 60]], np.float32)
    right, below_right = ring + np.float32([80, 0]), ring + np.float32([80, 60])
    nothing = np.zeros((0, 2), np.float32)
    picture = draw(
        black(),
        boxes=boxes((20, 20, 81, 61), (100, 20, 181, 61), (20, 80, 81, 141), (100, 80, 181, 141)),
        outlines=[[ring], [], [], []],
        lines=[nothing, right, nothing, nothing],
        keypoints=np.array([[[0, 0, 0]] * 2, [[0, 0, 0]] * 2, [[30, 90, 1], [70, 130, 1]], [[0, 0, 0]] * 2]),
        skeletons=[[], [], [(0, 1)], []],
        trails=[None, None, None, below_right],
        colors=[RED, GREEN, BLUE, (250, 250, 0)],
        box_rows=[False] * 4,
        thickness=3,
    )
    assert picture[20, 50].tolist() == list(RED)
    assert picture[40, 50].tolist() == list(RED), "the side that closes the outline"
    assert picture[20, 130].tolist() == list(GREEN)
    assert not picture[40, 130].any(), "a line stays open"
    assert picture[110, 50].tolist() == list(BLUE), "the line between two keypoints"
    assert picture[90, 30].tolist() == list(BLUE)
    assert picture[118, 160].tolist() == [250, 250, 0], "the younger end of the trail"
    assert not picture[0:5, 0:5].any(), "keypoints that are not visible are not drawn"


def test_a_keypoint_stands_out_from_its_own_colour() -> None:
    """A dot on ground of its own colour has a rim that can be seen."""
    ground = np.full((150, 200, 3), RED, np.uint8)
    picture = draw(ground, boxes=boxes((40, 40, 60, 60)), keypoints=np.array([[[50, 50, 1]]]), colors=[RED],
                   box_rows=[False])  # fmt: skip
    assert (picture[45:56, 45:56] == 255).all(axis=2).sum() > 6


def label_extent(x: float, y: float) -> tuple[int, int, int, int]:
    """Return where the label of a box of one pixel is, on a picture of 300 x 200."""
    box = boxes((x, y, x + 1, y + 1))
    return extent(
        draw(black(300, 200), boxes=box, labels=["zebra 0.97"], colors=[GREEN], box_rows=[False]), GREEN
    )


@pytest.mark.parametrize("place", [(0, 0), (299, 0), (0, 199), (299, 199), (150, 5), (-40, 90), (400, 90)])
def test_labels_stay_inside_the_picture(place: tuple[int, int]) -> None:
    """In corners, at borders and for boxes outside, a label is as large as in the middle: nothing is cut."""
    left, top, right, bottom = label_extent(*place)
    middle = label_extent(150, 100)
    assert (right - left, bottom - top) == (middle[2] - middle[0], middle[3] - middle[1])


@pytest.mark.parametrize("size", [(60, 60), (30, 12), (200, 5), (3, 2), (1, 1)])
def test_pictures_too_small_for_a_label(size: tuple[int, int]) -> None:
    """A label that cannot fit is cut; the picture keeps its size."""
    picture = draw(black(*size), boxes=boxes((0, 0, 5, 5)), labels=["zebra 0.97"], colors=[GREEN])
    assert picture.shape == (size[1], size[0], 3)
    assert picture.any()


@pytest.mark.parametrize("color", [(250, 250, 0), (0, 0, 120), (230, 30, 30), (128, 128, 128), (0, 255, 0)])
def test_text_can_be_told_from_its_ground(color: tuple[int, int, int]) -> None:
    """Black on light colours, white on dark ones: the contrast is at least 3 to 1 (WCAG's for large text)."""

    def light(pixel: np.ndarray) -> float:
        linear = np.where(pixel <= 10, pixel / 3294, ((pixel / 255 + 0.055) / 1.055) ** 2.4)
        return float(linear @ (0.2126, 0.7152, 0.0722)) + 0.05

    picture = draw(
        np.full((200, 200, 3), 77, np.uint8),
        boxes=boxes((50, 100, 90, 140)),
        labels=["W" * 8],
        colors=[color],
    )
    pixels = {tuple(pixel) for pixel in picture[60:100].reshape(-1, 3).tolist()} - {(77, 77, 77)}
    ratios = [light(np.array(pixel)) / light(np.array(color)) for pixel in pixels]
    assert max(*ratios, *(1 / ratio for ratio in ratios)) > 3


def test_labels_make_room_for_each_other() -> None:
    """Three boxes in one place have three labels, none of which covers another."""
    colors = [RED, GREEN, BLUE]
    picture = draw(black(400, 300), boxes=boxes(*[(150, 100, 190, 130)] * 3), labels=["one", "two", "three"],
                   colors=colors, box_rows=[False] * 3)  # fmt: skip
    frames = [extent(picture, color) for color in colors]
    for one, other in ((0, 1), (0, 2), (1, 2)):
        a, b = frames[one], frames[other]
        assert a[0] >= b[2] or b[0] >= a[2] or a[1] >= b[3] or b[1] >= a[3]


def test_a_crowd_is_drawn() -> None:
    """More objects than there is room for labels: all are drawn, none fails."""
    rng = np.random.default_rng(1)
    corner = rng.uniform(0, 100, (120, 2))
    crowd = np.hstack((corner, corner + rng.uniform(1, 60, (120, 2))))
    picture = draw(black(120, 120), boxes=crowd, labels=["person 0.5"] * 120)
    assert picture.any()


@pytest.mark.parametrize("label", ["", " ", "\n", "\ud800", "a\nb\tc", "東京", "Жук", "🐈", "x" * 5000])
def test_any_text_is_a_label(label: str) -> None:
    """Empty, several lines, other scripts, half a surrogate and far too long: no error, one line."""
    picture = draw(black(), boxes=boxes((20, 60, 60, 90)), labels=[label], colors=[GREEN], box_rows=[False])
    assert picture.any() == (label.strip() not in {"", "\ud800"})
    if label == "a\nb\tc":
        one_line = draw(
            black(), boxes=boxes((20, 60, 60, 90)), labels=["a b c"], colors=[GREEN], box_rows=[False]
        )
        assert ImageChops.difference(Image.fromarray(picture), Image.fromarray(one_line)).getbbox() is None


def test_lines_and_letters_grow_with_the_picture() -> None:
    """A picture of 4000 pixels, seen at the size of one of 400, looks like it; small ones stay readable."""
    small, middle, large = (Scale.fitting(side, side) for side in (100, 400, 4000))
    assert small.letters >= 11
    assert small.line == 1
    assert large.line / middle.line == pytest.approx(10, rel=0.5)
    assert 4 < large.letters / middle.letters < 10
    assert Scale.fitting(4000, 4000, 2).line == 2
