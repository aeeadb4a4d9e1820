// Keyboard control of the timeline, as in trace viewers: W and S zoom, A and D move. When a slice is selected,
// the arrow keys go from slice to slice.
"use strict";

/** @param {any} actions step(along, across), next(), previous(), clear(), searchBox() */
function listenToKeys(timeline, canvas, actions) {
  const acts = {
    "w": () => timeline.zoom(0.8, 0.5), "s": () => timeline.zoom(1.25, 0.5),
    "a": () => timeline.move(-0.1), "d": () => timeline.move(0.1),
    "+": () => timeline.zoom(0.8, 0.5), "-": () => timeline.zoom(1.25, 0.5), "0": () => timeline.all(),
    "ArrowUp": () => actions.step(0, -1) || timeline.zoom(0.8, 0.5),
    "ArrowDown": () => actions.step(0, 1) || timeline.zoom(1.25, 0.5),
    "ArrowLeft": () => actions.step(-1, 0) || timeline.move(-0.1),
    "ArrowRight": () => actions.step(1, 0) || timeline.move(0.1),
    "PageUp": () => timeline.move(-0.9), "PageDown": () => timeline.move(0.9),
    "Home": () => timeline.look(0, timeline.to - timeline.from),
    "End": () => timeline.look(timeline.span - (timeline.to - timeline.from), timeline.span),
    "n": () => actions.next(), "N": () => actions.previous(), "Escape": () => actions.clear(),
  };
  const listen = (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const act = acts[event.key] || (event.shiftKey ? undefined : acts[event.key.toLowerCase()]);
    if (!act) return;
    act();
    event.preventDefault();
  };
  canvas.addEventListener("keydown", listen);
  document.addEventListener("keydown", (event) => {
    const target = /** @type {any} */ (event.target);
    // Letters work without a click into the timeline; until then arrows and Home scroll the page.
    if (target === document.body && event.key.length === 1) listen(event);
    if (event.key !== "/" || event.ctrlKey || event.metaKey || /^(INPUT|SELECT|TEXTAREA)$/.test(target.tagName)) return;
    event.preventDefault();
    actions.searchBox().focus();
  });
}
