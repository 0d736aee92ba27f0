// The search playground: what a model would find, why, and what it would read.

import { ask, partOf } from "./api.js";
import { choice, count, el, line, milliseconds, plural } from "./dom.js";

const kept = { query: "", profile: "default", limit: "5" };

export function show(main, { signal, tell, overview }) {
  const profiles = (overview?.profiles ?? ["default"]).map((name) => [name, name]);
  const query = el("input", { type: "search", value: kept.query, required: true, maxlength: "4096", placeholder: "what is needed, in a few words" });
  const [profileLabel, profile] = choice("Profile", profiles, () => {});
  const [limitLabel, limit] = choice("Hits", ["5", "10", "20", "50"].map((number) => [number, number]), () => {});
  const results = el("div", { role: "region", "aria-label": "Hits", "aria-live": "polite" });
  profile.value = kept.profile;
  limit.value = kept.limit;
  let asking = null;
  const submit = async (event) => {
    event?.preventDefault();
    // An earlier question that takes longer must not answer for this one.
    asking?.abort();
    const mine = (asking = partOf(signal));
    Object.assign(kept, { query: query.value, profile: profile.value, limit: limit.value });
    try {
      const found = await ask("search", { query: query.value, profile: profile.value, limit: Number(limit.value) }, mine.signal);
      tell();
      results.replaceChildren(...answer(found));
    } catch (error) {
      if (!mine.signal.aborted) tell(error.message, "bad");
    }
  };
  main.append(
    el("h1", {}, "Search"),
    el(
      "form", { class: "tools", on: { submit } },
      el("label", { class: "wide" }, "Query", query), profileLabel, limitLabel, el("button", { type: "submit" }, "Search"),
    ),
    results,
  );
  if (kept.query) submit();
  else query.focus();
}

function answer(found) {
  const parts = [
    el(
      "p", { class: "muted" },
      `${plural(found.matches.length, "hit")} among ${count(found.total_available)} tools · ${found.retrieval} · ` +
        `${milliseconds(found.ms)} · the answer costs ${plural(found.tokens, "token")} · confidence ${found.confidence.toFixed(2)}`,
    ),
  ];
  if (found.read_as) parts.push(el("p", { class: "muted" }, `Read as: ${found.read_as}`));
  if (found.abstained) {
    const near = found.nearest.length ? ` Nearest, without fitting: ${found.nearest.join(", ")}.` : "";
    parts.push(el("p", { class: "card note" }, `Nothing fits, and the answer says so.${near}`));
  }
  if (found.doubtful) parts.push(el("p", { class: "card note" }, "Perhaps none of these fits; they come nearest. The answer says so."));
  const values = found.matches.flatMap((match) => Object.values(match.evidence ?? {})).map(Math.abs);
  const most = Math.max(...values, 0.001);
  parts.push(el("ol", { class: "hits" }, found.matches.map((match) => hit(match, most))));
  parts.push(
    el("details", { class: "card" }, el("summary", {}, `What the model reads: ${plural(found.tokens, "token")}`), el("pre", {}, pretty(found.answer))),
  );
  return parts;
}

function hit(match, most) {
  const evidence = Object.entries(match.evidence ?? {}).sort((one, other) => Math.abs(other[1]) - Math.abs(one[1]));
  const rows = evidence.map(([name, value]) =>
    line(name, Math.abs(value) / most, (value < 0 ? "−" : "+") + Math.abs(value).toFixed(2), value < 0 ? "bad" : ""),
  );
  return el(
    "li", { class: "card" },
    el("div", { class: "between" }, el("code", {}, match.signature ?? match.name), el("strong", { class: "number" }, match.score.toFixed(2))),
    el("p", {}, match.description ?? ""),
    el(
      "p", { class: "muted" },
      `${match.toolset} · ${match.complete ? "with its whole schema" : "signature only"}${match.unavailable ? ` · unavailable: ${match.unavailable}` : ""}`,
    ),
    rows.length ? el("div", { class: "bars" }, rows) : null,
  );
}

function pretty(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}
