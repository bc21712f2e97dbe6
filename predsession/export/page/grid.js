// The grid of cards. Only the rows near the window are in the document: 5,000 pictures are as quick as 50.

const NARROWEST = 210; // of a card, in CSS pixels; two fit a phone
const GAP = 14;
const CAPTION_REM = 3.9;
const ROWS_AROUND = 2;
const MOST_PRINTED = 300;

class Grid {
  constructor(element, { classes, open }) {
    Object.assign(this, { element, classes, open, items: [], active: 0, cards: new Map(), columns: 1, waiting: false });
    addEventListener("scroll", () => this.later(), { passive: true });
    addEventListener("resize", () => this.later());
    new ResizeObserver(() => this.later()).observe(element);
    element.addEventListener("keydown", (event) => this.key(event));
    element.addEventListener("focusin", (event) => {
      const card = event.target.closest("[data-at]");
      if (card) this.stand(Number(card.dataset.at));
    });
    element.addEventListener("click", (event) => {
      const card = event.target.closest("[data-at]");
      if (card) this.open(Number(card.dataset.at));
    });
    addEventListener("beforeprint", () => this.print());
    addEventListener("afterprint", () => this.show(this.items));
  }

  /** Show other items, or the same with other objects. */
  show(items) {
    const standing = this.items[this.active];
    this.items = items;
    this.active = Math.max(0, items.indexOf(standing));
    this.element.classList.remove("printed");
    this.element.replaceChildren();
    this.cards.clear();
    this.render();
  }

  later() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      this.render();
    });
  }

  measure() {
    const width = this.element.clientWidth;
    const narrowest = Math.min(NARROWEST, (width - GAP) / 2);
    this.columns = Math.max(1, Math.floor((width + GAP) / (narrowest + GAP)));
    this.cardWidth = (width - GAP * (this.columns - 1)) / this.columns;
    const rem = parseFloat(getComputedStyle(document.documentElement).fontSize);
    this.cardHeight = this.cardWidth * 0.75 + CAPTION_REM * rem;
    this.rowHeight = this.cardHeight + GAP;
    this.element.style.height = `${Math.ceil(this.items.length / this.columns) * this.rowHeight}px`;
  }

  render() {
    if (this.element.classList.contains("printed") || !this.element.clientWidth) return;
    this.measure();
    const top = this.element.getBoundingClientRect().top;
    const first = Math.max(0, Math.floor(-top / this.rowHeight) - ROWS_AROUND) * this.columns;
    const last = (Math.ceil((innerHeight - top) / this.rowHeight) + ROWS_AROUND) * this.columns;
    const wanted = new Set();
    for (let at = first; at < Math.min(last, this.items.length); at += 1) wanted.add(at);
    // The card that Tab leads to, or that has the focus, stays wherever the window is.
    if (this.items.length) wanted.add(this.active);
    for (const [at, card] of this.cards) {
      if (wanted.has(at)) continue;
      card.remove();
      this.cards.delete(at);
    }
    for (const at of [...wanted].sort((one, other) => one - other)) this.put(at);
  }

  put(at) {
    if (!this.cards.has(at)) {
      const card = this.card(at);
      this.cards.set(at, card);
      const next = [...this.element.children].find((other) => Number(other.dataset.at) > at);
      this.element.insertBefore(card, next ?? null); // in their order, for those who listen to the page
    }
    const [row, column] = [Math.floor(at / this.columns), at % this.columns];
    const { style } = this.cards.get(at);
    style.transform = `translate(${column * (this.cardWidth + GAP)}px, ${row * this.rowHeight}px)`;
    style.width = `${this.cardWidth}px`;
    style.height = `${this.cardHeight}px`;
  }

  card(at) {
    const item = this.items[at];
    const said = spoken(item, this.classes);
    const button = html("button", { type: "button", tabIndex: at === this.active ? 0 : -1 }, this.picture(item), caption(item, said));
    button.setAttribute("aria-label", `${nameOf(item)}: ${said}`);
    const card = html("div", { className: item.failed ? "item failed" : "item" }, button);
    card.dataset.at = at;
    card.setAttribute("role", "listitem");
    card.setAttribute("aria-posinset", at + 1);
    card.setAttribute("aria-setsize", this.items.length);
    return card;
  }

  picture(item) {
    const frame = html("span", { className: "picture" });
    if (item.thumb) frame.append(html("img", { src: item.thumb, alt: "", decoding: "async", draggable: false }));
    if (item.reason) frame.append(html("span", { className: "reason" }, html("span", { textContent: item.reason })));
    if (!item.failed) {
      if (!item.thumb) frame.append(blank(item));
      frame.append(overlayOf(item, this.classes));
    }
    return frame;
  }

  key(event) {
    const page = Math.max(1, Math.floor(innerHeight / this.rowHeight)) * this.columns;
    const steps = {
      ArrowRight: 1, ArrowLeft: -1, ArrowDown: this.columns, ArrowUp: -this.columns,
      PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity,
    };
    if (!(event.key in steps) || event.ctrlKey || event.altKey || event.metaKey || !this.items.length) return;
    event.preventDefault();
    this.go(this.active + steps[event.key]);
  }

  /** Move the focus to a card, wherever it is. */
  go(at) {
    this.stand(Math.min(Math.max(at, 0), this.items.length - 1));
    this.render();
    const card = this.cards.get(this.active);
    const box = card.getBoundingClientRect();
    if (box.top < GAP || box.bottom > innerHeight - GAP) scrollBy(0, box.top - (innerHeight - box.height) / 2);
    card.firstChild.focus({ preventScroll: true });
    this.render();
  }

  stand(at) {
    const before = this.cards.get(this.active)?.firstChild;
    if (before) before.tabIndex = -1;
    this.active = at;
    const now = this.cards.get(at)?.firstChild;
    if (now) now.tabIndex = 0;
  }

  /** Put as many cards on paper as somebody may want, one after the other. */
  print() {
    this.cards.clear();
    this.element.style.height = "";
    this.element.classList.add("printed");
    const count = Math.min(this.items.length, MOST_PRINTED);
    this.element.replaceChildren(...Array.from({ length: count }, (_, at) => this.card(at)));
    const more = this.items.length - count;
    if (more > 0) this.element.append(html("p", { textContent: `and ${more.toLocaleString("en")} more` }));
  }
}

