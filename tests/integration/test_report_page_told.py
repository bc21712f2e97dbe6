"""The report tells what there is, in a real headless Chromium: counts of crowds, tags, names, places."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import expect
from predictions import found
from report_kit import NEEDS_CHROMIUM, Visiting

from predsession import ItemError, Prediction, PredictionSession, SourceError, save_predictions
from predsession.cli import main
from predsession.export.pagetags import MOST_TAG_BYTES

pytestmark = NEEDS_CHROMIUM


def crowd(count: int = 3000) -> Prediction:
    """Return a picture of very many objects: four tenths are persons, three cars, two dogs, one a bird."""
    places = np.arange(count)
    scores = np.round(0.05 + 0.8 * places / count, 4)
    corners = np.stack((places % 60 * 10, places // 60 * 8), axis=1)
    return Prediction.from_arrays(
        size=(600, 400), boxes=np.concatenate((corners, corners + 7), axis=1), scores=scores,
        class_ids=np.array([0, 0, 0, 0, 1, 1, 1, 2, 2, 3])[places % 10],
        class_names=["person", "car", "dog", "bird"], name="crowd.jpg",
    )  # fmt: skip


def test_crowd_is_counted_whole_whatever_is_asked(visit: Visiting, tmp_path: Path) -> None:
    """Of 3,000 objects 1,000 are drawn; classes, bars, captions and sums count all, filtered or not."""
    made = crowd()
    small = found(classes=["person", "car"], scores=[0.9, 0.05], index=1, name="small.jpg")
    saved = save_predictions([made, small], tmp_path / "r.html")
    assert saved.left_out["objects"] == 2000
    here = visit(tmp_path / "r.html")
    here.shows(2, 3002)
    classes = here.page.locator("#classes li")
    assert classes.all_inner_texts() == ["person\n1,201", "car\n901", "dog\n600", "bird\n300"]
    label = here.cards.first.get_attribute
    assert label("aria-label") == "crowd.jpg: 3,000 objects: person 1,200, car 900, dog 600, bird 300"
    scores = np.concatenate((made.scores, small.scores)).astype(np.float64).round(4)
    assert here.bars() == Counter(int(score * 40) for score in scores.tolist())

    here.page.locator("#no-classes").click()
    classes.filter(has_text="person").click()
    here.shows(2, 1201)
    assert label("aria-label") == "crowd.jpg: 1,200 objects: person 1,200"
    assert sum(here.bars().values()) == 1201
    here.page.locator("#reset").click()

    here.set_range("most", 0.3)  # nothing that is drawn
    low = int((scores[:3000] <= 0.3).sum())
    here.shows(2, low + 1)
    here.page.locator("#sort").select_option("count")
    here.page.locator("#direction").click()
    expect(here.page.locator("#grid .names").first).to_have_attribute("title", "crowd.jpg")
    here.cards.first.click()
    expect(here.page.locator("#detail-note")).to_have_text(
        f"{low} objects · {low} of them, with the lowest scores, are only counted"
        f" · {3000 - low:,} hidden by the filters"
    )
    here.page.locator("#close").click()
    here.page.locator("#show").select_option("none")
    here.shows(0, 0)
    assert here.complaints == []


def test_order_by_score_sees_what_is_not_drawn(visit: Visiting, tmp_path: Path) -> None:
    """The worst score of a crowd is that of an object that is only counted."""
    low = found(scores=[0.5, 0.06], index=1, name="low.jpg")
    save_predictions([low, crowd()], tmp_path / "r.html")
    here = visit(tmp_path / "r.html")
    here.page.locator("#sort").select_option("worst")
    expect(here.page.locator("#grid .names").first).to_have_attribute("title", "crowd.jpg")


def test_tags_are_told(visit: Visiting, tmp_path: Path) -> None:
    """Those of the picture and of each object are in the larger view, as text; the score is no tag."""
    item = found(
        boxes=[[1, 2, 30, 40], [10, 10, 20, 20]], scores=[0.9, 0.5],
        tags=[("weather", "rain"), ("night", None), ("<b>", "</script>"), ("sun", 0.25)],
    ).to_json()  # fmt: skip
    item["annotation"]["objects"][0]["tags"] += [{"name": "colour", "value": "red"}, {"name": "parked"}]
    saved = save_predictions([Prediction.from_json(item), found(index=1)], tmp_path / "r.html")
    assert saved.left_out == {"pictures that are gone": 2}
    here = visit(tmp_path / "r.html")
    here.cards.first.click()
    of_picture, of_objects = here.page.locator("#detail-tags li"), here.page.locator("#found tbody .tags li")
    expect(of_picture).to_have_text(["weather: rain", "night", "<b>: </script>", "sun: 0.25"])
    expect(of_objects).to_have_text(["colour: red", "parked"])
    assert here.page.locator("#found tbody tr").first.inner_text().split() == [
        "object", "colour:", "red", "parked", "0.900", "1,", "2,", "30,", "40",
    ]  # fmt: skip
    here.page.keyboard.press("ArrowRight")
    expect(here.page.locator("#detail-name")).not_to_have_text("item 0")
    expect(of_picture).to_have_count(0)
    expect(of_objects).to_have_count(0)
    assert here.complaints == []


def test_what_is_not_in_the_page_is_counted(tmp_path: Path) -> None:
    """Tags that are too many or too long, or of objects that are only counted, data, ids: each by name."""
    tags = [("long", "x" * 5000), *((f"tag {at}", "value") for at in range(1000))]
    item = found(tags=tags).to_json()
    saved = save_predictions([Prediction.from_json(item)], tmp_path / "many.html")
    kept = (tmp_path / "many.html").read_text("utf-8").count('["tag ')
    assert 300 < kept < MOST_TAG_BYTES / 10
    assert saved.left_out["tags"] == 1001 - kept
    item = crowd(1005).to_json()
    for each in item["annotation"]["objects"]:
        each["tags"].append({"name": "x"})
    item |= {"data": {"seen": True}, "image_id": 7}
    saved = save_predictions([Prediction.from_json(item)], tmp_path / "crowd.html")
    left_out = dict(saved.left_out)
    told = (tmp_path / "crowd.html").read_text("utf-8").count('[["x"]]')
    assert left_out == {
        "objects": 5, "tags": 1005 - told, "further data": 1, "ids of a library": 1,
        "pictures that are gone": 1,
    }  # fmt: skip
    assert told == 1000


def test_what_has_no_name_is_said_to_have_none(visit: Visiting, tmp_path: Path) -> None:
    """A class, a tag, an item or an error without a name has words in its place, and no number is made up."""
    nameless = found(classes=["", " \u200b"], tags=[("", "rain")], index=3, name="")
    errors = [ItemError("only a message"), ItemError("it", index=7, path="photos/x.jpg", reason="empty file")]
    save_predictions([nameless, *errors], tmp_path / "r.html")
    here = visit(tmp_path / "r.html")
    here.shows(3, 2)
    assert here.page.locator("#classes li").all_inner_texts() == ["(no name)\n1", "(no name)\n1"]
    assert here.names == ["item 3", "(no name)", "x.jpg"]
    assert here.cards.first.get_attribute("aria-label") == "item 3: 2 objects: (no name) 1, (no name) 1"
    row = here.page.locator("#failures tbody tr", has_text="only a message")
    assert row.locator("td").all_inner_texts() == ["–", "(no name)", "", "only a message"]
    here.cards.nth(1).click()
    expect(here.page.locator("#detail-facts")).to_have_text("2 of 3")
    here.page.keyboard.press("ArrowLeft")
    expect(here.page.locator("#detail-tags li")).to_have_text(["(no name): rain"])
    expect(here.page.locator("#sheet text").first).to_contain_text("(no name)")


def test_number_that_json_has_no_word_for_loses_no_picture(visit: Visiting, tmp_path: Path) -> None:
    """A time or a tag that is no number is told as such, or not at all; the picture is there."""
    numbers = [float("nan"), float("inf"), float("-inf")]
    frames = []
    for at, number in enumerate(numbers):
        item = found(frame_index=at).to_json()
        item["annotation"]["tags"] = [{"name": "speed", "value": number}]  # as a server may send it
        frames.append(replace(Prediction.from_json(item), timestamp=number))
    assert save_predictions(frames, tmp_path / "r.html").predictions == 3
    here = visit(tmp_path / "r.html")
    here.shows(3, 6)
    here.cards.first.click()
    for number in numbers:
        expect(here.page.locator("#detail-tags li")).to_have_text([f"speed: {number}"])
        expect(here.page.locator("#detail-facts")).not_to_contain_text(re.compile(r" s\b"))
        here.page.keyboard.press("ArrowRight")


def test_page_without_a_suffix_is_a_folder_everywhere(
    visit: Visiting, ours: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`convert`, `predict`, `save_predictions` and a session write index.html there; the browser shows it."""
    save_predictions([found()], tmp_path / "preds.jsonl")
    converted, saved_there = tmp_path / "converted", tmp_path / "saved"
    assert main(["convert", str(tmp_path / "preds.jsonl"), "--to", "html", "--out", str(converted)]) == 0
    saved = save_predictions([found()], saved_there, "html")
    assert saved.path == str(saved_there / "index.html")
    with PredictionSession(ours, [np.zeros((48, 64, 3), np.uint8)]) as session:
        taken = Path(session.to_html(tmp_path / "taken").path)
    assert taken == tmp_path / "taken" / "index.html"
    Image.new("RGB", (64, 48)).save(tmp_path / "1.png")
    predict = ["predict", str(tmp_path / "1.png"), "--url", ours, "--format", "html", "--out"]
    assert main([*predict, str(tmp_path / "p")]) == 0
    predicted = tmp_path / "p" / "index.html"
    for page in (converted / "index.html", saved_there / "index.html", taken, predicted):
        here = visit(page)
        expect(here.cards).to_have_count(1)
        assert here.complaints == []
    assert main([*predict, str(tmp_path / "q"), "--html", str(tmp_path / "q")]) == 2
    assert "q/index.html is named twice" in capsys.readouterr().err
    with pytest.raises(SourceError, match=r"saved/index\.html is there already"):
        save_predictions([found()], saved_there, "html")
    assert save_predictions([found()], saved_there, "html", overwrite=True).predictions == 1
    assert save_predictions([found()], tmp_path / "UPPER.HTM").path == str(tmp_path / "UPPER.HTM")
