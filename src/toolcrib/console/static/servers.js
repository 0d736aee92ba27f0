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

  let cards = new Map();

  /** A card is made anew only when something but its times has changed: what is on it can be selected and read. */
  async function refresh() {
    const servers = await ask("health", undefined, frame.signal);
    const known = cards;
    cards = new Map(servers.map((server) => [server.name, kept(known.get(server.name), server)]));
    const nodes = [...cards.values()].map((one) => one.node);
    if (!nodes.length) nodes.push(el("p", { class: "card empty" }, "No servers are configured."));
    if (nodes.length !== list.children.length || nodes.some((node, place) => node !== list.children[place])) {
      list.replaceChildren(...nodes);
    }
  }

  poll(refresh, EVERY_MS, frame);
}

function kept(one, server) {
  const { since_s, failure_s, ...facts } = server;
  const told = JSON.stringify(facts);
  const card = one?.told === told ? one : { told, ...made(server) };
  set(card.since, duration(since_s));
  set(card.ago, `(${duration(failure_s ?? 0)} ago)`);
  return card;
}

function set(node, words) {
  if (node.textContent !== words) node.textContent = words;
}

function made(server) {
  const since = el("span");
  const ago = el("span");
  const pairs = [
    ["since", since],
    ["tools", count(server.tools) + notes(server)],
    ["restarts", count(server.restarts)],
    ["kind", server.kind + (server.protocol ? `, MCP ${server.protocol}` : "")],
    ["started", WHEN[server.start] ?? server.start],
  ];
  if (server.garbage) pairs.push(["stray output", plural(server.garbage, "line")]);
  if (server.failure && server.failure !== server.reason) {
    pairs.push(["last failure", [`${server.failure} `, ago]]);
  }
  const node = el(
    "article", { class: `card server ${server.state}` },
    el("div", { class: "between" }, el("h2", {}, server.name), el("span", { class: `state ${server.state}` }, WORDS[server.state] ?? server.state)),
    server.reason ? el("p", { class: "reason" }, server.reason) : null,
    el("dl", {}, pairs.map(([key, value]) => [el("dt", {}, key), el("dd", {}, value)])),
  );
  return { node, since, ago };
}

function notes(server) {
  const parts = [];
  if (server.left_out) parts.push(`${server.left_out} unusable`);
  if (server.held_back) parts.push(`${server.held_back} held back`);
  return parts.length ? ` (${parts.join(", ")})` : "";
}
