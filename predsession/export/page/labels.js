// Names beside the objects of the larger view: each where no other is, without a place one is left out, as the
// table has it too.

const LABEL_PX = 13;
const MOST_LABELS = 200;
const pen = document.createElement("canvas").getContext("2d");

/** Return the labels of a picture that is shown `wide` and `high`, in the middle of a room of another size. */
function labelsOf(objects, { classes, scale, wide, high, room }) {
  pen.font = `600 ${LABEL_PX}px system-ui, sans-serif`;
  const taken = [];
  return objects.slice(0, MOST_LABELS).flatMap((object, row) => {
    const { color } = classes.get(object.class);
    const [text, width] = labelOf(object, classes, Math.max(wide, room[0]));
    const size = [width, LABEL_PX + 6];
    const ends = [endsFor(wide, size[0], room[0]), endsFor(high, size[1], room[1])];
    const place = placeOf(object.box.map((side) => side * scale), size, ends, taken);
    if (!place) return [];
    taken.push([...place, ...size]);
    const [x, y] = place;
    const ground = svg("rect", { x, y, width: size[0], height: size[1], rx: 3, fill: color });
    const name = svg("text", { x: x + 5, y: y + LABEL_PX, fill: isLight(color) ? "#101414" : "#ffffff" }, text);
    return [svg("g", { class: "label", "data-row": row }, ground, name)];
  });
}

/** Return a label's text and width: of a class's name as much as there is room for. */
function labelOf({ class: number, score, track }, classes, most) {
  const title = classes.get(number).title.slice(0, 60);
  const rest = [score?.toFixed(2), track === null ? null : `#${track}`].filter((part) => part != null);
  const textOf = (name) => [name, ...rest].join("  ");
  const widthOf = (text) => Math.ceil(pen.measureText(text).width) + 10;
  let text = textOf(title);
  for (let length = title.length - 1; widthOf(text) > most && length > 0; length -= 1) {
    text = textOf(`${title.slice(0, length)}…`);
  }
  return [text, Math.min(widthOf(text), most)];
}

/** Return where a label may begin: within the picture if it fits there, else as far as the room goes. */
function endsFor(side, size, room) {
  const around = size > side ? Math.max((room - side) / 2, 0) : 0;
  return [-around, Math.max(side + around - size, -around)];
}

/** Return the first free place for a label at a box: above it, inside it, below it. */
function placeOf([x1, y1, , y2], [width, height], [across, down], taken) {
  const within = (value, [low, high]) => Math.min(Math.max(value, low), high);
  const x = within(x1, across);
  const rows = [y1 - height, y1, y1 + height, y2 - height, y2, y1 + 2 * height].map((y) => within(y, down));
  const free = (y) => !taken.some(([a, b, w, h]) => x < a + w && a < x + width && y < b + h && b < y + height);
  const y = rows.find(free);
  return y === undefined ? null : [x, y];
}
