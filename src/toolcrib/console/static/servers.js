// Health of the servers: those that need somebody first.

import { ask } from "./api.js";
import { count, duration, el, plural } from "./dom.js";
import { poll } from "./poll.js";

const EVERY_MS = 3000;
const WORDS = { up: "up", starting: "starting", stopped: "stopped until a call needs it", down: "down" };

const WHEN = { eager: "with the gateway", on_demand: "by the first call", idle_stop: "by a call, stopped when idle" };

export function show(main, frame) {
  const list = el("div", { class: "cards grid" }, el("p", { class: "muted" }, "Asking …"));
  main.append(el("h1", {}, "Servers"), list);

  async function refresh() {
    const cards = (await ask("health", undefined, frame.signal)).map(card);
    list.replaceChildren(...(cards.length ? cards : [el("p", { class: "card empty" }, "No servers are configured.")]));
  }

  poll(refresh, EVERY_MS, frame);
}

function card(server) {
  const pairs = [
    ["since", duration(server.since_s)],
    ["tools", count(server.tools) + notes(server)],
    ["restarts", count(server.restarts)],
    ["kind", server.kind + (server.protocol ? `, MCP ${server.protocol}` : "")],
    ["started", WHEN[server.start] ?? server.start],
  ];
  if (server.garbage) pairs.push(["stray output", plural(server.garbage, "line")]);
  if (server.failure && server.failure !== server.reason) {
    pairs.push(["last failure", `${server.failure} (${duration(server.failure_s)} ago)`]);
  }
  return el(
    "article", { class: `card server ${server.state}` },
    el("div", { class: "between" }, el("h2", {}, server.name), el("span", { class: `state ${server.state}` }, WORDS[server.state] ?? server.state)),
    server.reason ? el("p", { class: "reason" }, server.reason) : null,
    el("dl", {}, pairs.map(([key, value]) => [el("dt", {}, key), el("dd", {}, value)])),
  );
}

function notes(server) {
  const parts = [];
  if (server.left_out) parts.push(`${server.left_out} unusable`);
  if (server.held_back) parts.push(`${server.held_back} held back`);
  return parts.length ? ` (${parts.join(", ")})` : "";
}
