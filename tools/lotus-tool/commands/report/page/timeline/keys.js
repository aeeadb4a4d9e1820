// Defines all keys of the page in one table, and draws the list that `?` shows. As in other trace viewers, W and S
// zoom, and A and D move.
"use strict";

/** The parts of the page in which keys work. Text fields and choices handle all keys themselves; buttons handle Enter
 * and Space. */
const keyPlaces = {
  page: "Everywhere",
  timeline: "In the timeline, or while something is selected there",
  results: "While a search has results",
  box: "In the search box",
};

/** Returns all keys, and where they work. @param {any} actions the functions that keys call: next(by), result(by),
 * step(along, across), clear(), searchBox(), leaveSearch(), help() */
function keyTable(timeline, actions) {
  const key = (place, keys, does, act) => ({ place, keys, does, act });
  const beginning = () => timeline.look(0, timeline.to - timeline.from);
  const end = () => timeline.look(timeline.span - (timeline.to - timeline.from), timeline.span);
  return [
    key("page", ["?"], "show or hide this list", () => actions.help()),
    key("page", ["w", "+"], "zoom in", () => timeline.zoom(0.8, 0.5)),
    key("page", ["s", "-"], "zoom out", () => timeline.zoom(1.25, 0.5)),
    key("page", ["a"], "move to the left", () => timeline.move(-0.1)),
    key("page", ["d"], "move to the right", () => timeline.move(0.1)),
    key("page", ["0"], "show the whole run", () => timeline.all()),
    key("page", ["n"], "next result of the search, next slowest call, or next batch", () => actions.next(1)),
    key("page", ["N"], "the previous one", () => actions.next(-1)),
    key("page", ["/"], "go to the search box", () => actions.searchBox()),
    key("page", ["Escape"], "clear the selection and the search", () => actions.clear()),
    key("timeline", ["ArrowLeft"], "previous slice; if none is selected, move", () => actions.step(-1, 0) || timeline.move(-0.1)),
    key("timeline", ["ArrowRight"], "next slice; if none is selected, move", () => actions.step(1, 0) || timeline.move(0.1)),
    key("timeline", ["ArrowUp"], "slice above; if none is selected, zoom in", () => actions.step(0, -1) || timeline.zoom(0.8, 0.5)),
    key("timeline", ["ArrowDown"], "slice below; if none is selected, zoom out", () => actions.step(0, 1) || timeline.zoom(1.25, 0.5)),
    key("timeline", ["PageUp"], "move by nearly the whole width to the left", () => timeline.move(-0.9)),
    key("timeline", ["PageDown"], "the same to the right", () => timeline.move(0.9)),
    key("timeline", ["Home"], "go to the beginning", beginning),
    key("timeline", ["End"], "go to the end", end),
    key("results", ["Enter"], "next result", () => actions.result(1)),
    key("results", ["Shift+Enter"], "previous result", () => actions.result(-1)),
    key("box", ["Enter"], "next result", () => actions.result(1)),
    key("box", ["Shift+Enter"], "previous result", () => actions.result(-1)),
    key("box", ["Escape"], "clear the search", () => actions.leaveSearch()),
  ];
}

/** Returns a key's name: "w", "N", "Shift+Enter". Characters that need Shift only on some keyboards are named without
 * it. */
function nameOfKey(event) { return (event.shiftKey && event.key.length > 1 ? "Shift+" : "") + event.key; }

class PageKeys {
  /** @param {any} actions the functions that keyTable() needs, and hasResults() */
  constructor(timeline, canvas, box, actions) {
    this.timeline = timeline;
    this.canvas = canvas;
    this.box = box;
    this.actions = actions;
    this.dialog = new KeyList(byId("keys"));
    this.table = keyTable(timeline, { ...actions, help: () => this.dialog.toggle(this.table) });
    byId("keys-open").addEventListener("click", () => this.dialog.toggle(this.table));
    document.addEventListener("keydown", (event) => this.pressed(event));
  }

  /** Returns the names in keyPlaces whose keys work while an element has the focus. */
  placesOf(target) {
    if (target === this.box) return ["box"];
    if (target.closest("input, select, textarea, [contenteditable]")) return [];
    const plain = target === document.body || target === this.canvas;
    const control = target.closest("button, a, summary");
    const places = ["page"];
    // If the timeline does not have the focus, keys act on it only while a selection in it is visible. Otherwise arrow
    // keys must scroll the page.
    if (target === this.canvas || (plain || control) && this.timeline.selection && this.isSeen()) places.push("timeline");
    if (plain && this.actions.hasResults()) places.push("results");
    return places;
  }

  isSeen() {
    const box = this.canvas.getBoundingClientRect();
    return box.bottom > 0 && box.top < window.innerHeight;
  }

  pressed(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || event.defaultPrevented) return;
    const named = nameOfKey(event);
    if (this.dialog.isOpen) {
      if (named !== "?" && named !== "Escape") return;
      event.preventDefault();
      this.dialog.toggle(this.table);
      return;
    }
    const places = this.placesOf(event.target instanceof Element ? event.target : document.body);
    const find = (name) => this.table.find((of) => places.includes(of.place) && of.keys.includes(name));
    const found = find(named) || (event.shiftKey ? undefined : find(named.toLowerCase()));  // with Caps Lock, the letters of keys are capitals
    if (!found) return;
    event.preventDefault();
    found.act();
    // If the key may have changed the timeline, scroll the timeline into view, so that the user sees the change.
    if (places.includes("page") && !["?", "/", "Escape"].includes(named) && !this.isSeen()) this.canvas.scrollIntoView({ block: "nearest" });
  }
}

/** Shows the list of all keys. */
class KeyList {
  constructor(dialog) {
    this.dialog = dialog;
    byId("keys-close").addEventListener("click", () => dialog.close());
  }

  get isOpen() { return this.dialog.open; }

  toggle(table) {
    if (this.isOpen) { this.dialog.close(); return; }
    byId("keys-list").replaceChildren(...Object.keys(keyPlaces).flatMap((place) => {
      const rows = table.filter((of) => of.place === place).map((of) => {
        const keys = element("span");
        of.keys.forEach((name, i) => keys.append(i ? " or " : "", element("kbd", shownKey(name))));
        return [keys, of.does];
      });
      const list = simpleTable(keyPlaces[place], [["key", "Press this"], ["what it does", "What happens then"]], rows);
      return [element("h3", keyPlaces[place]), list];
    }));
    this.dialog.showModal();
  }
}

const keySigns = { ArrowLeft: "←", ArrowRight: "→", ArrowUp: "↑", ArrowDown: "↓", Escape: "Esc", PageUp: "Page Up", PageDown: "Page Down" };

/** Returns a key as it is printed on keyboards. Letters are capitals; those that need Shift are marked. */
function shownKey(name) {
  if (/^[A-Z]$/.test(name)) return "Shift+" + name;
  return keySigns[name] || (name.length === 1 ? name.toUpperCase() : name);
}
