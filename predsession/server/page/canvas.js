// A picture and its figures on a canvas, at the screen's own resolution.

const TALLEST = 0.72; // of the window's height
const MOST_ENLARGED = 6;
const LABEL_PX = 13;

export class Canvas {
  /** `element` is the canvas, `frame` what it has to fit into. */
  constructor(element, frame) {
    this.element = element;
    this.frame = frame;
    this.pen = element.getContext("2d");
    this.image = null;
    this.size = null;
    this.figures = [];
    this.pointed = null;
    new ResizeObserver(() => this.draw()).observe(frame.parentElement);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
  }

  /** Whether there is a picture under the figures. */
  get drawn() {
    return this.image !== null;
  }

  /** Show another picture, or none, as yet without figures. */
  use(image, words) {
    this.image?.close();
    this.image = image;
    this.size = image && { width: image.width, height: image.height };
    this.show(this.size, [], words);
  }

  /** Show figures that lie in a frame of this size. */
  show(size, figures, words) {
    this.size = size ?? this.size;
    this.figures = figures.map((figure) => ({ ...figure, veil: figure.mask && veilOf(figure) }));
    this.pointed = null;
    this.describe(words);
    this.draw();
  }

  /** Bring one figure out, or none. */
  point(number) {
    this.pointed = number;
    this.draw();
  }

  describe(words) {
    this.element.setAttribute("aria-label", words);
  }

  draw() {
    this.element.hidden = this.size === null;
    if (this.size === null) return;
    this.fit();
    const { pen, element } = this;
    pen.setTransform(1, 0, 0, 1, 0, 0);
    pen.clearRect(0, 0, element.width, element.height);
    if (this.image) pen.drawImage(this.image, 0, 0, element.width, element.height);
    const faint = (figure) => this.pointed !== null && figure !== this.figures[this.pointed];
    const ranked = this.figures.toSorted((one, other) => (other.score ?? 1) - (one.score ?? 1));
    // The surest lies on top, and is the first to be named.
    for (const figure of ranked.toReversed()) this.shape(figure, faint(figure));
    const taken = [];
    for (const figure of ranked) if (!faint(figure)) this.label(figure, taken);
  }

  fit() {
    const { width, height } = this.size;
    const room = this.frame.parentElement.clientWidth;
    const zoom = Math.min(room / width, (innerHeight * TALLEST) / height, MOST_ENLARGED);
    const [w, h] = [Math.max(1, Math.floor(width * zoom)), Math.max(1, Math.floor(height * zoom))];
    this.ratio = devicePixelRatio || 1;
    this.scale = (w * this.ratio) / width;
    this.element.width = w * this.ratio;
    this.element.height = h * this.ratio;
    this.element.style.width = `${w}px`;
  }

  shape(figure, faint) {
    const { pen, scale } = this;
    pen.globalAlpha = faint ? 0.25 : 1;
    pen.lineJoin = "round";
    if (figure.veil) {
      const { x, y, image } = figure.mask;
      pen.drawImage(figure.veil, x * scale, y * scale, image.width * scale, image.height * scale);
    }
    if (figure.boxed) this.stroke(boxPath(figure.box, scale), figure.color);
    if (figure.rings.length) this.rings(figure);
    for (const [from, to] of figure.bones) this.stroke(pathOf([from, to], scale), figure.color);
    for (const dot of figure.dots) this.dot(dot, figure.color);
    pen.globalAlpha = 1;
  }

  rings({ rings, open, color }) {
    const path = new Path2D();
    for (const ring of rings) path.addPath(pathOf(ring, this.scale, !open));
    if (!open) {
      this.pen.fillStyle = `${color}59`;
      this.pen.fill(path, "evenodd");
    }
    this.stroke(path, color);
  }

