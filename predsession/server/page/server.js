// Talking to the server this page came from. Every address is relative, so that a path in front of the server
// (a proxy's) does not matter.

// Here and nowhere else: not in the URL, not in any storage. A reload forgets it.
let token = null;

export class Locked extends Error {}
export class Refused extends Error {}
export class Gone extends Error {}

export function useToken(text) {
  token = text || null;
}

export function hasToken() {
  return token !== null;
}

/**
 * Ask something and return the answer's JSON.
 * Throws Locked where a token is wanted, Refused with the server's words for any other error, Gone where
 * nothing usable came back.
 */
export async function ask(path, { method = "GET", body = null, seconds = 10 } = {}) {
  const reply = await fetched(path, { method, body, signal: AbortSignal.timeout(seconds * 1000) });
  if (reply.status === 401) throw new Locked();
  const answer = await jsonOf(reply);
  if (!reply.ok) throw new Refused(`${inWords(answer)} (status ${reply.status})`);
  return answer;
}

async function fetched(path, options) {
  const headers = token === null ? {} : { "x-api-key": token };
  try {
    return await fetch(path, { ...options, headers, cache: "no-store", credentials: "same-origin" });
  } catch (error) {
    throw new Gone(error.name === "TimeoutError" ? "The server took too long." : "The server does not answer.");
  }
}

async function jsonOf(reply) {
  try {
    return await reply.json();
  } catch {
    if (reply.ok) throw new Gone("The server answered with something that is not JSON.");
    return null;
  }
}

/** The sentence in an error's body: a stock server has several shapes for it. */
function inWords(answer) {
  const detail = answer?.detail ?? answer?.message ?? answer;
  if (typeof detail === "string") return detail;
  if (Array.isArray(detail)) return detail.map((each) => each?.msg ?? String(each)).join("; ");
  return bare(detail?.message ?? detail?.title ?? "The server refused.");
}

/** Take the sentence out of an exception as Python shows it. */
function bare(text) {
  return /^\w+\((["'])(.*)\1\)$/s.exec(text)?.[2] ?? text;
}
