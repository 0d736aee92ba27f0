// Live activity: one row for a call, with its stages; shapes of arguments, never values.

import { partOf, watch } from "./api.js";
import { choice, count, el, line, milliseconds, plural } from "./dom.js";

const ROWS = 300;
const AGAIN_MS = 2000;
const NAMES = { search: "tool_search", describe: "tool_describe", assemble: "tools listed", decide: "approval decided" };
const MARKS = { ok: "✓", refused: "⊘", failed: "✗", info: "·", running: "…" };
const WORDS = { running: "under way" };

export function show(main, { signal, tell }) {
  const calls = new Map();
  let opened = new Set();
  let missed = 0;
  let paused = false;

  const tool = el("input", { type: "search", placeholder: "part of a name", on: { input: filter } });
  const [serverLabel, server] = choice("Server", [["", "all"]], filter);
  const [outcomeLabel, outcome] = choice(
    "Outcome",
    [["", "all"], ["ok", "ok"], ["refused", "refused"], ["failed", "failed"], ["running", "under way"], ["info", "other events"]],
    filter,
  );
  const pause = el("button", { type: "button", class: "quiet", "aria-pressed": "false", on: { click: toggle } }, "Pause");
  const summary = el("p", { class: "muted", role: "status" });
  const list = el("div", { class: "rows" });
  const empty = el("p", { class: "card empty" }, "Nothing has run yet. Calls appear here as they happen.");
  main.append(
    el("h1", {}, "Activity"),
    el("div", { class: "tools" }, el("label", {}, "Tool", tool), serverLabel, outcomeLabel, pause),
    summary,
    empty,
    list,
  );

  function toggle() {
    paused = !paused;
    pause.setAttribute("aria-pressed", String(paused));
    pause.textContent = paused ? "Go on" : "Pause";
    if (!paused) draw();
  }

  function take(event) {
    const key = event.call_id ? `${event.session} ${event.call_id}` : `${event.at} ${event.stage} ${calls.size}`;
    const call = calls.get(key) ?? { at: event.at, outcome: "info", stages: [] };
    calls.set(key, call);
    for (const name of ["tool", "toolset", "principal", "route", "arguments", "code", "reason", "detail", "tokens"]) {
      if (event[name] !== undefined) call[name] = event[name];
    }
    call.stage = event.stage;
    const stage = event.tool && event.call_id && event.stage !== "done";
    if (!stage || event.outcome !== "ok") {
      call.outcome = event.outcome ?? "ok";
      call.ms = event.duration_ms;
      call.done = true;
    } else if (!call.done) call.outcome = "running";
    if (stage) call.stages.push([event.stage, event.duration_ms ?? 0, event.outcome]);
    call.changed = true;
  }

  /** Lets the oldest calls go; while somebody reads, none that is shown. */
  function trim() {
    const most = paused ? 2 * ROWS : ROWS;
    for (const [key, call] of calls) {
      if (calls.size <= most) return;
      if (paused && call.row) continue;
      calls.delete(key);
      call.row?.remove();
    }
  }

  function draw() {
    if (paused) return trim();
    for (const [key, call] of calls) {
      if (!call.changed) continue;
      call.changed = false;
      const row = rowOf(call);
      if (call.row) {
        row.open = call.row.open;
        call.row.replaceWith(row);
      } else {
        row.open = opened.delete(key);
        list.prepend(row);
      }
      call.row = row;
      if (call.toolset && ![...server.options].some((option) => option.value === call.toolset)) {
        server.append(el("option", { value: call.toolset }, call.toolset));
      }
    }
    trim();
    filter();
  }

  function filter() {
    const words = tool.value.trim().toLowerCase();
    let shown = 0;
    let bad = 0;
    let tokens = 0;
    for (const call of calls.values()) {
      if (!call.row) continue;
      const fits =
        `${nameOf(call)} ${call.tool ?? ""}`.toLowerCase().includes(words) &&
        (!server.value || call.toolset === server.value) &&
        (!outcome.value || call.outcome === outcome.value);
      call.row.hidden = !fits;
      if (!fits) continue;
      shown += 1;
      bad += call.outcome === "refused" || call.outcome === "failed";
      tokens += call.tokens ?? 0;
    }
    empty.hidden = calls.size > 0;
    const more = missed ? " · more ran than can be shown: these are the last ones" : "";
    summary.textContent = calls.size
      ? `${plural(shown, "row")} · ${count(bad)} refused or failed · ${plural(tokens, "token")} into conversations${more}`
      : "";
  }

  async function follow() {
    let failed = false;
    while (!signal.aborted) {
      // A page that nobody looks at holds no connection: a browser has six for all its pages.
      const looked = partOf(signal);
      const look = () => document.hidden && looked.abort();
      document.addEventListener("visibilitychange", look, { signal: looked.signal });
      look();
      try {
        let first = true;
        for await (const message of watch(looked.signal)) {
          // A stream begins with the last calls: those that are here are the same ones.
          if (first) forget();
          first = false;
          // Takes back its own complaint, and nobody else's.
          if (failed) tell();
          failed = false;
          missed += message.missed;
          message.events.forEach(take);
          draw();
        }
      } catch (error) {
        if (signal.aborted || error.status === 401) return;
        if (!looked.signal.aborted) {
          failed = true;
          tell(error.message, "bad");
        }
      }
      looked.abort();
      if (document.hidden && !signal.aborted) await seen();
      else await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
      while (paused && !signal.aborted) await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
    }
  }

  /** Waits until somebody looks at the page again. */
  function seen() {
    const waiting = partOf(signal);
    return new Promise((resolve) => {
      waiting.signal.addEventListener("abort", resolve);
      document.addEventListener("visibilitychange", () => document.hidden || waiting.abort(), { signal: waiting.signal });
    });
  }

  function forget() {
    opened = new Set([...calls].filter(([, call]) => call.row?.open).map(([key]) => key));
    calls.clear();
    list.replaceChildren();
    missed = 0;
  }

  follow();
}

