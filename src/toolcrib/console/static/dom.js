// Builds the page. Whatever comes from a server becomes text, never markup: there is no way here to pass markup on.

const numbers = new Intl.NumberFormat("en");

/** An element with properties and children; strings become text. */
export function el(tag, properties = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "class") node.className = value;
    else if (name === "on") for (const [event, handler] of Object.entries(value)) node.addEventListener(event, handler);
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return node;
}

/** A bar of a share between 0 and 1. */
function bar(share, kind = "") {
  const fill = el("span", { class: `fill ${kind}` });
  fill.style.inlineSize = `${Math.max(0, Math.min(1, share)) * 100}%`;
  return el("span", { class: "bar", "aria-hidden": "true" }, fill);
}

/** A line of a bar chart: what, how much as a bar, how much in figures. */
export function line(label, share, figure, kind = "") {
  const words = typeof label === "string" ? el("span", {}, label) : label;
  return el("div", { class: "line" }, words, bar(share, kind), el("span", { class: "number" }, figure));
}

/** A select with [value, words] pairs. */
export function choice(label, pairs, on) {
  const options = pairs.map(([value, words]) => el("option", { value }, words));
  const select = el("select", { on: { change: on } }, options);
  return [el("label", {}, label, select), select];
}

export const count = (value) => numbers.format(value);

export const milliseconds = (value) =>
  value === undefined || value === null ? "" : value < 10 ? `${value.toFixed(1)} ms` : `${count(Math.round(value))} ms`;

/** Seconds as people say them. */
export function duration(seconds) {
  if (seconds < 90) return `${Math.round(seconds)} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  if (seconds < 129600) return `${Math.round(seconds / 3600)} h`;
  return `${Math.round(seconds / 86400)} days`;
}

export const plural = (number, word) => `${count(number)} ${word}${number === 1 ? "" : "s"}`;
