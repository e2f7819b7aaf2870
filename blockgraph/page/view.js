"use strict";
// Zoom and pan: which part of the picture the stage shows. `scale` is in pixels per point.

const READABLE = 0.55; // below this scale the names in boxes cannot be read
const LEGIBLE = 0.9;

class View {
  constructor(stage) {
    this.stage = stage;
    this.content = { x: 0, y: 0, width: 1, height: 1 };
    this.middle = { x: 0, y: 0 };
    this.scale = 1;
    this.fitted = true;
    this.pointers = new Map();
    this.listen();
  }

  /** Show another picture, whose content has this frame: all of it, or where it begins if it would be too small. */
  show(svg, content) {
    this.svg = svg;
    this.content = content;
    this.fit();
    if (this.scale > READABLE) return;
    this.fitted = false;
    const isWide = content.width > content.height;
    const across = isWide ? this.size.height / content.height : this.size.width / content.width;
    this.scale = Math.min(LEGIBLE, Math.max(across, this.scale));
    if (isWide) this.middle.x = content.x + this.size.width / this.scale / 2;
    else this.middle.y = content.y + content.height - this.size.height / this.scale / 2;
    this.apply();
  }

  resize(content) {
    this.content = content;
    if (this.fitted) this.fit();
    else this.apply();
  }

  get size() {
    return { width: this.stage.clientWidth || 1, height: this.stage.clientHeight || 1 };
  }

  get fitting() {
    const { width, height } = this.size;
    return Math.min(width / this.content.width, height / this.content.height) * 0.97;
  }

  fit() {
    this.fitted = true;
    this.scale = Math.min(this.fitting, 2.2);
    this.middle = {
      x: this.content.x + this.content.width / 2,
      y: this.content.y + this.content.height / 2,
    };
    this.apply();
  }

  apply() {
    if (!this.svg || this.printing) return;
    const { width, height } = this.size;
    const [w, h] = [width / this.scale, height / this.scale];
    const { x, y, width: wide, height: high } = this.content;
    this.middle.x = Math.min(Math.max(this.middle.x, x), x + wide);
    this.middle.y = Math.min(Math.max(this.middle.y, y), y + high);
    const box = [this.middle.x - w / 2, this.middle.y - h / 2, w, h];
    this.svg.setAttribute("viewBox", box.map((number) => number.toFixed(2)).join(" "));
  }

  /** The whole picture in its own frame, as paper shows it, until printing is over. */
  print(printing) {
    this.printing = printing;
    if (!printing) return this.apply();
    const { x, y, width, height } = this.content;
    this.svg?.setAttribute("viewBox", [x, y, width, height].join(" "));
  }

  /** Zoom by a factor around a place of the stage, its middle by default. */
  zoom(factor, at) {
    const { width, height } = this.size;
    const from = at || { x: width / 2, y: height / 2 };
    const least = Math.min(this.fitting, 1) * 0.5;
    const scale = Math.min(Math.max(this.scale * factor, least), 12);
    const point = this.point(from);
    this.fitted = false;
    this.scale = scale;
    this.middle = {
      x: point.x - (from.x - width / 2) / scale,
      y: point.y - (from.y - height / 2) / scale,
    };
    this.apply();
  }

  /** The point of the picture under a place of the stage. */
  point(at) {
    const { width, height } = this.size;
    return {
      x: this.middle.x + (at.x - width / 2) / this.scale,
      y: this.middle.y + (at.y - height / 2) / this.scale,
    };
  }

  pan(dx, dy) {
    this.fitted = false;
    this.middle.x -= dx / this.scale;
    this.middle.y -= dy / this.scale;
    this.apply();
  }

  /** Pan as far as an element needs to be seen. */
  reveal(element) {
    if (!this.fitted && this.scale < READABLE) this.zoom(LEGIBLE / this.scale);
    const outer = this.stage.getBoundingClientRect();
    const inner = element.getBoundingClientRect();
    const room = 24;
    const shift = (low, high, start, end) => {
      if (high - low > end - start - 2 * room) return (start + end - low - high) / 2;
      return Math.max(start + room - low, 0) + Math.min(end - room - high, 0);
    };
    const dx = shift(inner.left, inner.right, outer.left, outer.right);
    const dy = shift(inner.top, inner.bottom, outer.top, outer.bottom);
    if (dx || dy) this.pan(dx, dy);
  }

  listen() {
    on(this.stage, "wheel", (event) => this.wheel(event), { passive: false });
    on(this.stage, "pointerdown", (event) => this.press(event));
    on(document, "pointermove", (event) => this.move(event));
    for (const name of ["pointerup", "pointercancel"]) on(document, name, (event) => this.release(event));
    on(this.stage, "click", (event) => this.swallow(event), { capture: true });
    new ResizeObserver(() => this.resize(this.content)).observe(this.stage);
  }

  /** Pinching and Ctrl zoom; plain scrolling pans what is larger than the stage, else it is the page's. */
  wheel(event) {
    if (event.ctrlKey || event.metaKey) {
      event.preventDefault();
      this.zoom(Math.exp(-event.deltaY * 0.0025 * (event.deltaMode ? 16 : 1)), this.place(event));
    } else if (!this.fitted && this.scale > this.fitting * 1.01) {
      event.preventDefault();
      this.pan(-event.deltaX, -event.deltaY);
    }
  }

  place(event) {
    const frame = this.stage.getBoundingClientRect();
    return { x: event.clientX - frame.left, y: event.clientY - frame.top };
  }

  press(event) {
    if (event.button) return;
    this.pointers.set(event.pointerId, this.place(event));
    this.moved = 0;
  }

  move(event) {
    const before = this.pointers.get(event.pointerId);
    if (!before) return;
    const now = this.place(event);
    const others = [...this.pointers].filter(([id]) => id !== event.pointerId).map(([, place]) => place);
    this.moved += Math.hypot(now.x - before.x, now.y - before.y);
    if (this.moved < 5) return;
    this.stage.setPointerCapture(event.pointerId);
    this.stage.classList.add("dragged");
    if (others.length) {
      const far = (place) => Math.hypot(place.x - others[0].x, place.y - others[0].y) || 1;
      this.zoom(far(now) / far(before), others[0]);
    } else {
      this.pan(now.x - before.x, now.y - before.y);
    }
    this.pointers.set(event.pointerId, now);
  }

  release(event) {
    this.pointers.delete(event.pointerId);
    if (!this.pointers.size) this.stage.classList.remove("dragged");
  }

  /** A drag is no click. */
  swallow(event) {
    if (this.moved >= 5) event.stopPropagation();
    this.moved = 0;
  }
}
