// What failed, and which pictures are missing: a row each, the first of very many.

const FIRST_FAILURES = 500; // a run may fail wholly, and the page opens quickly all the same
const MOST_PRINTED_FAILURES = 5000;

class Failures {
  constructor(element, { items, open }) {
    this.items = items.filter((item) => item.failed || item.reason);
    this.shown = FIRST_FAILURES;
    this.element = element;
    this.rows = element.querySelector("tbody");
    this.more = element.querySelector("#more-failures");
    this.rest = element.querySelector("#failures-rest");
    element.hidden = this.items.length === 0;
    element.open = open && this.items.length > 0 && this.items.length <= 3;
    element.querySelector("#failures-title").textContent = this.title();
    this.more.textContent = `Show all ${this.items.length.toLocaleString("en")}`;
    this.more.addEventListener("click", () => {
      this.shown = Infinity;
      this.lay(this.shown);
      this.rows.closest(".scroll").focus();
    });
    addEventListener("beforeprint", () => this.print());
    addEventListener("afterprint", () => this.unprint());
    this.lay(this.shown);
  }

  /** Say what there is in the words of the totals: a picture that is missing is no failure. */
  title() {
    const failed = this.items.filter((item) => item.failed).length;
    const missing = this.items.length - failed;
    const parts = [failed && `What failed: ${failed.toLocaleString("en")}`, missing && `Pictures missing: ${missing.toLocaleString("en")}`];
    return parts.filter(Boolean).join(" · ");
  }

  lay(most) {
    this.rows.replaceChildren(...this.items.slice(0, most).map(failureRow));
    this.more.hidden = this.items.length <= most;
  }

  /** On paper nobody can open or ask for anything: all is there, or it is said how much is not. */
  print() {
    this.wasOpen ??= this.element.open;
    this.element.open = true;
    const most = Math.max(MOST_PRINTED_FAILURES, Math.min(this.shown, this.items.length));
    this.lay(most);
    this.more.hidden = true;
    this.rest.hidden = this.items.length <= most;
    this.rest.textContent = `and ${(this.items.length - most).toLocaleString("en")} more`;
  }

  unprint() {
    this.element.open = this.wasOpen ?? this.element.open;
    this.wasOpen = null;
    this.rest.hidden = true;
    this.lay(this.shown);
  }
}

function failureRow({ index, name, path, reason, failed }) {
  const texts = [index ?? "–", name, path, failed ? reason : `no picture: ${reason}`];
  const row = html("tr", {}, ...texts.map((text) => html("td", { textContent: text })));
  row.firstChild.className = "number";
  return row;
}