/** Return a gray sheet of the picture's shape, for one that is gone. */
function blank({ width, height }) {
  const sheet = svg("svg", { viewBox: `0 0 ${width} ${height}`, class: "blank", "aria-hidden": "true" });
  sheet.append(svg("rect", { width, height }));
  return sheet;
}

function caption(item, said) {
  return html("span", { className: "caption" },
    html("span", { className: "names", title: nameOf(item) }, ...namesOf(item)),
    html("span", { className: "quiet", textContent: item.failed ? "failed" : said }));
}

function nameOf({ name, frame }) {
  return frame === null ? name : `${name} · frame ${frame}`;
}

/** Part a name into its folder or clip, which may be cut short, and what tells it from its neighbours. */
function namesOf(item) {
  const name = nameOf(item);
  const at = item.frame === null ? name.lastIndexOf("/") + 1 : name.lastIndexOf("frame ");
  const rest = html("span", { className: "name", textContent: name.slice(at) });
  return at ? [html("span", { className: "folder", textContent: name.slice(0, at) }), rest] : [rest];
}

/** Say in a line what was found. */
function spoken({ failed, reason, kept, keptFurther, count: all }, classes) {
  if (failed) return `failed: ${reason}`;
  const counts = new Map();
  for (const { class: number, count } of [...kept, ...keptFurther]) counts.set(number, (counts.get(number) ?? 0) + count);
  const ranked = [...counts].sort((one, other) => other[1] - one[1]);
  const parts = ranked.slice(0, 4).map(([number, count]) => `${classes.get(number).title.slice(0, 40)} ${count.toLocaleString("en")}`);
  if (ranked.length > 4) parts.push("…");
  const total = counted(all, "object");
  return parts.length ? `${total}: ${parts.join(", ")}` : total;
}

function counted(count, what) {
  return `${count.toLocaleString("en")} ${what}${count === 1 ? "" : "s"}`;
}
