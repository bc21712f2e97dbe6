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
    report.classes.set(number, { number, title: isBlank(title) ? "(no name)" : title, color, total: 0 });
  }
  if (said.item) report.items.push(itemOf(said.item, report));
  if (said.end) report.complete = true;
}

function itemOf(said, { items, classes }) {
  const objects = (said.objects ?? []).map(objectOf);
  const further = (said.further ?? []).flatMap(furtherOf);
  for (const { class: number, count } of [...objects, ...further]) classes.get(number).total += count;
  const index = said.index < 0 ? null : said.index; // an error that was made of a message alone knows none
  return {
    order: items.length,
    index,
    name: nameIn(said, index),
    path: said.path ?? "",
    frame: said.frame ?? null,
    seconds: said.seconds ?? null,
    width: said.size?.[0] ?? 0,
    height: said.size?.[1] ?? 0,
    thumb: said.thumb ? `data:image/${said.kind};base64,${said.thumb}` : null,
    file: said.file ?? null,
    failed: "error" in said,
    reason: said.error ?? said.gone ?? null,
    tags: said.tags ?? [],
    objects,
    further,
    total: sumOf(objects) + sumOf(further),
    kept: objects,
    keptFurther: further,
    count: 0,
  };
}

/** Return an item's name: where it has none, the end of its path, or its place. */
function nameIn({ name, path }, index) {
  const said = [name, path?.split("/").at(-1)].find((text) => text && !isBlank(text));
  return said ?? (index === null ? "(no name)" : `item ${index}`);
}

/** Whether a text is nothing that can be seen. */
function isBlank(text) {
  return !/[^\s\p{Cc}\p{Cf}]/u.test(text);
}

function sumOf(objects) {
  return objects.reduce((sum, { count }) => sum + count, 0);
}

/** The sides of a box are x1, y1, x2, y2, half-open, in pixels of the picture; a figure's points are flat. */
function objectOf([number, score, x1, y1, x2, y2, track, figure, tags]) {
  return { class: number, score, count: 1, box: [x1, y1, x2, y2], track: track ?? null, figure: figure ?? {}, tags: tags ?? [] };
}

/** Objects that are counted and not drawn: of one class, how many have which score. */
function furtherOf([number, ...pairs]) {
  return pairs.map(([score, count]) => ({ class: number, score, count }));
}