const nameOf = (call) => (call.stage === "decide" ? NAMES.decide : (call.tool ?? NAMES[call.stage] ?? call.stage));

function rowOf(call) {
  const name = nameOf(call);
  const outcome = WORDS[call.outcome] ?? call.outcome;
  const tokens = call.tokens === undefined ? "" : plural(call.tokens, "token");
  return el(
    "details", { class: `row ${call.outcome}` },
    el(
      "summary", {},
      el("time", { class: "muted" }, new Date(call.at * 1000).toLocaleTimeString("en-GB")),
      el("span", { class: `mark ${call.outcome}`, title: outcome, role: "img", "aria-label": outcome }, MARKS[call.outcome] ?? "·"),
      el("span", { class: "name" }, name, found(call)),
      el("span", { class: "who muted" }, call.principal ?? ""),
      el("span", { class: "number" }, milliseconds(call.ms)),
      el("span", { class: "number" }, tokens),
    ),
    el("div", { class: "inside" }, facts(call), stages(call), shape(call)),
  );
}

function found(call) {
  if (call.stage === "decide") return el("span", { class: "muted" }, ` → ${call.tool}: ${call.reason}`);
  const names = call.detail?.found ?? call.detail?.described;
  if (!Array.isArray(names)) return null;
  return el("span", { class: "muted" }, ` → ${names.slice(0, 3).join(", ") || "nothing"}${names.length > 3 ? " …" : ""}`);
}

function facts(call) {
  const outcome = WORDS[call.outcome] ?? call.outcome;
  const pairs = [
    ["outcome", call.code ? `${outcome}, ${call.code}` : call.outcome === "info" ? "" : outcome],
    ["reason", call.reason],
    ["caller", call.principal],
    ["toolset", call.toolset],
    ["route", call.route],
    ["tokens", call.tokens === undefined ? "" : count(call.tokens)],
  ];
  const notice = call.detail?.notice;
  if (notice) pairs.push(["notice", notice]);
  const told = pairs.filter(([, value]) => value);
  return el("dl", {}, told.map(([key, value]) => [el("dt", {}, key), el("dd", {}, String(value))]));
}

function stages(call) {
  if (!call.stages.length) return null;
  const most = Math.max(...call.stages.map(([, ms]) => ms), 0.001);
  const rows = call.stages.map(([stage, ms, outcome]) => line(stage, ms / most, `${ms.toFixed(2)} ms`, outcome === "ok" ? "" : "bad"));
  return el("div", { class: "bars" }, rows);
}

function shape(call) {
  if (call.arguments === undefined) return null;
  return [el("p", { class: "muted" }, "Shape of the arguments"), el("pre", {}, JSON.stringify(call.arguments, null, 1))];
}
