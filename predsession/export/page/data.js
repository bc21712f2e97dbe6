// What the page holds, read once. Each line of a block is a JSON object of its own: a run that was killed
// leaves the last one cut short, and all before it are good.

/** Return the items in the order of their source, the classes, and whether the run came to its end. */
function readReport() {
  const report = { items: [], classes: new Map(), complete: false };
  for (const block of document.querySelectorAll("script.data")) {
    for (const line of block.textContent.split("\n")) if (line) takeLine(report, line);
    block.remove(); // or the thumbnails would be in memory twice
  }
  return report;
}

function takeLine(report, line) {
  let said;
  try {
    said = JSON.parse(line);
  } catch {
    return; // the line at which the run was killed
  }
  if (said.class) {
    const [number, title, color] = said.class;
    report.classes.set(number, { number, title, color, total: 0 });
  }
  if (said.item) report.items.push(itemOf(said.item, report));
  if (said.end) report.complete = true;
}

function itemOf(said, { items, classes }) {
  const objects = (said.objects ?? []).map(objectOf);
  for (const object of objects) classes.get(object.class).total += 1;
  return {
    order: items.length,
    index: said.index,
    name: said.name || `item ${said.index}`,
    path: said.path ?? "",
    frame: said.frame ?? null,
    seconds: said.seconds ?? null,
    width: said.size?.[0] ?? 0,
    height: said.size?.[1] ?? 0,
    thumb: said.thumb ? `data:image/${said.kind};base64,${said.thumb}` : null,
    file: said.file ?? null,
    failed: "error" in said,
    reason: said.error ?? said.gone ?? null,
    hidden: said.hidden ?? 0,
    objects,
    kept: objects,
  };
}

/** The sides of a box are x1, y1, x2, y2, half-open, in pixels of the picture; a figure's points are flat. */
function objectOf([number, score, x1, y1, x2, y2, track, figure]) {
  return { class: number, score, box: [x1, y1, x2, y2], track: track ?? null, figure: figure ?? {} };
}
