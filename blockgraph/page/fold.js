"use strict";
// Folding: what is inside a folded plate is hidden, and the room it took is taken out of the picture, along the way the
// figure runs: in one that runs upwards all heights go through one rising function, so whatever was above something else
// still is, and upright lines stay upright; in one that runs to the right so do all places from left to right.

const PAIR = /(-?[\d.]+),(-?[\d.]+)/g;
const HEAD = 6.5; // the length of an arrow's head
const CORNER = 13; // how far the round corners of a plate reach
const CLEAR = 10; // what stays free above and below anything that is not folded

function pairs(text) {
  return [...text.matchAll(PAIR)].map(([, x, y]) => ({ x: Number(x), y: Number(y) }));
}

/** The rectangle around points. */
function frameOf(points) {
  const [xs, ys] = [points.map(({ x }) => x), points.map(({ y }) => y)];
  return { left: Math.min(...xs), right: Math.max(...xs), top: Math.min(...ys), bottom: Math.max(...ys) };
}

function holds(frame, { x, y }) {
  return frame.left <= x && x <= frame.right && frame.top <= y && y <= frame.bottom;
}

/** Pieces of [low, high] that none of the taken stretches touches. */
function freePieces([low, high], taken) {
  const found = [];
  let from = low;
  for (const [start, end] of taken.sort((a, b) => a[0] - b[0])) {
    if (start > from) found.push([from, Math.min(start, high)]);
    from = Math.max(from, end);
    if (from >= high) break;
  }
  if (from < high) found.push([from, high]);
  return found.filter(([start, end]) => end - start > 2);
}

/** A height, or a place from the left, without the removed pieces before it. */
function shrinking(removed) {
  const sorted = removed.sort((a, b) => a[0] - b[0]);
  const joined = [];
  for (const [start, end] of sorted) {
    const last = joined.at(-1);
    if (last && start <= last[1]) last[1] = Math.max(last[1], end);
    else joined.push([start, end]);
  }
  const map = (at) => joined.reduce((sum, [start, end]) => sum - Math.min(Math.max(at - start, 0), end - start), at);
  return { map, total: joined.reduce((sum, [start, end]) => sum + end - start, 0) };
}

/** Where the way from a point outside to one inside meets the border of a frame. */
function entry(outside, inside, frame) {
  let t = 0;
  for (const [axis, low, high] of [["x", "left", "right"], ["y", "top", "bottom"]]) {
    const delta = inside[axis] - outside[axis];
    if (outside[axis] < frame[low]) t = Math.max(t, (frame[low] - outside[axis]) / delta);
    if (outside[axis] > frame[high]) t = Math.max(t, (frame[high] - outside[axis]) / delta);
  }
  return { x: outside.x + t * (inside.x - outside.x), y: outside.y + t * (inside.y - outside.y) };
}

/** A line up to the border of a frame in which it ends; nothing is left of one that starts in it too. */
function clipped(line, frame) {
  const first = line.findIndex((point) => holds(frame, point));
  return first < 1 ? [] : [...line.slice(0, first), entry(line[first - 1], line[first], frame)];
}

/** The head of an arrow at the end of a line. */
function headOf(line) {
  const [from, tip] = line.slice(-2);
  const long = Math.hypot(tip.x - from.x, tip.y - from.y) || 1;
  const [dx, dy] = [(tip.x - from.x) / long, (tip.y - from.y) / long];
  const base = { x: tip.x - dx * HEAD, y: tip.y - dy * HEAD };
  const side = (sign) => `${base.x - sign * dy * 2.3},${base.y + sign * dx * 2.3}`;
  return { base, points: `${side(1)} ${tip.x},${tip.y} ${side(-1)} ${side(1)}` };
}

class Folding {
  constructor(picture) {
    this.picture = picture;
    [this.along, this.low, this.high] = page.runs === "LR" ? ["x", "left", "right"] : ["y", "top", "bottom"];
    this.folded = new Set();
    this.first = new Map(); // attributes as they were drawn
    this.viewBox = picture.svg.getAttribute("viewBox").split(/[ ,]+/).map(Number);
    this.edges = [...picture.svg.querySelectorAll(".edge")].map((element) => this.edge(element));
    this.backs = [...picture.svg.querySelectorAll(".cluster.back")].map((element) => ({
      element,
      frame: frameOf(pairs(element.querySelector("path,polygon").getAttribute("d") || "0,0")),
    }));
    this.taps = [...picture.svg.querySelectorAll(".tap")];
    this.titles = [...picture.svg.querySelectorAll(".figure > text")];
    this.spans = new Map();
    for (const text of picture.svg.querySelectorAll(".edge text, .figure > text")) this.spans.set(text, this.span(text));
  }

