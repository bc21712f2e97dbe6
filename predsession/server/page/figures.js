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
    box: object.box ?? boxOf(object, mask, [...rings.flat(), ...dots]),
    boxed: BOXED.has(object.geometryType),
  };
}

function ringsOf({ geometryType: kind, points, faces, angle = 0 }) {
  if (kind === "polygon") return [points.exterior, ...(points.interior ?? [])].map((ring) => ring.map(middle));
  if (kind === "line") return [points.exterior.map(middle)];
  if (kind === "cuboid") return faces.map((face) => face.map((place) => middle(points[place])));
  if (kind === "oriented_bbox") return [turned(points, angle)];
  return [];
}

/** Points on the wire name pixels; drawn is the middle of one. */
function middle([x, y]) {
  return [x + 0.5, y + 0.5];
}

/** Return the corners of a box that is turned around its middle; radians, clockwise as y points down. */
function turned([[left, top], [right, bottom]], angle) {
  // Whole-pixel corners are inclusive on the wire.
  const [w, h] = [(right + 1 - left) / 2, (bottom + 1 - top) / 2];
  const [cos, sin] = [Math.cos(angle), Math.sin(angle)];
  const corners = [[-w, -h], [w, -h], [w, h], [-w, h]];
  return corners.map(([x, y]) => [left + w + x * cos - y * sin, top + h + x * sin + y * cos]);
}

function dotsOf({ geometryType: kind, points, nodes }) {
  const seen = Object.values(nodes ?? {}).filter((node) => !node.disabled);
  return (kind === "point" ? points.exterior : seen.map((node) => node.loc)).map(middle);
}

function bonesOf({ nodes }, known) {
  if (!nodes) return [];
  const edges = Object.values(known?.geometry_config?.edges ?? {});
  const ends = edges.map(({ src, dst }) => [nodes[src], nodes[dst]]);
  const seen = ends.filter(([one, other]) => one && other && !one.disabled && !other.disabled);
  return seen.map(([one, other]) => [middle(one.loc), middle(other.loc)]);
}

function boxOf({ geometryType: kind, points }, mask, places) {
  if (mask) return [mask.x, mask.y, mask.x + mask.image.width, mask.y + mask.image.height];
  if (kind === "oriented_bbox") return around(places, 0); // its corners are edges already
  return around(kind === "rectangle" ? points.exterior.map(middle) : places, 0.5);
}

/** Return the box around points, so much wider on each side. */
function around(points, more) {
  if (!points.length) return [0, 0, 0, 0];
  const [xs, ys] = [points.map(([x]) => x), points.map(([, y]) => y)];
  return [Math.min(...xs) - more, Math.min(...ys) - more, Math.max(...xs) + more, Math.max(...ys) + more];
}

/** Unpack a mask: base64 of a PNG, usually packed with zlib once more. */
async function readMask({ origin: [x, y], data }) {
  const bytes = Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0));
  const plain = bytes[0] === 0x89 && bytes[1] === 0x50;
  const unpacked = plain ? new Blob([bytes]).stream() : new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  const png = await new Response(unpacked).blob();
  return { x, y, image: await createImageBitmap(new Blob([png], { type: "image/png" })) };
}
