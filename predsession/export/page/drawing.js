// Boxes and outlines as SVG. On a card all objects of one colour are one path, so that a thousand of them
// are a handful of nodes.

const SVG = "http://www.w3.org/2000/svg";

function svg(name, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

/** Return an element; every text becomes text, never markup. */
function html(name, properties = {}, ...children) {
  const element = Object.assign(document.createElement(name), properties);
  element.append(...children);
  return element;
}

/** Return a drawing that lies over a picture of any size; its coordinates are the picture's. */
function overlayOf(item, classes) {
  const sheet = svg("svg", { viewBox: `0 0 ${item.width} ${item.height}`, "aria-hidden": "true" });
  const colors = new Map();
  // The surest last, so that it lies on top.
  for (const object of item.kept.toReversed()) {
    const { color } = classes.get(object.class);
    if (!colors.has(color)) colors.set(color, []);
    colors.get(color).push(tracesOf(object, item));
  }
  for (const [color, traces] of colors) sheet.append(...strokes(traces, color));
  return sheet;
}

/** Return the nodes for some traces of one colour. */
function strokes(traces, color) {
  const [lines, areas, dots] = ["lines", "areas", "dots"].map((key) => traces.map((each) => each[key]).join(""));
  const nodes = [];
  if (areas) nodes.push(svg("path", { class: "area", d: areas, fill: color }));
  if (lines || areas) {
    nodes.push(svg("path", { class: "halo", d: lines + areas }));
    nodes.push(svg("path", { class: "line", d: lines + areas, stroke: color }));
  }
  if (dots) {
    nodes.push(svg("path", { class: "rim", d: dots }));
    nodes.push(svg("path", { class: "dot", d: dots, stroke: color }));
  }
  return nodes;
}

/** Return an object as path data: open and closed lines, areas, dots. */
function tracesOf({ box, figure }, { width, height }, scale = 1) {
  const at = (x, y) => `${round(x * scale)} ${round(y * scale)}`;
  const [x1, x2] = [box[0], box[2]].map((x) => Math.min(Math.max(x, 0), width));
  const [y1, y2] = [box[1], box[3]].map((y) => Math.min(Math.max(y, 0), height));
  let lines = figure.unboxed ? "" : `M${at(x1, y1)}L${at(x2, y1)}L${at(x2, y2)}L${at(x1, y2)}Z`;
  for (const path of figure.lines ?? []) lines += trace(path, at);
  const points = figure.points ?? [];
  const place = (number) => at(points[2 * number], points[2 * number + 1]);
  const bones = figure.bones ?? [];
  for (let each = 0; each < bones.length; each += 2) lines += `M${place(bones[each])}L${place(bones[each + 1])}`;
  let dots = "";
  for (let each = 0; each < points.length / 2; each += 1) dots += `M${place(each)}h0`;
  const areas = (figure.rings ?? []).map((ring) => `${trace(ring, at)}Z`).join("");
  return { lines, areas, dots };
}

function trace(flat, at) {
  let path = "";
  for (let each = 0; each < flat.length; each += 2) path += `${each ? "L" : "M"}${at(flat[each], flat[each + 1])}`;
  return path;
}

function round(value) {
  return Math.round(value * 100) / 100;
}

/** Whether black is easier to read on a colour than white: the weights of ITU-R BT.601. */
function isLight(color) {
  const [red, green, blue] = [1, 3, 5].map((at) => parseInt(color.slice(at, at + 2), 16));
  return 0.299 * red + 0.587 * green + 0.114 * blue > 140;
}
