// The frame of the page: signing in, the five views, and the figures of the head.

import { ask, isSignedIn, signIn, signOut } from "./api.js";
import { count, el, plural } from "./dom.js";
import * as activity from "./activity.js";
import * as approvals from "./approvals.js";
import * as search from "./search.js";
import * as servers from "./servers.js";
import * as tokens from "./tokens.js";

const views = { activity, search, tokens, approvals, servers };
const main = document.getElementById("main");
const notice = document.getElementById("notice");
const nav = document.getElementById("views");
const out = document.getElementById("sign-out");
const FIGURES_EVERY_MS = 3000;
const CODE = /^[\w-]{43}$/;

let leaving = null;
let figures = null;
let lost = false;

/** Tells the person something, or takes the last word back. */
function tell(words, kind = "") {
  // Said once: who listens to the page hears every change.
  if (words && !notice.hidden && notice.textContent === words) return;
  notice.hidden = !words;
  notice.className = kind;
  notice.textContent = words ?? "";
}

function leave() {
  leaving?.abort();
  leaving = new AbortController();
  return leaving.signal;
}

/** The code of a printed link, if the address has one: used at once, and taken out of the address and the history. */
function takeCode() {
  const hash = location.hash.slice(1);
  if (!CODE.test(hash)) return "";
  history.replaceState(null, "", location.pathname);
  return hash;
}

function open() {
  const code = takeCode();
  if (code) return enter(code);
  if (!isSignedIn()) return showSignIn();
  const name = Object.hasOwn(views, location.hash.slice(1)) ? location.hash.slice(1) : "activity";
  const signal = leave();
  for (const link of nav.children) link.ariaCurrent = link.hash === `#${name}` ? "page" : null;
  nav.hidden = out.hidden = false;
  tell();
  main.replaceChildren();
  document.title = `${nav.querySelector(`[href="#${name}"]`).firstChild.textContent.trim()} · Toolcrib console`;
  views[name].show(main, { signal, tell, overview: figures });
}

async function refresh() {
  if (!isSignedIn() || document.hidden) return;
  try {
    figures = await ask("overview");
  } catch (error) {
    // What the page showed is not known to be so any more.
    if (isSignedIn() && error.status === 0) lose(error.message);
    return;
  }
  if (lost) tell();
  lost = false;
  const { servers, tools, in_flight, waiting, down } = figures;
  document.getElementById("figures").textContent =
    `${plural(tools, "tool")} · ${plural(servers, "server")}${in_flight ? ` · ${count(in_flight)} under way` : ""}`;
  mark("waiting", waiting, "wait");
  mark("down", down, "down");
}

function lose(words) {
  lost = true;
  document.getElementById("figures").textContent = "";
  mark("waiting", 0);
  mark("down", 0);
  tell(words, "bad");
}

function mark(id, number, words) {
  const badge = document.getElementById(id);
  badge.hidden = !number;
  badge.textContent = number ? `${number}` : "";
  badge.ariaLabel = number ? `${number} ${words}` : null;
}

function showSignIn() {
  leave();
  tell();
  nav.hidden = out.hidden = true;
  document.getElementById("figures").textContent = "";
  document.title = "Sign in · Toolcrib console";
  const secret = el("input", { type: "password", autocomplete: "off", spellcheck: "false", required: true });
  const submit = (event) => {
    event.preventDefault();
    enter(secret.value.trim());
  };
  main.replaceChildren(
    el(
      "form", { class: "card sign-in", on: { submit } },
      el("h1", {}, "Sign in"),
      el("p", {}, "Open the link that the gateway printed when it started, or enter a token that was made for the console."),
      el("label", {}, "Token", secret),
      el("button", { type: "submit" }, "Sign in"),
      el("p", { class: "muted" }, "A token is made where the gateway runs:"),
      el("pre", {}, "toolcrib token create NAME --console"),
    ),
  );
  secret.focus();
}

async function enter(secret) {
  try {
    await signIn(secret);
  } catch (error) {
    open();
    tell(error.message, "bad");
    return;
  }
  tell();
  await refresh();
  open();
}

async function begin() {
  addEventListener("hashchange", open);
  addEventListener("signed-out", showSignIn);
  addEventListener("signed-in", () => nav.hidden && refresh().then(open));
  document.querySelector(".skip").addEventListener("click", (event) => {
    event.preventDefault();
    main.focus();
  });
  document.addEventListener("visibilitychange", refresh);
  out.addEventListener("click", async () => {
    await signOut().catch(() => {});
    showSignIn();
  });
  setInterval(refresh, FIGURES_EVERY_MS);
  const code = takeCode();
  if (code) return enter(code);
  await refresh();
  open();
}

begin();
