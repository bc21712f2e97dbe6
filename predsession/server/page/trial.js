// A picture from this device through the model, by the same call that any client makes.

import { Locked, Refused, ask } from "./server.js";
import { Canvas } from "./canvas.js";
import { readFigures } from "./figures.js";
import { Settings } from "./settings.js";
import { $, make, percent, plural, say } from "./words.js";

const PATIENCE_S = 120;
const canvas = new Canvas($("canvas"), $("drop"));
const settings = new Settings($("settings"), () => picture && run());
const metas = new Map();
let picture = null;
let sentAs = "";
let turn = 0;

/** Offer the models that there are. */
export function offer(models) {
  settings.offer(models.filter((model) => model.path !== null));
}

async function take(file) {
  if (!file) return;
  picture = file;
  const image = await decoded(file);
  if (picture !== file) return; // another one came while this was being read
  canvas.use(image, file.name || "a pasted picture");
  $("drop").classList.add("filled");
  say($("choose"), "Choose another");
  run();
}

/** Return a picture upright, as the server's boxes are; null where only the server can read it, as a TIFF. */
async function decoded(file) {
  try {
    return await createImageBitmap(file, { imageOrientation: "from-image" });
  } catch {
    return null;
  }
}

async function run() {
  const mine = ++turn;
  note("Sent.");
  $("drop").classList.add("busy");
  try {
    const began = performance.now();
    const answer = await infer(settings.model, picture);
    const took = performance.now() - began;
    const figures = await readFigures(answer.annotation, await metaOf(settings.model));
    if (mine === turn) show(answer.annotation.size, figures, took);
  } catch (error) {
    if (mine === turn) fail(error);
  } finally {
    if (mine === turn) $("drop").classList.remove("busy");
  }
}

function infer(model, file) {
  const form = new FormData();
  sentAs = uploadName(file);
  form.append("files", file, sentAs);
  form.append("state", JSON.stringify({ settings: settings.chosen() }));
  return ask(`${model.path}inference_image`, { method: "POST", body: form, seconds: PATIENCE_S });
}

/** A stock server keys pictures by their names, over all clients: so a name that nobody else has. */
function uploadName(file) {
  const suffix = /\.[a-z0-9]{1,5}$/i.exec(file.name)?.[0] ?? ".png";
  return `page-${Date.now().toString(36)}-${Math.random().toString(36).slice(2)}${suffix}`;
}

async function metaOf(model) {
  if (!metas.has(model.name)) metas.set(model.name, await ask(`${model.path}get_model_meta`, { method: "POST" }));
  return metas.get(model.name);
}

function show(size, figures, took) {
  const name = picture.name || "the pasted picture";
  canvas.show(size, figures, `${name}: ${inWords(figures)}`);
  $("objects-box").hidden = !figures.length;
  $("objects").replaceChildren(...figures.map((figure, number) => objectRow(figure, number)));
  const unseen = canvas.drawn ? "" : " This browser cannot show the picture itself.";
  note(`${plural(figures.length, "object")} in ${name}, ${Math.round(took)} ms.${unseen}`);
}

function inWords(figures) {
  if (!figures.length) return "no objects";
  return figures.map(({ title, score }) => `${title} ${percent(score)}`.trim()).join(", ");
}

function objectRow({ title, score, box, color }, number) {
  const swatch = make("span", { className: "swatch" });
  swatch.style.background = color;
  swatch.setAttribute("aria-hidden", "true");
  const row = make(
    "tr",
    { tabIndex: 0 },
    make("td", {}, swatch, title),
    make("td", { className: "number" }, percent(score)),
    make("td", { className: "number" }, box.map(Math.round).join(" ")),
  );
  for (const event of ["pointerenter", "focus"]) row.addEventListener(event, () => canvas.point(number));
  for (const event of ["pointerleave", "blur"]) row.addEventListener(event, () => canvas.point(null));
  return row;
}

function note(text) {
  say($("problem"), "");
  say($("outcome"), text);
}

function fail(error) {
  if (error instanceof Locked) {
    document.dispatchEvent(new Event("locked"));
    return;
  }
  canvas.show(null, [], `${picture.name}: no answer`);
  $("objects-box").hidden = true;
  say($("outcome"), "");
  const words = error.message.replaceAll(sentAs, picture.name);
  say($("problem"), error instanceof Refused ? words : `No answer: ${words}`);
}

$("choose").addEventListener("click", () => $("file").click());
$("file").addEventListener("change", () => {
  take($("file").files[0]);
  $("file").value = ""; // so that the same file can be chosen again
});
// The whole page takes a drop: one that misses the frame would replace the page by the picture.
document.addEventListener("dragover", (event) => {
  event.preventDefault();
  $("drop").classList.add("over");
});
document.addEventListener("dragleave", (event) => {
  if (event.relatedTarget === null) $("drop").classList.remove("over");
});
document.addEventListener("drop", (event) => {
  event.preventDefault();
  $("drop").classList.remove("over");
  take(event.dataTransfer.files[0]);
});
document.addEventListener("paste", (event) => {
  if (event.clipboardData.files.length) take(event.clipboardData.files[0]);
});