  /** From where to where a text takes room along the figure. */
  span(text) {
    const at = Number(text.getAttribute(this.along));
    if (this.along === "y") return [at - 8, at];
    const wide = text.getComputedTextLength();
    const left = at - { middle: wide / 2, end: wide }[text.getAttribute("text-anchor")] || at;
    return [left, left + wide];
  }

  edge(element) {
    const points = pairs(element.querySelector("path").getAttribute("d"));
    const tip = pairs(element.querySelector("polygon")?.getAttribute("points") || "")[1];
    const line = points.filter((_, index) => index % 3 === 0);
    if (tip) line[line.length - 1] = tip;
    return { element, from: element.dataset.from, to: element.dataset.to, line };
  }

  /** The frame of what is left; a title may be wider than that. */
  get content() {
    const [x, y, width, height] = this.viewBox;
    if (this.along === "y") return { x, y, width, height: height - this.total };
    return { x, y, width: Math.max(width - this.total, ...this.ends.map((end) => end - x)), height };
  }

  toggle(plate, fold = !this.folded.has(plate)) {
    if (fold) this.folded.add(plate);
    else this.folded.delete(plate);
    this.apply();
  }

  all(fold) {
    this.folded = new Set(fold ? this.picture.plates.map((plate) => plate.id) : []);
    this.apply();
  }

  /** The folded plate, the outermost if there are several, in which something is hidden. */
  cover(stop) {
    let found = null;
    for (let plate = stop.plate; plate; plate = this.picture.stops.get(plate).plate) {
      if (this.folded.has(plate)) found = plate;
    }
    return found;
  }

  apply() {
    const { map, total } = shrinking(this.picture.plates.flatMap((plate) => this.removed(plate)));
    this.total = total;
    for (const element of this.picture.svg.querySelectorAll(".graph > polygon, .cluster > path, .cluster > polygon")) {
      this.restate(element, element.localName === "path" ? "d" : "points", map);
    }
    for (const text of this.picture.svg.querySelectorAll(".cluster > text")) this.move(text, map);
    this.ends = this.along === "x" ? this.titles.map((title) => this.center(title, map)) : [];
    for (const stop of this.picture.stops.values()) this.place(stop, map);
    for (const edge of this.edges) this.route(edge, map);
    const covered = this.picture.plates.filter((plate) => this.folded.has(plate.id) && !this.cover(plate));
    const inside = ({ x, y }) => covered.some(({ frame }) => holds(frame, { x, y }));
    for (const { element, frame } of this.backs) {
      element.toggleAttribute("hidden", inside({ x: frame.left, y: frame.top }) && inside({ x: frame.right, y: frame.bottom }));
    }
    for (const tap of this.taps) {
      const ellipse = tap.querySelector("ellipse");
      const at = { x: Number(ellipse.getAttribute("cx")), y: Number(ellipse.getAttribute("cy")) };
      tap.toggleAttribute("hidden", inside(at));
      tap.setAttribute("transform", this.shift(at[this.along], map));
    }
  }

  /** What a folded plate gives back along the figure: where nothing stands beside it that can be seen. */
  removed(plate) {
    if (!this.folded.has(plate.id) || this.cover(plate)) return [];
    const { along, low, high } = this;
    const taken = [];
    const keep = (from, to) => taken.push([from - CLEAR, to + CLEAR]);
    for (const stop of this.picture.stops.values()) {
      if (this.isWithin(stop, plate.id) || this.cover(stop)) continue;
      if (!stop.isPlate) keep(stop.frame[low], stop.frame[high]);
      else if (!this.isWithin(plate, stop.id) && stop !== plate) {
        keep(stop.frame[low], stop.label[along]);
        keep(stop.frame[high], stop.frame[high]);
      }
    }
    for (const edge of this.edges) this.keepLine(edge, keep);
    return freePieces([plate.label[along] + 4, plate.frame[high] - CORNER], taken);
  }

