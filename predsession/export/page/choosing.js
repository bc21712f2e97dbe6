// Which items are shown, in which order: plain values in, plain values out.

const BARS = 40;

/** Return the range of all scores: 0 to 1, unless some lie outside of it. */
function scoreRange(items) {
  let [low, high] = [0, 1];
  for (const { objects, further } of items) {
    for (const { score } of [...objects, ...further]) {
      if (score === null) continue;
      low = Math.min(low, score);
      high = Math.max(high, score);
    }
  }
  return { low, high };
}

/** Whether a score lies within what is wished; an object without one passes while nothing is wished. */
function scorePasses(score, { least, most }, { low, high }) {
  if (score === null) return least <= low && most >= high;
  return (least <= low || score >= least) && (most >= high || score <= most);
}

/** Keep of each item the objects that pass, drawn or not, and count what the controls show: of the items that are asked for. */
function sift(report, wish) {
  const { range } = report;
  const asked = askedFor(wish);
  const counts = { bars: new Array(BARS).fill(0), classes: new Map(), unscored: 0 };
  for (const item of report.items) {
    const passing = (object) => scorePasses(object.score, wish, range);
    const kept = (object) => !wish.without.has(object.class) && passing(object);
    item.kept = item.objects.filter(kept);
    item.keptFurther = item.further.filter(kept);
    item.count = sumOf(item.kept) + sumOf(item.keptFurther);
    if (!asked(item)) continue;
    for (const object of [...item.objects, ...item.further]) {
      const wanted = !wish.without.has(object.class);
      if (passing(object)) counts.classes.set(object.class, (counts.classes.get(object.class) ?? 0) + object.count);
      if (wanted && object.score === null) counts.unscored += object.count;
      if (wanted && object.score !== null) counts.bars[barOf(object.score, range)] += object.count;
    }
  }
  return counts;
}

function barOf(score, { low, high }) {
  return Math.min(BARS - 1, Math.max(0, Math.floor(((score - low) / (high - low)) * BARS)));
}

const KINDS = {
  all: () => true,
  some: () => true,
  none: (item) => !item.failed && item.count === 0,
  failed: (item) => item.failed,
  gone: (item) => !item.failed && item.thumb === null,
};

/** Return whether an item has the name and is of the kind that are wished for. */
function askedFor(wish) {
  const part = wish.name.trim().toLowerCase();
  const named = (item) => !part || nameOf(item).toLowerCase().includes(part) || item.path.toLowerCase().includes(part);
  return (item) => KINDS[wish.show](item) && named(item);
}

/** Return the items that are wished for, in order. */
function choose(report, wish) {
  const { low, high } = report.range;
  const narrowed = wish.without.size > 0 || wish.least > low || wish.most < high;
  // A filter of objects asks for what has some; without one, everything is there, failures too.
  const needed = wish.show === "some" || (wish.show === "all" && narrowed);
  const asked = askedFor(wish);
  const chosen = report.items.filter((item) => asked(item) && (!needed || item.count > 0));
  return chosen.sort(ORDERS[wish.sort](wish.descending ? -1 : 1));
}

const COLLATOR = new Intl.Collator(undefined, { numeric: true });
const ORDERS = {
  order: (sign) => (one, other) => sign * (one.order - other.order),
  name: (sign) => (one, other) => sign * COLLATOR.compare(one.name, other.name) || one.order - other.order,
  count: (sign) => byNumber(sign, (item) => (item.failed ? null : item.count)),
  best: (sign) => byNumber(sign, (item) => extreme(item, Math.max)),
  worst: (sign) => byNumber(sign, (item) => extreme(item, Math.min)),
};

/** Order by a number, of which each is asked once; what has none comes last, whichever way. */
function byNumber(sign, number) {
  const known = new Map();
  const asked = (item) => {
    if (!known.has(item)) known.set(item, number(item));
    return known.get(item);
  };
  return (one, other) => {
    const [a, b] = [asked(one), asked(other)];
    if (a === null || b === null) return (a === null) - (b === null) || one.order - other.order;
    return sign * (a - b) || one.order - other.order;
  };
}

function extreme({ kept, keptFurther }, pick) {
  return [...kept, ...keptFurther].reduce((so_far, { score }) => (score === null ? so_far : so_far === null ? score : pick(so_far, score)), null);
}
