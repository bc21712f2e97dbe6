// The header, the models, the memory and the errors.

import { $, make, plural, say, size, span } from "./words.js";

const STATES = { ready: "ready", starting: "starting", ended: "ended" };

export function showOverview(overview) {
  showHeader(overview);
  showModels(overview.models);
  showMemory(overview.memory);
  showErrors(overview.errors);
  say($("version"), `predsession ${overview.version}${overview.stock ? ", as a stock server" : ""}`);
}

export function showState(state, words) {
  $("state").dataset.state = state;
  say($("state"), words);
}

function showHeader({ models, uptime_s: uptime }) {
  const only = models.length === 1 ? models[0] : null;
  const name = only ? only.name : plural(models.length, "model");
  say($("title"), name);
  document.title = `${name} · predsession`;
  const lazy = models.find((model) => model.state !== "ready");
  showState(lazy ? "starting" : "ready", lazy ? (STATES[lazy.state] ?? lazy.state) : "ready");
  const what = only ? describe(only) : models.map((model) => model.name).join(", ");
  say($("facts"), `${what} · up ${span(uptime)}`);
}

function describe(model) {
  const most = model.max_batch_size;
  const batches = most === null ? null : most === 1 ? "one picture at a time" : `batches of up to ${most}`;
  return [model.task, plural(model.class_count, "class", "classes"), batches].filter(Boolean).join(" · ");
}

function showModels(models) {
  $("models").replaceChildren(
    ...models.map((model) => {
      const pill = make("span", { className: "pill" }, STATES[model.state] ?? model.state);
      pill.dataset.state = model.state;
      const work = model.waiting ? `${plural(model.waiting, "picture")} waiting` : "nothing waiting";
      return make(
        "li",
        {},
        make("div", { className: "name" }, make("span", {}, model.name), pill),
        make("p", { className: "quiet" }, `${describe(model)} · ${work}`),
        model.problem && make("p", { className: "problem" }, model.problem),
      );
    }),
  );
}

function showMemory({ server, workers, machine }) {
  const rows = [["Server", server], ...workers.map((worker) => [`Worker of ${worker.model}`, worker.bytes])];
  $("memory").replaceChildren(
    ...rows.flatMap(([name, bytes]) => [make("dt", {}, name), make("dd", {}, size(bytes))]),
  );
  showMachine(machine);
}

function showMachine({ used, total }) {
  if (total === null) {
    $("machine").replaceChildren();
    return;
  }
  const text = `${size(used)} of this machine's ${size(total)} in use`;
  const bar = make("progress", { max: total, value: used });
  bar.setAttribute("aria-label", text);
  $("machine").replaceChildren(make("p", { className: "quiet" }, text), bar);
}

function showErrors(errors) {
  $("no-errors").hidden = errors.length > 0;
  $("errors").replaceChildren(...errors.map(errorRow));
}

function errorRow({ at, message, count }) {
  const when = new Date(at * 1000);
  const clock = when.toLocaleTimeString([], { hour12: false });
  const today = when.toDateString() === new Date().toDateString();
  const shown = today ? clock : `${when.toLocaleDateString()} ${clock}`;
  const what = make("span", { className: "what" }, message);
  if (count > 1) what.append(make("span", { className: "count" }, `  ${count} times`));
  return make("li", {}, make("time", { dateTime: when.toISOString() }, shown), what);
}
