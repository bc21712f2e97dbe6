// Numbers in words, and elements with text. Text from the server becomes a text node, never markup.

export const $ = (id) => document.getElementById(id);

/** Return a new element; children are elements or text. */
export function make(tag, { className = "", ...properties } = {}, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  if (className) element.className = className;
  element.append(...children.filter((child) => child !== null));
  return element;
}

/** Set an element's text only where it changes, so that screen readers and selections are left in peace. */
export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

export function plural(count, one, many = `${one}s`) {
  return `${count.toLocaleString("en")} ${count === 1 ? one : many}`;
}

export function size(bytes) {
  if (bytes === null || bytes === undefined) return "unknown";
  const units = ["bytes", "KiB", "MiB", "GiB", "TiB"];
  const step = bytes < 1024 ? 0 : Math.min(4, Math.floor(Math.log2(bytes) / 10));
  const value = bytes / 1024 ** step;
  return `${value.toFixed(value < 10 && step ? 1 : 0)} ${units[step]}`;
}

export function span(seconds) {
  const whole = Math.max(0, Math.round(seconds));
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min`;
  if (whole < 48 * 3600) return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
  return `${Math.floor(whole / 86400)} days`;
}

export function rate(perSecond) {
  if (perSecond === null || perSecond === undefined) return "";
  return `${perSecond < 10 ? perSecond.toFixed(1) : Math.round(perSecond).toLocaleString("en")} /s`;
}

export function percent(score) {
  return score === null ? "" : score.toFixed(2);
}
