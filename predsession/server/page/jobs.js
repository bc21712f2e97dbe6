// The table of jobs. A row is made once and then only changed, so that a selection or a focus in it stays.

import { $, make, plural, rate, say, span } from "./words.js";

const STAGES = {
  preparing: "waiting",
  inference: "running",
  postprocess: "finishing",
  finished: "finished",
  cancelled: "stopped",
  error: "failed",
};
const rows = new Map();

export function showJobs({ jobs, job_count: count, queue, models }) {
  forget(new Set(jobs.map((job) => job.uuid)));
  jobs.forEach((job, place) => {
    if (!rows.has(job.uuid)) rows.set(job.uuid, newRow(job, models.length > 1));
    const row = rows.get(job.uuid);
    fill(row, job);
    const there = $("jobs").children[place];
    if (there !== row.element) $("jobs").insertBefore(row.element, there ?? null);
  });
  $("jobs-table").hidden = !jobs.length;
  $("no-jobs").hidden = jobs.length > 0;
  $("more-jobs").hidden = count <= jobs.length;
  say($("more-jobs"), `${plural(count - jobs.length, "older job")} not shown.`);
  say($("queue"), jobs.length ? inQueue(queue) : "");
}

function inQueue({ waiting, working }) {
  if (!waiting && !working) return "nothing waiting";
  return `${plural(waiting, "picture")} waiting, ${working.toLocaleString("en")} at work`;
}

function forget(present) {
  for (const [uuid, row] of rows) {
    if (present.has(uuid)) continue;
    row.element.remove();
    rows.delete(uuid);
  }
}

function newRow({ uuid, session, model }, several) {
  const parts = {
    stage: cell(),
    bar: make("progress"),
    count: make("span"),
    why: make("span", { className: "why" }),
    rate: make("span"),
    left: make("span", { className: "left" }),
    age: cell("number"),
  };
  const whose = [several && model, session && `session ${session}`].filter(Boolean).join(" · ");
  const name = cell("", make("span", { className: "mono", title: uuid }, uuid.slice(0, 8)));
  if (whose) name.append(make("span", { className: "session" }, whose));
  const bar = make("div", { className: "bar" }, parts.bar, parts.count);
  // The narrow layout turns the table into blocks, which would cost it its roles if they were not spelt out.
  const element = make("tr", { role: "row" });
  element.append(name, parts.stage, cell("", bar, parts.why), cell("number", parts.rate, parts.left), parts.age);
  return { element, parts };
}

function cell(className = "", ...children) {
  return make("td", { role: "cell", className }, ...children);
}

function fill({ element, parts }, job) {
  const ended = ["finished", "cancelled", "error"].includes(job.stage);
  const stage = job.stopped && !ended ? "stopping" : (STAGES[job.stage] ?? job.stage);
  element.dataset.stage = stage;
  say(parts.stage, stage);
  parts.bar.max = Math.max(1, job.total);
  parts.bar.value = job.done;
  const count = `${job.done.toLocaleString("en")} of ${job.total.toLocaleString("en")}`;
  parts.bar.setAttribute("aria-label", `Job ${job.uuid.slice(0, 8)}: ${count}`);
  say(parts.count, count);
  say(parts.why, job.error ?? "");
  const running = stage === "running" && job.rate > 0;
  say(parts.rate, running ? rate(job.rate) : "");
  say(parts.left, running ? `${span((job.total - job.done) / job.rate)} left` : "");
  say(parts.age, span(job.age_s));
}
