// Keeps what is shown in the page's address, so that a link leads to it. The address is updated during use, and
// read at the start and whenever it changes.
"use strict";

class PageState {
  /** @param {any} parts by name: {get(): string|undefined, set(text, all of the address)} */
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

  /** Waits before it changes the address, because browsers refuse hundreds of changes. */
  changed() {
    clearTimeout(this.later);
    this.later = setTimeout(() => this.write(), 200);
  }

  write() {
    const text = this.text();
    if (text === location.hash.slice(1)) return;
    history.replaceState(null, "", "#" + text);
  }

  read() {
    const given = new URLSearchParams(location.hash.slice(1));
    clearTimeout(this.later);
    for (const name of Object.keys(this.parts)) {
      const value = given.get(name);
      if (value !== null) this.parts[name].set(value, given);
    }
  }
}