  /** Keep where a line crosses the figure and where its texts stand, as far as that can be seen. */
  keepLine({ element, from, to, line }, keep) {
    const { along } = this;
    const covers = [from, to].map((id) => this.cover(this.picture.stops.get(id)));
    if (covers[0] && covers[0] === covers[1]) return;
    const frames = covers.filter(Boolean).map((plate) => this.picture.stops.get(plate).frame);
    const isHidden = (point) => frames.some((frame) => holds(frame, point));
    for (const [index, point] of line.entries()) {
      const before = line[index - 1];
      if (before && point[along] === before[along] && !(isHidden(point) && isHidden(before))) keep(point[along], point[along]);
    }
    for (const text of element.querySelectorAll("text")) if (!isHidden(this.origin(text))) keep(...this.spans.get(text));
  }

  /** Where a text stands before folding. */
  origin(text) {
    const at = { x: Number(text.getAttribute("x")), y: Number(text.getAttribute("y")) };
    return { ...at, [this.along]: this.original(text, this.along) };
  }

  isWithin(stop, plate) {
    for (let around = stop.plate; around; around = this.picture.stops.get(around).plate) {
      if (around === plate) return true;
    }
    return false;
  }

  original(element, name) {
    if (!this.first.has(element)) this.first.set(element, element.getAttribute(name));
    const text = this.first.get(element);
    return name === this.along ? Number(text) : text;
  }

  /** A point after folding. */
  moved(point, map) {
    return { ...point, [this.along]: map(point[this.along]) };
  }

  shift(at, map) {
    const by = map(at) - at;
    return this.along === "y" ? `translate(0 ${by})` : `translate(${by} 0)`;
  }

  restate(element, name, map) {
    const pair = (_, x, y) => {
      const point = this.moved({ x: Number(x), y: Number(y) }, map);
      return `${point.x},${point.y}`;
    };
    element.setAttribute(name, this.original(element, name).replace(PAIR, pair));
  }

  move(text, map) {
    text.setAttribute(this.along, map(this.original(text, this.along)));
  }

  /** A title keeps its lines in the middle of each other, and is not left of the picture. */
  center(title, map) {
    const [low, high] = this.spans.get(title);
    const middle = (low + high) / 2;
    const left = Math.max(map(middle) - (high - low) / 2, this.viewBox[0] + 4);
    title.setAttribute("x", this.original(title, "x") + left - low);
    return left + high - low + 4;
  }

  place(stop, map) {
    stop.hidden = Boolean(this.cover(stop));
    stop.element.toggleAttribute("hidden", stop.hidden);
    const { left, right, top, bottom } = stop.frame;
    const middle = { x: (left + right) / 2, y: (top + bottom) / 2 };
    stop.now = this.moved(middle, map);
    if (!stop.isPlate) stop.element.setAttribute("transform", this.shift(middle[this.along], map));
    else {
      const isFolded = this.folded.has(stop.id);
      const corner = this.moved({ x: right, y: top }, map);
      stop.element.setAttribute("aria-expanded", String(!isFolded));
      stop.note.toggleAttribute("hidden", !isFolded);
      stop.handle.setAttribute("transform", `translate(${corner.x - 22} ${corner.y - 6.5})`);
      stop.handle.querySelector("path").setAttribute("d", isFolded ? "M3 6.5H10M6.5 3V10" : "M3 6.5H10");
    }
  }

  /** A line whose end is hidden goes to the border of the plate that hides it; one with both ends in it is hidden. */
  route({ element, from, to, line }, map) {
    const [start, end] = [from, to].map((id) => this.cover(this.picture.stops.get(id)));
    const framed = (plate) => {
      const { frame } = this.picture.stops.get(plate);
      return { ...frame, [this.low]: map(frame[this.low]), [this.high]: map(frame[this.high]) };
    };
    let now = line.map((point) => this.moved(point, map));
    if (end) now = clipped(now, framed(end));
    if (start) now = clipped(now.reverse(), framed(start)).reverse();
    element.toggleAttribute("hidden", now.length < 2 || (Boolean(start) && start === end));
    if (now.length < 2) return;
    const { base, points } = headOf(now);
    const way = [...now.slice(0, -1), base].map(({ x, y }) => `${x},${y}`);
    element.querySelector("path").setAttribute("d", `M${way.join("L")}`);
    element.querySelector("polygon")?.setAttribute("points", points);
    for (const text of element.querySelectorAll("text")) {
      this.move(text, map);
      const at = { x: Number(text.getAttribute("x")), y: Number(text.getAttribute("y")) };
      text.toggleAttribute("hidden", [start, end].some((plate) => plate && holds(framed(plate), at)));
    }
  }
}
