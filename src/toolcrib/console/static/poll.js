// Asks again and again while a view is open and the page is looked at; one question at a time.

export function poll(work, everyMs, { signal, tell }) {
  let failed = false;

  async function beat() {
    if (signal.aborted) return;
    if (!document.hidden) {
      try {
        await work();
        // Takes back its own complaint, and nobody else's.
        if (failed) tell();
        failed = false;
      } catch (error) {
        if (signal.aborted) return;
        failed = true;
        tell(error.message, "bad");
      }
    }
    setTimeout(beat, everyMs);
  }

  beat();
}
