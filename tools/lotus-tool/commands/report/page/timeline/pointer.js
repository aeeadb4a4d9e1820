// Handles mouse and touch on the timeline. The wheel scrolls the page, and zooms with Ctrl. Dragging selects a range,
// and moves the timeline with Shift or the middle button. A double click zooms to a slice. One finger moves, two fingers zoom, a tap selects.
"use strict";

const leastDrag = 4;  // pixels; shorter drags are clicks

class TimelinePointer {
  /** @param {any} actions the functions to call: select(x, y), selectRange(from, to), zoomTo(x, y), showTip(x, y),
   * hideTip() */
  constructor(timeline, canvas, band, actions) {
    this.timeline = timeline;
    this.canvas = canvas;
    this.band = band;
    this.actions = actions;
    this.fingers = new Map();  // positions of fingers by pointer id
    canvas.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    canvas.addEventListener("pointerdown", (event) => this.down(event));
    canvas.addEventListener("pointermove", (event) => this.moved(event));
    canvas.addEventListener("pointerup", (event) => this.up(event));
    canvas.addEventListener("pointercancel", (event) => this.gone(event));
    canvas.addEventListener("dblclick", (event) => {
      const at = this.placeOf(event);
      this.actions.zoomTo(at.x, at.y);
    });
    canvas.addEventListener("pointerleave", () => { if (!this.drag) this.actions.hideTip(); });
  }

  placeOf(event) {
    const box = this.canvas.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  }

  wheel(event) {
    const { x } = this.placeOf(event);
    if (event.ctrlKey || event.metaKey) {
      event.preventDefault();
      this.timeline.zoom(Math.min(Math.max(Math.exp(event.deltaY * 0.0025), 0.5), 2), this.timeline.shareAt(x));
    } else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      event.preventDefault();
      this.timeline.move((event.deltaX || event.deltaY) / this.timeline.plot);
    }
  }

  down(event) {
    const at = this.placeOf(event);
    this.fingers.set(event.pointerId, at);
    if (event.isTrusted) this.canvas.setPointerCapture(event.pointerId);
    const moves = event.pointerType === "touch" || event.button === 1 || event.shiftKey;
    if (event.button === 1) event.preventDefault();
    if (this.fingers.size > 1) { this.drag = { moves: true, far: true }; return; }
    this.drag = { from: at, moves, far: false };
  }

  moved(event) {
    const at = this.placeOf(event);
    const before = this.fingers.get(event.pointerId);
    if (!before || !this.drag) { this.actions.showTip(at.x, at.y); return; }
    if (this.fingers.size === 2) { this.pinch(event.pointerId, at); return; }
    this.fingers.set(event.pointerId, at);
    if (!this.drag.far && Math.abs(at.x - this.drag.from.x) < leastDrag) return;
    this.drag.far = true;
    this.actions.hideTip();
    if (this.drag.moves) this.timeline.move((before.x - at.x) / this.timeline.plot);
    else this.showBand(this.drag.from.x, at.x);
  }

  /** Zooms so that each finger stays at the time that it has touched. */
  pinch(pointer, at) {
    const other = [...this.fingers].find(([id]) => id !== pointer)[1];
    const before = this.fingers.get(pointer);
    this.fingers.set(pointer, at);
    const [wide, wider] = [Math.abs(before.x - other.x), Math.abs(at.x - other.x)];
    if (wide < 10 || wider < 10) return;
    this.timeline.zoom(wide / wider, this.timeline.shareAt(other.x));
  }

  showBand(from, to) {
    const left = Math.max(Math.min(from, to), this.timeline.left);
    this.band.hidden = false;
    this.band.style.left = left + "px";
    this.band.style.width = Math.max(Math.max(from, to) - left, 1) + "px";
  }

  up(event) {
    const drag = this.drag;
    const at = this.placeOf(event);
    this.gone(event);
    if (!drag || drag.far && drag.moves) return;
    if (!drag.far) { this.actions.select(at.x, at.y); return; }
    const times = [drag.from.x, at.x].map((x) => this.timeline.time(Math.max(x, this.timeline.left)));
    this.actions.selectRange(Math.min(...times), Math.max(...times));
  }

  gone(event) {
    this.fingers.delete(event.pointerId);
    if (!this.fingers.size) this.drag = undefined;
    this.band.hidden = true;
  }
}
