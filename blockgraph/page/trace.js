"use strict";
// A run, step by step: shape and size of each named value, and the box that makes it marked in the picture.

class Trace {
  constructor(run) {
    this.run = run;
    this.slider = byId("step");
    this.count = run.names.length;
    byId("trace").hidden = false;
    this.slider.max = String(this.count - 1);
    this.curve();
    on(this.slider, "input", () => this.go(Number(this.slider.value)));
    on(byId("back"), "click", () => this.move(-1));
    on(byId("next"), "click", () => this.move(1));
  }

  get at() {
    return Number(this.slider.value);
  }

  move(by) {
    this.go(Math.min(Math.max(this.at + by, 0), this.count - 1));
  }

  go(step) {
    const { names, shapes } = this.run;
    this.slider.value = String(step);
    this.slider.setAttribute("aria-valuetext", `${names[step]}, RMS ${shown(this.run.rms[step])}`);
    const parts = ["rms", "low", "high", "mean"].map((part) => ({ rms: "RMS", low: "min", high: "max", mean: "mean" })[part] + ` ${shown(this.run[part][step])}`);
    byId("reading").replaceChildren(
      make("span", {}, `${step + 1} / ${this.count}`),
      make("b", {}, word(names[step])),
      ...[shapes[step], ...parts].map((text) => make("span", {}, text)),
    );
    this.mark.setAttribute("x1", step);
    this.mark.setAttribute("x2", step);
    this.show(this.picture);
  }

  /** Mark the box of the step in a picture. */
  show(picture) {
    this.picture = picture;
    if (!picture) return;
    for (const old of picture.svg.querySelectorAll(".step")) old.classList.remove("step");
    const id = this.run.boxes[picture.level.name][this.at];
    if (!id) return;
    const stop = picture.seen(picture.stops.get(id));
    stop.element.classList.add("step");
    this.reveal?.(stop.element);
  }

  /** The size of all values as a line, its heights by powers where they are far apart. */
  curve() {
    const known = this.run.rms.filter((size) => size > 0);
    const far = Math.max(...known) / Math.min(...known) > 30;
    const height = (size) => (far ? Math.log(Math.max(size || 0, Math.min(...known))) : size || 0);
    const all = this.run.rms.map(height);
    const [low, high] = [Math.min(...all), Math.max(...all)];
    const points = all.map((y, x) => `${x},${(38 - (34 * (y - low)) / (high - low || 1)).toFixed(2)}`);
    this.mark = draw("line", { y1: 0, y2: 40, x1: 0, x2: 0 });
    const frame = { viewBox: `0 0 ${Math.max(this.count - 1, 1)} 40`, preserveAspectRatio: "none", role: "img" };
    const label = { "aria-label": `RMS of all values, from ${shown(Math.min(...known))} to ${shown(Math.max(...known))}` };
    byId("curve").replaceChildren(draw("svg", { ...frame, ...label }, draw("polyline", { points: points.join(" ") }), this.mark));
  }
}

function shown(number) {
  if (number === null || number === undefined) return "not finite";
  const size = Math.abs(number);
  return size && (size < 1e-3 || size >= 1e5) ? number.toExponential(3) : String(Number(number.toFixed(4)));
}
