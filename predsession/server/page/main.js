// The page's heart: asks for the overview while somebody looks, and says so when the server is gone.

import { Gone, Locked, ask, hasToken, useToken } from "./server.js";
import { showJobs } from "./jobs.js";
import { showOverview, showState } from "./overview.js";
import { offer } from "./trial.js";
import { $, say, span } from "./words.js";

const BUSY_S = 1;
const IDLE_S = 3;
const LONGEST_S = 30;

let timer = null;
let ticker = null;
let asking = false;
let failures = 0;
let retryAt = 0;
let heardAt = null;

async function poll() {
  clearTimeout(timer);
  if (document.visibilityState === "hidden" || asking) return;
  asking = true;
  try {
    hear(await ask("overview.json"));
  } catch (error) {
    miss(error);
  } finally {
    asking = false;
  }
}

function hear(overview) {
  failures = 0;
  heardAt = Date.now();
  lock(false);
  $("gone").hidden = true;
  document.body.classList.remove("stale");
  showOverview(overview);
  showJobs(overview);
  offer(overview.models);
  const busy = overview.queue.waiting + overview.queue.working > 0;
  wait(busy ? BUSY_S : IDLE_S);
}

function miss(error) {
  if (error instanceof Locked) {
    askForToken();
    return;
  }
  failures += 1;
  document.body.classList.add("stale");
  showState("gone", "no answer");
  say($("gone-what"), error instanceof Gone ? error.message : `The overview cannot be shown: ${error.message}`);
  // Twice as long each time, so that a server that comes up again is not met by a crowd of open tabs.
  wait(Math.min(LONGEST_S, 2 ** (failures - 1)));
  countDown();
  $("gone").hidden = false;
}

function wait(seconds) {
  retryAt = Date.now() + seconds * 1000;
  timer = setTimeout(poll, seconds * 1000);
}

/** Show when the next try is due. Not in the live region: nobody wants a countdown read out. */
function countDown() {
  const left = Math.max(0, Math.ceil((retryAt - Date.now()) / 1000));
  const ago = heardAt === null ? "" : ` What is shown is ${span((Date.now() - heardAt) / 1000)} old.`;
  say($("gone-when"), (left ? `Next try in ${left} s.` : "Trying.") + ago);
  clearTimeout(ticker);
  if (failures) ticker = setTimeout(countDown, 1000);
}

function askForToken() {
  clearTimeout(timer); // or the next poll would empty the field while somebody types
  const wrong = hasToken();
  useToken(null);
  lock(true);
  failures = 0;
  $("gone").hidden = true;
  showState("waiting", "locked");
  say($("facts"), "What it runs is shown to those who have the token.");
  say($("token-problem"), wrong ? "The server does not take this token." : "");
  $("token").value = "";
  $("token").focus();
}

function lock(locked) {
  const opened = !locked && !$("locked").hidden;
  $("locked").hidden = !locked;
  $("open").hidden = locked;
  if (opened) $("trial").focus(); // the field that had the focus is gone
}

$("token-form").addEventListener("submit", (event) => {
  event.preventDefault();
  try {
    // A header carries these characters only; anything else can be no token.
    new Headers({ "x-api-key": $("token").value });
  } catch {
    say($("token-problem"), "A token has no such characters.");
    return;
  }
  useToken($("token").value);
  poll();
});
$("gone-now").addEventListener("click", poll);
document.addEventListener("visibilitychange", poll);
document.addEventListener("locked", askForToken);
say($("example"), `for prediction in PredictionSession("${location.origin}", "photos/"):\n    print(prediction)`);
poll();
