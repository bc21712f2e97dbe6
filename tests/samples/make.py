"""Make the sample photographs of the tests and of the demo from the originals named in LICENSES.md.

    python tests/samples/make.py FOLDER_WITH_THE_ORIGINALS

Run once; the results are committed. What small code can make is in tests/makers.py instead.
"""

from __future__ import annotations

import sys
from pathlib import Path

from PIL import Image

SAMPLES = Path(__file__).parent
PHOTOS = SAMPLES.parent.parent / "examples" / "photos"
SMALL = (240, 240)
ORIENTATION = 0x0112


def main(originals: Path) -> None:
    """Write all samples."""
    astronaut, chelsea, coffee = (
        Image.open(originals / f"{name}.png").convert("RGB") for name in ("astronaut", "chelsea", "coffee")
    )
    PHOTOS.mkdir(parents=True, exist_ok=True)
    astronaut.save(PHOTOS / "astronaut.jpg", quality=92)
    chelsea.save(PHOTOS / "cat.JPG", format="JPEG", quality=92)
    coffee.save(PHOTOS / "coffee.jpg", quality=92)
    save_sideways(astronaut.crop((60, 0, 444, 512)), PHOTOS / "portrait.jpg", quality=92)

    for name, photo in (("astronaut", astronaut), ("chelsea", chelsea), ("coffee", coffee)):
        small = photo.copy()
        small.thumbnail(SMALL)
        small.save(SAMPLES / f"{name}.jpg", quality=85)
    small = astronaut.crop((60, 0, 444, 512))
    small.thumbnail(SMALL)
    save_sideways(small, SAMPLES / "portrait_exif6.jpg", quality=85)
    save_as_two(chelsea, SAMPLES / "chelsea.mpo")


def save_sideways(upright: Image.Image, path: Path, *, quality: int) -> None:
    """Save as a phone that is held upright does: the pixels lie on their side, orientation 6 says so."""
    exif = Image.Exif()
    exif[ORIENTATION] = 6
    upright.transpose(Image.Transpose.ROTATE_90).save(path, quality=quality, exif=exif)


def save_as_two(photo: Image.Image, path: Path) -> None:
    """Save a picture and a mirrored one in one file, as stereo cameras do."""
    first = photo.copy()
    first.thumbnail(SMALL)
    second = first.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    first.save(path, format="MPO", save_all=True, append_images=[second], quality=85)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(Path(sys.argv[1]))
