// The form of a model's settings. Only what was changed is sent, so that the model's own defaults hold.

import { make } from "./words.js";

const CONFIDENCES = ["conf", "confidence", "confidence_threshold", "confidence_thresh"];

export class Settings {
  /** `form` is filled here; `changed` is called after each change by the user. */
  constructor(form, changed) {
    this.form = form;
    this.changed = changed;
    this.models = [];
    this.model = { name: "", path: "", settings: {} };
    form.addEventListener("submit", (event) => event.preventDefault());
  }

  /** Take the models in; the form is made anew only where they differ, not under the user's fingers. */
  offer(models) {
    const same = JSON.stringify(models.map(essence)) === JSON.stringify(this.models.map(essence));
    this.models = models;
    if (same) return;
    this.choose(models.find((model) => model.name === this.model.name) ?? models[0]);
  }

  choose(model) {
    this.model = model ?? { name: "", path: "", settings: {} };
    const names = Object.keys(this.model.settings);
    const first = names.filter((name) => CONFIDENCES.includes(name)).slice(0, 1);
    const others = names.filter((name) => !first.includes(name) && name !== "classes");
    this.fields = new Map();
    this.form.replaceChildren();
    if (this.models.length > 1) this.form.append(this.chooser());
    for (const name of first) this.form.append(this.slider(name));
    if (others.length) this.form.append(this.more(others));
  }

  /** Return the settings that differ from the defaults; what is no value of its kind counts as unchanged. */
  chosen() {
    const chosen = {};
    for (const [name, read] of this.fields ?? []) {
      const value = read();
      if (value !== undefined && value !== this.model.settings[name]) chosen[name] = value;
    }
    return chosen;
  }

  chooser() {
    const select = make("select", { id: "model" });
    select.append(...this.models.map(({ name }) => new Option(name, name)));
    select.value = this.model.name;
    select.addEventListener("change", () => {
      this.choose(this.models.find((model) => model.name === select.value));
      this.form.querySelector("#model").focus();
      this.changed();
    });
    return make("div", { className: "setting" }, make("label", { htmlFor: "model" }, "Model"), select);
  }

  slider(name) {
    const input = make("input", { id: `setting-${name}`, type: "range", min: 0, max: 1, step: 0.01 });
    const output = make("output", { htmlFor: input.id });
    const tell = () => { output.value = Number(input.value).toFixed(2); };
    input.value = this.model.settings[name];
    tell();
    input.addEventListener("input", tell);
    const atFirst = input.value; // the default as the slider rounds it, which is not what to send
    this.watch(name, input, () => (input.value === atFirst ? undefined : Number(input.value)));
    const label = make("label", { htmlFor: input.id }, "Least confidence");
    return make("div", { className: "setting" }, make("div", { className: "head" }, label, output), input);
  }

  more(names) {
    const box = make("div", { className: "more" }, ...names.map((name) => this.field(name)));
    return make("details", {}, make("summary", {}, "More settings"), box);
  }

  field(name) {
    const value = this.model.settings[name];
    const label = make("label", { htmlFor: `setting-${name}` }, name);
    if (typeof value === "boolean") {
      const tick = make("input", { id: label.htmlFor, type: "checkbox", checked: value });
      this.watch(name, tick, () => tick.checked);
      return make("div", { className: "setting tick" }, tick, label);
    }
    const numeric = typeof value === "number";
    const input = make("input", { id: label.htmlFor, type: numeric ? "number" : "text", step: "any", autocomplete: "off" });
    input.value = typeof value === "string" ? value : JSON.stringify(value);
    this.watch(name, input, () => readValue(input.value, value));
    return make("div", { className: "setting" }, label, input);
  }

  watch(name, input, read) {
    this.fields.set(name, read);
    input.addEventListener("change", () => this.changed());
  }
}

function essence({ name, path, settings }) {
  return { name, path, settings };
}

/** Read a text as the kind of value that the default is; lists and objects are JSON. */
function readValue(text, model) {
  if (typeof model === "string") return text;
  if (text.trim() === "" || text === JSON.stringify(model)) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
