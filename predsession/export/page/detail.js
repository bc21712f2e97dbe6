// One picture, large: its objects drawn with their names, and as a table.

const LABEL_PX = 13;
const MOST_LABELS = 200;
const MOST_ENLARGED = 4;

class Detail {
  constructor(element, { classes, moved }) {
    Object.assign(this, { element, classes, moved, items: [], at: 0, item: null });
    this.stage = element.querySelector("#stage");
    this.sheet = element.querySelector("#sheet");
    this.rows = element.querySelector("tbody");
    new ResizeObserver(() => this.item && this.draw()).observe(this.stage);
    element.querySelector("#previous").addEventListener("click", () => this.step(-1));
    element.querySelector("#next").addEventListener("click", () => this.step(1));
    element.querySelector("#close").addEventListener("click", () => element.close());
    element.addEventListener("keydown", (event) => this.key(event));
    element.addEventListener("close", () => this.closed());
    element.addEventListener("click", (event) => event.target === element && element.close());
    for (const kind of ["focusin", "pointerover"]) {
      this.rows.addEventListener(kind, (event) => this.point(event.target.closest("tr")?.sectionRowIndex ?? null));
    }
    this.rows.addEventListener("pointerleave", () => this.point(null));
    this.rows.addEventListener("focusout", () => this.point(null));
  }

  open(items, at) {
    this.items = items;
    this.element.querySelector("#detail-said").textContent = "";
    this.show(at);
    this.element.showModal();
    this.draw();
    this.element.querySelector("#close").focus();
  }

  closed() {
    this.item = null;
    this.sheet.replaceChildren();
    this.moved(this.at);
  }

  step(by) {
    const at = this.at + by;
    if (at < 0 || at >= this.items.length) return;
    this.show(at);
    // A dialog's name is read when it opens, and not again.
    this.element.querySelector("#detail-said").textContent = `${nameOf(this.item)}: ${spoken(this.item, this.classes)}`;
  }

  key(event) {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    if (event.key === "ArrowLeft" || event.key === "ArrowRight") {
      event.preventDefault();
      this.step(event.key === "ArrowLeft" ? -1 : 1);
    }
    if (event.key === "ArrowUp" || event.key === "ArrowDown") {
      event.preventDefault();
      this.stand(event.key === "ArrowUp" ? -1 : 1);
    }
  }

  /** Move from object to object. */
  stand(by) {
    const rows = [...this.rows.children];
    const now = rows.indexOf(document.activeElement);
    const next = rows[Math.min(Math.max(now < 0 ? (by > 0 ? 0 : rows.length - 1) : now + by, 0), rows.length - 1)];
    next?.focus();
  }

  show(at) {
    this.at = at;
    this.item = this.items[at];
    const { item } = this;
    this.element.querySelector("#detail-name").textContent = nameOf(item);
    this.element.querySelector("#detail-facts").textContent = factsOf(item, `${at + 1} of ${this.items.length.toLocaleString("en")}`);
    // Not `disabled`: a button that has the focus would lose it, and with it the keys would go nowhere.
    this.element.querySelector("#previous").ariaDisabled = String(at === 0);
    this.element.querySelector("#next").ariaDisabled = String(at === this.items.length - 1);
    const reason = this.element.querySelector("#detail-reason");
    reason.hidden = !item.reason;
    reason.textContent = item.failed ? item.reason : `The picture is missing: ${item.reason}`;
    this.element.querySelector("#detail-note").textContent = noteOf(item);
    this.rows.parentElement.hidden = item.kept.length === 0;
    this.rows.parentElement.classList.toggle("untracked", item.kept.every(({ track }) => track === null));
    const stood = this.rows.contains(document.activeElement);
    this.rows.replaceChildren(...item.kept.map((object) => this.row(object)));
    if (stood) this.element.querySelector("#found").focus(); // the row that had the focus is gone
    this.image = item.thumb && html("img", { src: item.thumb, alt: `${nameOf(item)}: ${spoken(item, this.classes)}` });
    this.real(item);
    this.draw();
  }

  /** Show the picture itself where it is still there and still has its size; else the thumbnail stays. */
  real(item) {
    if (!item.file) return;
    const real = html("img", { alt: this.image?.alt ?? "" });
    real.addEventListener("load", () => {
      if (this.item !== item || real.naturalWidth !== item.width || real.naturalHeight !== item.height) return;
      this.image = real;
      this.draw();
    });
    real.src = item.file;
  }

