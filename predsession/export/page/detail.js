// One picture, large: its objects drawn with their names, and as a table.

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
    const place = `${at + 1} of ${this.items.length.toLocaleString("en")}`;
    this.element.querySelector("#detail-name").replaceChildren(...breakable(nameOf(item)));
    this.element.querySelector("#detail-facts").replaceChildren(...breakable(factsOf(item, place)));
    // Not `disabled`: a button that has the focus would lose it, and with it the keys would go nowhere.
    this.element.querySelector("#previous").ariaDisabled = String(at === 0);
    this.element.querySelector("#next").ariaDisabled = String(at === this.items.length - 1);
    const reason = this.element.querySelector("#detail-reason");
    reason.hidden = !item.reason;
    reason.textContent = item.failed ? item.reason : `The picture is missing: ${item.reason}`;
    this.element.querySelector("#detail-note").textContent = noteOf(item);
    this.element.querySelector("#detail-tags").replaceChildren(...tagsOf(item.tags));
    this.rows.parentElement.hidden = item.kept.length === 0;
    this.element.querySelector("#object-keys").hidden = item.kept.length === 0;
    this.element.querySelector("#picture-keys").hidden = this.items.length < 2;
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
    this.lead(item.file);
    if (!item.file) return;
    const real = html("img", { alt: this.image?.alt ?? "" });
    real.addEventListener("load", () => {
      if (this.item !== item) return;
      if (real.naturalWidth !== item.width || real.naturalHeight !== item.height) return this.lead(null);
      this.image = real;
      this.draw();
    });
    real.addEventListener("error", () => this.item === item && this.lead(null));
    real.src = item.file;
  }

  /** Lead to a file, or to none. */
  lead(file) {
    const original = this.element.querySelector("#original");
    const stood = original === document.activeElement;
    original.hidden = !file;
    original.href = file ?? "";
    if (stood && !file) this.element.querySelector("#found").focus(); // or the keys would go nowhere
  }

  row({ class: number, score, box, track, tags }) {
    const { title, color } = this.classes.get(number);
    const name = html("td", { title }, swatch(color), html("span", { className: "name", textContent: title }));
    if (tags.length) name.append(html("ul", { className: "tags" }, ...tagsOf(tags)));
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
    this.names = svg("svg", { width, height, class: "names", "aria-hidden": "true" });
    this.names.append(...labelsOf(item.kept, { classes: this.classes, scale: this.scale, wide: width, high: height, room: [stage.clientWidth, room] }));
    this.sheet.append(this.drawing, this.names);
  }

  figure(object, row) {
    const traces = [tracesOf(object, this.item, this.scale)];
    return svg("g", { "data-row": row }, ...strokes(traces, this.classes.get(object.class).color));
  }

  /** Bring one object out, or none. */
  point(row) {
    if (!this.drawing) return;
    for (const part of [...this.drawing.children, ...this.names.children]) {
      part.classList.toggle("faint", row !== null && Number(part.dataset.row) !== row);
    }
  }
}

function factsOf({ path, failed, width, height, frame, seconds, index }, place) {
  const parts = [place];
  if (index !== null) parts.push(`index ${index}`);
  if (!failed) parts.push(`${width} × ${height} pixels`);
  if (frame !== null && seconds !== null) parts.push(`${seconds.toFixed(3)} s`);
  if (path) parts.push(path);
  return parts.join(" · ");
}

/** Return a text that is broken behind the folders of a path, rather than within a name. */
function breakable(text) {
  return text.split(/(?<=\/)/).flatMap((part) => [part, html("wbr")]);
}

function noteOf({ failed, total, count, keptFurther }) {
  if (failed) return "";
  const parts = [counted(count, "object")];
  const further = sumOf(keptFurther);
  if (further) parts.push(`${further.toLocaleString("en")} of them, with the lowest scores, ${further === 1 ? "is" : "are"} only counted`);
  if (count < total) parts.push(`${(total - count).toLocaleString("en")} hidden by the filters`);
  return parts.join(" · ");
}

/** Return tags as items of a list. */
function tagsOf(tags) {
  const said = (text) => (isBlank(text) ? "(no name)" : text);
  return tags.map(([name, ...value]) => html("li", { textContent: [said(name), ...value].join(": ") }));
}

function swatch(color) {
  const mark = html("span", { className: "swatch" });
  mark.style.background = color;
  return mark;
}
