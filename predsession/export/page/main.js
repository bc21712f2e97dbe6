// The controls, and what they do.

const PHONE = 760; // as in report.css
const byId = (id) => document.getElementById(id);
const report = readReport();
report.range = scoreRange(report.items);
const wish = { name: "", show: "all", sort: "order", descending: false, without: new Set(), ...endsOf(report.range) };
const detail = new Detail(byId("detail"), { classes: report.classes, moved: (at) => grid.go(at) });
const grid = new Grid(byId("grid"), { classes: report.classes, open: (at) => detail.open(grid.items, at) });

function endsOf({ low, high }) {
  return { least: low, most: high };
}

/** Look at everything anew: items, bars, counts. */
function refresh() {
  const counts = sift(report, wish);
  const chosen = choose(report, wish);
  grid.show(chosen);
  const objects = sumOf(chosen);
  byId("shown").textContent = `${chosen.length.toLocaleString("en")} of ${counted(report.items.length, "item")} shown, ${counted(objects, "object")}`;
  byId("nothing").hidden = chosen.length > 0;
  byId("nothing").textContent = report.items.length ? "Nothing passes these filters." : "This report holds no picture.";
  drawHistogram(counts);
  for (const [number, { count }] of classRows) {
    count.textContent = (counts.classes.get(number) ?? 0).toLocaleString("en");
  }
}

let waiting = false;
function refreshSoon() {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => {
    waiting = false;
    refresh();
  });
}

// Scores.

function drawHistogram({ bars, unscored }) {
  const { low, high } = report.range;
  const tallest = Math.max(1, ...bars);
  const width = (high - low) / BARS;
  const edge = (bar) => (low + bar * width).toFixed(2);
  byId("histogram").replaceChildren(...bars.map((count, bar) => {
    const height = count ? Math.max(2, (count / tallest) * 100) : 0;
    const [from, to] = [low + bar * width, low + (bar + 1) * width];
    const inside = to > wish.least + 1e-9 && from < wish.most - 1e-9;
    const title = svg("title", {}, `${edge(bar)} to ${edge(bar + 1)}: ${counted(count, "object")}`);
    return svg("rect", { x: bar + 0.08, y: 100 - height, width: 0.84, height, class: inside ? "in" : "out", "data-count": count }, title);
  }));
  const total = bars.reduce((sum, count) => sum + count, 0);
  const most = bars.indexOf(tallest);
  const peak = most < 0 ? "" : `; most, ${tallest.toLocaleString("en")}, from ${edge(most)} to ${edge(most + 1)}`;
  byId("histogram").setAttribute("aria-label", `Histogram of ${counted(total, "score")}${peak}`);
  byId("unscored").textContent = unscored ? `${counted(unscored, "object")} without a score` : "";
}

function layScores() {
  const { low, high } = report.range;
  const step = (high - low) / 100;
  for (const [id, key] of [["least", "least"], ["most", "most"]]) {
    Object.assign(byId(id), { min: low, max: high, step });
    byId(id).value = wish[key];
    byId(id).addEventListener("input", () => {
      // Neither end passes the other.
      wish[key] = id === "least" ? Math.min(Number(byId(id).value), wish.most) : Math.max(Number(byId(id).value), wish.least);
      tellScores();
      refreshSoon();
    });
  }
  tellScores();
}

function tellScores() {
  for (const id of ["least", "most"]) {
    byId(id).value = wish[id];
    byId(`${id}-value`).textContent = Number(wish[id]).toFixed(2);
  }
  // Where the handles lie on one another, the pointer takes the upper: it must be the one that can still go.
  const { low, high } = report.range;
  byId("least").style.zIndex = wish.least - low > high - wish.most ? 1 : 0;
}

// Classes.

const classRows = new Map();

