// The wire's objects to what a canvas can draw. The sides of a box are x1, y1, x2, y2, half-open, in pixels.

const BOXED = new Set(["rectangle", "bitmap", "alpha_mask", "graph"]);
const SCORES = new Set(["confidence", "conf", "score"]);
const NO_COLOR = "#0f8a80";

/** Return one figure for each object, in the order of the answer. */
export function readFigures(annotation, meta) {
  const classes = new Map((meta.classes ?? []).map((known) => [known.title, known]));
  return Promise.all(annotation.objects.map((object) => readFigure(object, classes.get(object.classTitle))));
}

async function readFigure(object, known) {
  const mask = object.bitmap ? await readMask(object.bitmap) : null;
  const rings = ringsOf(object);
  const dots = dotsOf(object);
  return {
    title: object.classTitle,
    score: object.tags.find((tag) => SCORES.has(tag.name))?.value ?? null,
    color: /^#[0-9a-f]{6}$/i.test(known?.color ?? "") ? known.color : NO_COLOR,
    mask,
    rings,
    open: object.geometryType === "line",
    dots,
    bones: bonesOf(object, known),
    box: boxOf(object, mask, [...rings.flat(), ...dots]),
    boxed: BOXED.has(object.geometryType),
  };
}

function ringsOf({ geometryType: kind, points, angle = 0 }) {
  if (kind === "polygon") return [points.exterior, ...(points.interior ?? [])];
  if (kind === "line") return [points.exterior];
  if (kind === "oriented_bbox") return [turned(points, angle)];
  return [];
}

/** Return the corners of a box that is turned around its middle; radians, clockwise as y points down. */
function turned([[left, top], [right, bottom]], angle) {
  const [x, y] = [(left + right) / 2, (top + bottom) / 2];
  const [cos, sin] = [Math.cos(angle), Math.sin(angle)];
  const corners = [[left, top], [right, top], [right, bottom], [left, bottom]];
  return corners.map(([a, b]) => [x + (a - x) * cos - (b - y) * sin, y + (a - x) * sin + (b - y) * cos]);
}

function dotsOf({ geometryType: kind, points, nodes }) {
  if (kind === "point") return points.exterior;
  return Object.values(nodes ?? {}).filter((node) => !node.disabled).map((node) => node.loc);
}

function bonesOf({ nodes }, known) {
  if (!nodes) return [];
  const edges = Object.values(known?.geometry_config?.edges ?? {});
  const ends = edges.map(({ src, dst }) => [nodes[src], nodes[dst]]);
  return ends.filter(([a, b]) => a && b && !a.disabled && !b.disabled).map(([a, b]) => [a.loc, b.loc]);
}

function boxOf({ box, geometryType: kind, points }, mask, places) {
  if (box) return box;
  if (mask) return [mask.x, mask.y, mask.x + mask.image.width, mask.y + mask.image.height];
  // Whole-pixel corners are inclusive on the wire.
  const corners = kind === "rectangle" ? points.exterior : places;
  if (!corners.length) return [0, 0, 0, 0];
  const [xs, ys] = [corners.map((at) => at[0]), corners.map((at) => at[1])];
  return [Math.min(...xs), Math.min(...ys), Math.max(...xs) + 1, Math.max(...ys) + 1];
}

/** Unpack a mask: base64 of a PNG, usually packed with zlib once more. */
async function readMask({ origin: [x, y], data }) {
  const bytes = Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0));
  const plain = bytes[0] === 0x89 && bytes[1] === 0x50;
  const unpacked = plain ? new Blob([bytes]).stream() : new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  const png = await new Response(unpacked).blob();
  return { x, y, image: await createImageBitmap(new Blob([png], { type: "image/png" })) };
}
