"""Run pictures that the server itself knows, and write the predictions back beside them.

Start a server with a library: predsession serve --library FOLDER
Usage: python examples/by_ids.py URL
"""

from __future__ import annotations

import json
import sys
import urllib.request

from predsession import PredictionSession


def main(url: str) -> int:
    """Run every image of the first project; return the exit code."""
    with urllib.request.urlopen(f"{url}/library", timeout=60) as answer:  # noqa: S310 - the user's own server
        library = json.load(answer)
    project = library["projects"][0]
    with PredictionSession(url, project_id=project["id"], upload_mode="append") as session:
        for prediction in session:
            print(prediction.image_id, prediction.name, ", ".join(prediction.classes))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
