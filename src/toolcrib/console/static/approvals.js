// Calls that wait for somebody: nothing on this page moves while somebody is about to press a button.

import { ask } from "./api.js";
import { duration, el } from "./dom.js";
import { poll } from "./poll.js";

const EVERY_MS = 2000;

export function show(main, frame) {
  const { signal, tell } = frame;
  const cards = new Map();
  let decided = 0;
  const list = el("div", { class: "cards", "aria-live": "polite" });
  const empty = el("p", { class: "card empty", hidden: true }, "No call waits for approval.");
  main.append(
    el("h1", {}, "Approvals"),
    el("p", { class: "muted" }, "Calls of clients that cannot ask their user themselves. Allowing one lets exactly this call run, once, when it is made again."),
    empty,
    list,
  );

  function add(item) {
    const left = el("span", { class: "muted" });
    const allow = el("button", { type: "button", on: { click: () => decide(item, true) } }, "Allow once");
    const refuse = el("button", { type: "button", class: "quiet", on: { click: () => decide(item, false) } }, "Refuse");
    const state = el("p", { class: "muted", role: "status" });
    const node = el(
      "article", { class: "card" },
      el("div", { class: "between" }, el("h2", {}, el("code", {}, item.tool)), left),
      el(
        "dl", {},
        el("dt", {}, "toolset"), el("dd", {}, item.toolset),
        el("dt", {}, "for"), el("dd", {}, item.principal),
        el("dt", {}, "rule"), el("dd", {}, item.rule),
        el("dt", {}, "id"), el("dd", {}, item.id),
      ),
      el("pre", {}, item.arguments),
      el("div", { class: "buttons" }, allow, refuse),
      state,
    );
    list.append(node);
    cards.set(item.id, { node, left, state, buttons: [allow, refuse], open: true });
  }

  function close(card, words) {
    card.open = false;
    card.left.textContent = "";
    card.state.textContent = words;
    card.buttons.forEach((button) => (button.disabled = true));
  }

  async function decide(item, allow) {
    const card = cards.get(item.id);
    decided += 1;
    card.buttons.forEach((button) => (button.disabled = true));
    try {
      await ask("approvals", { id: item.id, allow }, signal);
      decided += 1;
      close(card, allow ? "Allowed: the next call with exactly these arguments runs, once." : "Refused.");
    } catch (error) {
      if (signal.aborted) return;
      if (error.status === 409) close(card, error.message);
      else {
        card.buttons.forEach((button) => (button.disabled = false));
        tell(error.message, "bad");
      }
    }
  }

  async function refresh() {
    const asked = decided;
    const waiting = await ask("approvals", undefined, signal);
    // What was decided meanwhile may still be on this list.
    if (asked !== decided) return;
    for (const item of waiting) {
      // One that was decided may be asked about anew.
      if (cards.get(item.id)?.open === false) {
        cards.get(item.id).node.remove();
        cards.delete(item.id);
      }
      if (!cards.has(item.id)) add(item);
      cards.get(item.id).left.textContent = `${duration(item.left_s)} left`;
    }
    const ids = new Set(waiting.map((item) => item.id));
    for (const [id, card] of cards) if (card.open && !ids.has(id)) close(card, "This call does not wait any more.");
    empty.hidden = cards.size > 0;
  }

  poll(refresh, EVERY_MS, frame);
}
