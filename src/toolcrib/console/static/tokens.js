// The token picture: what the tools cost on every turn, by server, and what is saved.

import { ask, partOf } from "./api.js";
import { choice, count, el, line, plural } from "./dom.js";

const WINDOWS = [32000, 128000, 200000, 1000000];
let kept = "200000";

export function show(main, { signal, tell }) {
  const [label, context] = choice("Window of the model", WINDOWS.map((size) => [String(size), `${count(size)} tokens`]), draw);
  const picture = el("div", { "aria-live": "polite" }, el("p", { class: "muted" }, "Counting …"));
  context.value = kept;
  main.append(el("h1", {}, "Tokens"), el("div", { class: "tools" }, label), picture);

  let asking = null;

  async function draw() {
    kept = context.value;
    asking?.abort();
    const mine = (asking = partOf(signal));
    try {
      const report = await ask("tokens", { context: Number(kept) }, mine.signal);
      tell();
      picture.replaceChildren(...shown(report));
    } catch (error) {
      if (!mine.signal.aborted) tell(error.message, "bad");
    }
  }

  draw();
}

function shown(report) {
  if (!report.n_tools) return [el("p", { class: "card empty" }, "No server has listed tools yet.")];
  const talk = report.conversation;
  const search = talk.searches ? `, ${count(talk.searches)} searches included` : "";
  const verdict = report.activated
    ? `of these tokens are saved on every turn. Tool search stays the cheaper way up to ${count(talk.break_even_searches)} searches a conversation.`
    : `Tool search is not in use here: everything stays attached. ${report.reason}`;
  return [
    el("p", { class: "card verdict" }, el("strong", {}, report.activated ? `${report.saved_pct} %` : "0 %"), el("span", {}, verdict)),
    el(
      "div", { class: "card" },
      el("h2", {}, "Tokens in every request"),
      pair(report.total_tokens, report.with_toolcrib_tokens),
      el("h2", {}, `Tokens in a conversation of ${talk.turns} requests${search}`),
      pair(talk.now_tokens, talk.with_toolcrib_tokens),
    ),
    el("div", { class: "card" }, el("h2", {}, "What each server would cost on every turn"), servers(report)),
    el("div", { class: "card" }, el("h2", {}, "The largest definitions"), biggest(report)),
    el("p", { class: "muted" }, "Estimates: characters / 4. The figures are those of toolcrib audit."),
  ];
}

function pair(now, then) {
  const most = Math.max(now, then, 1);
  return el(
    "div", { class: "bars wide" },
    line("without", now / most, count(now), "now"),
    line("with Toolcrib", then / most, count(then), "then"),
  );
}

function servers(report) {
  const ordered = [...report.servers].sort((one, other) => other.tokens - one.tokens || one.name.localeCompare(other.name));
  return ranked(ordered.map((server) => [server.name, server.error ?? plural(server.tools, "tool"), server.tokens]));
}

const biggest = (report) => ranked(report.biggest.map((tool) => [tool.name, tool.server, tool.tokens]));

function ranked(rows) {
  const most = Math.max(...rows.map(([, , tokens]) => tokens), 1);
  return el(
    "div", { class: "bars wide" },
    rows.map(([name, more, tokens]) =>
      line(el("span", { class: "name" }, name, el("span", { class: "muted" }, ` ${more}`)), tokens / most, count(tokens), "now"),
    ),
  );
}