  row({ class: number, score, box, track }) {
    const { title, color } = this.classes.get(number);
    const name = html("td", { title }, swatch(color), html("span", { className: "name", textContent: title }));
    const cells = [score === null ? "–" : score.toFixed(3), box.map((side) => side.toFixed(0)).join(", "), track ?? ""];
    const row = html("tr", { tabIndex: -1 }, name, ...cells.map((text) => html("td", { textContent: text })));
    row.children[1].className = row.children[3].className = "number";
    return row;
  }

  draw() {
    const { item, stage } = this;
    if (!item || !stage.clientWidth) return;
    this.sheet.replaceChildren();
    this.sheet.hidden = item.failed;
    if (item.failed) return;
    const room = Math.max(120, stage.clientHeight - this.element.querySelector("#detail-reason").offsetHeight);
    this.scale = Math.min(stage.clientWidth / item.width, room / item.height, Math.max(MOST_ENLARGED, 320 / Math.max(item.width, item.height)));
    const [width, height] = [item.width * this.scale, item.height * this.scale];
    this.sheet.style.width = `${width}px`;
    this.sheet.style.height = `${height}px`;
    if (this.image) this.sheet.append(this.image);
    this.drawing = svg("svg", { width, height, "aria-hidden": "true" });
    this.drawing.append(...item.kept.map((object, row) => this.figure(object, row)).toReversed());
    this.drawing.append(...this.labels(item.kept.slice(0, MOST_LABELS), width, height));
    this.sheet.append(this.drawing);
  }

  figure(object, row) {
    const traces = [tracesOf(object, this.item, this.scale)];
    return svg("g", { "data-row": row }, ...strokes(traces, this.classes.get(object.class).color));
  }

  /** Write names where no other name is; without a place one is left out, as the table has it too. */
  labels(objects, width, height) {
    const pen = (this.pen ??= document.createElement("canvas").getContext("2d"));
    pen.font = `600 ${LABEL_PX}px system-ui, sans-serif`;
    const taken = [];
    return objects.flatMap((object, row) => {
      const { title, color } = this.classes.get(object.class);
      const text = [title.slice(0, 60), object.score?.toFixed(2), object.track === null ? null : `#${object.track}`].filter((part) => part != null).join("  ");
      const size = [Math.min(Math.ceil(pen.measureText(text).width) + 10, width), LABEL_PX + 6];
      const place = placeOf(object.box.map((side) => side * this.scale), size, [width, height], taken);
      if (!place) return [];
      taken.push([...place, ...size]);
      const [x, y] = place;
      const ground = svg("rect", { x, y, width: size[0], height: size[1], rx: 3, fill: color });
      const name = svg("text", { x: x + 5, y: y + LABEL_PX, fill: isLight(color) ? "#101414" : "#ffffff" }, text);
      return [svg("g", { class: "label", "data-row": row }, ground, name)];
    });
  }

  /** Bring one object out, or none. */
  point(row) {
    if (!this.drawing) return;
    for (const part of this.drawing.children) {
      part.classList.toggle("faint", row !== null && Number(part.dataset.row) !== row);
    }
  }
}

/** Return the first free place for a label at a box: above it, inside it, below it. */
function placeOf([x1, y1, , y2], [width, height], [wide, high], taken) {
  const x = Math.min(Math.max(x1, 0), Math.max(wide - width, 0));
  const rows = [y1 - height, y1, y1 + height, y2 - height, y2, y1 + 2 * height];
  const inside = rows.map((y) => Math.min(Math.max(y, 0), Math.max(high - height, 0)));
  const free = (y) => !taken.some(([a, b, w, h]) => x < a + w && a < x + width && y < b + h && b < y + height);
  const y = inside.find(free);
  return y === undefined ? null : [x, y];
}

function factsOf({ path, failed, width, height, frame, seconds, index }, place) {
  const parts = [place, `index ${index}`];
  if (!failed) parts.push(`${width} × ${height} pixels`);
  if (frame !== null && seconds !== null) parts.push(`${seconds.toFixed(3)} s`);
  if (path) parts.push(path);
  return parts.join(" · ");
}

function noteOf({ failed, objects, kept, hidden }) {
  if (failed) return "";
  const parts = [counted(kept.length, "object")];
  if (kept.length < objects.length) parts.push(`${(objects.length - kept.length).toLocaleString("en")} hidden by the filters`);
  if (hidden) parts.push(`${hidden.toLocaleString("en")} with the lowest scores are not in this page`);
  return parts.join(" · ");
}

function swatch(color) {
  const mark = html("span", { className: "swatch" });
  mark.style.background = color;
  return mark;
}