  /** Draw a line with a dark edge, so that it shows on any picture. */
  stroke(path, color) {
    const { pen, ratio } = this;
    pen.strokeStyle = "rgb(0 0 0 / 45%)";
    pen.lineWidth = 4 * ratio;
    pen.stroke(path);
    pen.strokeStyle = color;
    pen.lineWidth = 2.4 * ratio;
    pen.stroke(path);
  }

  dot([x, y], color) {
    const path = new Path2D();
    path.arc(x * this.scale, y * this.scale, 3.5 * this.ratio, 0, 7);
    this.pen.fillStyle = color;
    this.pen.fill(path);
    this.stroke(path, color);
  }

  /** Write a figure's name where no other name is; without a place it is left out, as the table has it too. */
  label({ title, score, box, color }, taken) {
    const { pen, ratio, scale } = this;
    const text = score === null ? title : `${title}  ${score.toFixed(2)}`;
    pen.font = `600 ${LABEL_PX * ratio}px system-ui, sans-serif`;
    const width = Math.min(pen.measureText(text).width + 12 * ratio, this.element.width);
    const height = (LABEL_PX + 7) * ratio;
    const places = this.places(box.map((side) => side * scale), width, height);
    const free = places.find(([a, b]) => !taken.some((other) => overlap([a, b, width, height], other)));
    if (!free) return;
    const [x, y] = free;
    taken.push([x, y, width, height]);
    pen.fillStyle = color;
    pen.beginPath();
    pen.roundRect(x, y, width, height, 4 * ratio);
    pen.fill();
    pen.fillStyle = light(color) ? "#101414" : "#ffffff";
    pen.textBaseline = "middle";
    pen.fillText(text, x + 6 * ratio, y + height / 2 + ratio, width - 12 * ratio);
  }

  places([x1, y1, , y2], width, height) {
    const inside = (x, y) => [clamp(x, this.element.width - width), clamp(y, this.element.height - height)];
    const rows = [y1 - height, y1, y1 + height, y1 + 2 * height, y2, y2 - height, y2 - 2 * height];
    return rows.map((y) => inside(x1, y));
  }
}

/** Return a mask in its class's colour, half transparent. */
function veilOf({ mask: { image }, color }) {
  const sheet = new OffscreenCanvas(image.width, image.height);
  const pen = sheet.getContext("2d");
  pen.drawImage(image, 0, 0);
  const pixels = pen.getImageData(0, 0, image.width, image.height);
  const clear = pixels.data.some((value, at) => at % 4 === 3 && value === 0);
  const rgb = [1, 3, 5].map((at) => parseInt(color.slice(at, at + 2), 16));
  for (let at = 0; at < pixels.data.length; at += 4) {
    // A PNG without transparency says with black what is not the object.
    const lit = clear ? pixels.data[at + 3] > 0 : pixels.data[at] + pixels.data[at + 1] + pixels.data[at + 2] > 0;
    pixels.data.set([...rgb, lit ? 130 : 0], at);
  }
  pen.putImageData(pixels, 0, 0);
  return sheet;
}

function boxPath([x1, y1, x2, y2], scale) {
  const path = new Path2D();
  path.rect(x1 * scale, y1 * scale, (x2 - x1) * scale, (y2 - y1) * scale);
  return path;
}

function pathOf(points, scale, closed = false) {
  const path = new Path2D();
  points.forEach(([x, y], number) => (number ? path.lineTo(x * scale, y * scale) : path.moveTo(x * scale, y * scale)));
  if (closed) path.closePath();
  return path;
}

function overlap([ax, ay, aw, ah], [bx, by, bw, bh]) {
  return ax < bx + bw && bx < ax + aw && ay < by + bh && by < ay + ah;
}

function clamp(value, most) {
  return Math.max(0, Math.min(value, most));
}

function light(color) {
  const [red, green, blue] = [1, 3, 5].map((at) => parseInt(color.slice(at, at + 2), 16));
  return 0.299 * red + 0.587 * green + 0.114 * blue > 150;
}
