// The JSON behind the page. The cookie says who we are, and the token in the header that it was this page that asked.

const KEEP = "toolcrib-console-token";
const HEADER = "X-Toolcrib-Console";

export class Failure extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

const token = () => localStorage.getItem(KEEP) ?? "";
export const isSignedIn = () => token() !== "";

// Signing in or out in one tab is so in all of them.
addEventListener("storage", (event) => {
  if (event.key === KEEP || event.key === null) dispatchEvent(new CustomEvent(isSignedIn() ? "signed-in" : "signed-out"));
});

/** A controller of a part of what the signal ends. */
export function partOf(signal) {
  const part = new AbortController();
  if (signal.aborted) part.abort();
  signal.addEventListener("abort", () => part.abort(), { signal: part.signal });
  return part;
}

export async function signIn(secret) {
  const signed = await ask("sign-in", { secret });
  localStorage.setItem(KEEP, signed.token);
}

export async function signOut() {
  try {
    await ask("sign-out", {});
  } finally {
    localStorage.removeItem(KEEP);
  }
}

/** The answer to a question; with a body it is sent, without one it is only read. */
export async function ask(path, body, signal) {
  const response = await request(path, body, signal);
  return await response.json();
}

/** Messages of the live feed, until the signal or the end of the stream. */
export async function* watch(signal) {
  const response = await request("activity", undefined, signal);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let held = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const lines = (held + value).split("\n");
    held = lines.pop();
    for (const line of lines) if (line.startsWith("data: ")) yield JSON.parse(line.slice(6));
  }
}

async function request(path, body, signal) {
  const headers = { [HEADER]: token() };
  const options = { headers, signal, credentials: "same-origin", cache: "no-store" };
  if (body !== undefined) {
    options.method = "POST";
    options.body = JSON.stringify(body);
    headers["Content-Type"] = "application/json";
  }
  let response;
  try {
    response = await fetch(`api/${path}`, options);
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new Failure(0, "The gateway does not answer: is it still running?");
  }
  if (response.ok) return response;
  const said = await response.json().catch(() => ({}));
  if (response.status === 401 && path !== "sign-in") {
    localStorage.removeItem(KEEP);
    dispatchEvent(new CustomEvent("signed-out"));
  }
  throw new Failure(response.status, said.error ?? `The gateway answered ${response.status}.`);
}