function layClasses() {
  const ranked = [...report.classes.values()].filter(({ total }) => total).sort((one, other) => other.total - one.total);
  for (const { number, title, color } of ranked) {
    const box = html("input", { type: "checkbox", checked: true });
    const count = html("span", { className: "count" });
    box.addEventListener("change", () => {
      wish.without[box.checked ? "delete" : "add"](number);
      refreshSoon();
    });
    const row = html("li", {}, html("label", { title }, box, swatch(color), html("span", { className: "name", textContent: title }), count));
    classRows.set(number, { row, box, count, title: title.toLowerCase() });
    byId("classes").querySelector("ul").append(row);
  }
  byId("class-search").parentElement.hidden = ranked.length === 0;
  byId("class-search").addEventListener("input", findClasses);
  byId("all-classes").addEventListener("click", () => tickClasses(true));
  byId("no-classes").addEventListener("click", () => tickClasses(false));
}

function findClasses() {
  const part = byId("class-search").value.trim().toLowerCase();
  let found = 0;
  for (const { row, title } of classRows.values()) {
    row.hidden = !title.includes(part);
    found += !row.hidden;
  }
  byId("no-class").hidden = found > 0;
}

/** Tick all classes that are listed, or none of them. */
function tickClasses(checked) {
  for (const [number, { row, box }] of classRows) {
    if (row.hidden) continue;
    box.checked = checked;
    wish.without[checked ? "delete" : "add"](number);
  }
  refreshSoon();
}

// Name, kind, order.

function layBar() {
  byId("name-search").form.addEventListener("submit", (event) => event.preventDefault());
  for (const [id, key] of [["name-search", "name"], ["show", "show"], ["sort", "sort"]]) {
    byId(id).addEventListener("input", () => {
      wish[key] = byId(id).value;
      refreshSoon();
    });
  }
  byId("direction").addEventListener("click", () => {
    wish.descending = !wish.descending;
    tellDirection();
    refreshSoon();
  });
  byId("reset").addEventListener("click", clearAll);
}

function tellDirection() {
  byId("direction").textContent = wish.descending ? "↓" : "↑";
  byId("direction").setAttribute("aria-label", wish.descending ? "Descending; change to ascending" : "Ascending; change to descending");
}

function clearAll() {
  Object.assign(wish, { name: "", show: "all", ...endsOf(report.range) });
  wish.without.clear();
  byId("name-search").value = byId("class-search").value = "";
  byId("show").value = "all";
  for (const { box } of classRows.values()) box.checked = true;
  findClasses();
  tellScores();
  refresh();
}

// What there is, and what failed.

function layTotals() {
  const { items } = report;
  const count = (test) => items.filter(test).length;
  const totals = [
    ["Pictures", count((item) => !item.failed)],
    ["Objects", items.reduce((sum, item) => sum + item.total, 0)],
    ["Classes", classRows.size],
    ["Without objects", count((item) => !item.failed && !item.total)],
    ["Failed", count((item) => item.failed)],
    ["Picture missing", count((item) => !item.failed && !item.thumb)],
  ];
  byId("totals").replaceChildren(...totals.map(([what, number], place) => {
    const group = html("div", {}, html("dt", { textContent: what }), html("dd", { textContent: number.toLocaleString("en") }));
    if (place > 3 && number) group.className = "bad";
    return group;
  }));
}

function layScheme() {
  const schemes = [["system", "light dark"], ["light", "light"], ["dark", "dark"]];
  let at = 0;
  byId("scheme").addEventListener("click", () => {
    at = (at + 1) % schemes.length;
    byId("scheme").textContent = `Colours: ${schemes[at][0]}`;
    document.documentElement.style.colorScheme = schemes[at][1];
  });
}

layScheme();
layScores();
layClasses();
layBar();
layTotals();
new Failures(byId("failures"), { items: report.items, open: innerWidth >= PHONE });
if (!report.complete) {
  byId("cut").hidden = false;
  byId("cut").textContent = `The run that wrote this page was broken off. It holds the first ${counted(report.items.length, "item")}.`;
}
// On a phone the pictures come first.
if (innerWidth < PHONE) byId("filters").open = false;
refresh();
