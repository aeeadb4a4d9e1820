// Stores in the page's address what is shown and selected, so that the address can be used as a link to it. The address
// is updated while the page is used; it is read at the start and whenever it changes.
"use strict";

class PageState {
  /** @param {any} parts the parts of the address by name, each an object {get(): string|undefined, set(text, all
   * parts)} */
  constructor(parts) {
    this.parts = parts;
    this.later = 0;
    window.addEventListener("hashchange", () => this.read());
  }

  text() {
    const all = new URLSearchParams();
    for (const name of Object.keys(this.parts)) {
      const value = this.parts[name].get();
      if (value !== undefined && value !== "") all.set(name, value);
    }
    return all.toString();
  }

  /** Changes the address after a delay, because browsers reject hundreds of changes in a short time. */
  changed() {
    clearTimeout(this.later);
    this.later = setTimeout(() => this.write(), 200);
  }

  write() {
    const text = this.text();
    if (text === location.hash.slice(1)) return;
    history.replaceState(null, "", "#" + text);
  }

  /** Restores what the address describes. Waits until each part is set, because later parts may depend on it. */
  async read() {
    const given = new URLSearchParams(location.hash.slice(1));
    clearTimeout(this.later);
    for (const name of Object.keys(this.parts)) {
      const value = given.get(name);
      if (value !== null) await this.parts[name].set(value, given);
    }
  }
}
