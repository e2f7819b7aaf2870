"use strict";
// Folding: what is inside a folded plate is hidden, and the room it took is taken out of the picture. All heights go
// through one rising function, so whatever was above something else still is, and upright lines stay upright.

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

/** y without the removed pieces above it. */
function shrinking(removed) {
  const sorted = removed.sort((a, b) => a[0] - b[0]);
  const joined = [];
  for (const [start, end] of sorted) {
    const last = joined.at(-1);
    if (last && start <= last[1]) last[1] = Math.max(last[1], end);
    else joined.push([start, end]);
  }
  const map = (y) => joined.reduce((sum, [start, end]) => sum - Math.min(Math.max(y - start, 0), end - start), y);
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
    this.folded = new Set();
    this.first = new Map(); // attributes as they were drawn
    this.viewBox = picture.svg.getAttribute("viewBox").split(/[ ,]+/).map(Number);
    this.edges = [...picture.svg.querySelectorAll(".edge")].map((element) => this.edge(element));
    this.backs = [...picture.svg.querySelectorAll(".cluster.back")].map((element) => ({
      element,
      frame: frameOf(pairs(element.querySelector("path,polygon").getAttribute("d") || "0,0")),
    }));
    this.taps = [...picture.svg.querySelectorAll(".tap")];
  }

  edge(element) {
    const points = pairs(element.querySelector("path").getAttribute("d"));
    const tip = pairs(element.querySelector("polygon")?.getAttribute("points") || "")[1];
    const line = points.filter((_, index) => index % 3 === 0);
    if (tip) line[line.length - 1] = tip;
    return { element, from: element.dataset.from, to: element.dataset.to, line };
  }

  get content() {
    const [x, y, width, height] = this.viewBox;
    return { x, y, width, height: height - this.total };
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
    for (const text of this.picture.svg.querySelectorAll(".cluster > text")) this.lower(text, map);
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
      tap.setAttribute("transform", `translate(0 ${map(at.y) - at.y})`);
    }
  }

  /** The heights that a folded plate gives back: those at which nothing stands beside it that can be seen. */
  removed(plate) {
    if (!this.folded.has(plate.id) || this.cover(plate)) return [];
    const taken = [];
    const keep = (top, bottom) => taken.push([top - CLEAR, bottom + CLEAR]);
    for (const stop of this.picture.stops.values()) {
      if (this.isWithin(stop, plate.id) || this.cover(stop)) continue;
      if (!stop.isPlate) keep(stop.frame.top, stop.frame.bottom);
      else if (!this.isWithin(plate, stop.id) && stop !== plate) {
        keep(stop.frame.top, stop.label);
        keep(stop.frame.bottom, stop.frame.bottom);
      }
    }
    for (const { element, from, to, line } of this.edges) {
      if ([from, to].some((id) => this.cover(this.picture.stops.get(id)))) continue;
      for (const [index, { y }] of line.entries()) if (index && y === line[index - 1].y) keep(y, y);
      for (const text of element.querySelectorAll("text")) keep(this.original(text, "y") - 8, this.original(text, "y"));
    }
    return freePieces([plate.label + 4, plate.frame.bottom - CORNER], taken);
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
    return name === "y" ? Number(text) : text;
  }

  restate(element, name, map) {
    element.setAttribute(name, this.original(element, name).replace(PAIR, (_, x, y) => `${x},${map(Number(y))}`));
  }

  lower(text, map) {
    text.setAttribute("y", map(this.original(text, "y")));
  }

  place(stop, map) {
    stop.hidden = Boolean(this.cover(stop));
    stop.element.toggleAttribute("hidden", stop.hidden);
    const middle = (stop.frame.top + stop.frame.bottom) / 2;
    stop.now = { x: (stop.frame.left + stop.frame.right) / 2, y: map(middle) };
    if (!stop.isPlate) stop.element.setAttribute("transform", `translate(0 ${map(middle) - middle})`);
    else {
      const isFolded = this.folded.has(stop.id);
      stop.element.setAttribute("aria-expanded", String(!isFolded));
      stop.note.toggleAttribute("hidden", !isFolded);
      stop.handle.setAttribute("transform", `translate(${stop.frame.right - 22} ${map(stop.frame.top) - 6.5})`);
      stop.handle.querySelector("path").setAttribute("d", isFolded ? "M3 6.5H10M6.5 3V10" : "M3 6.5H10");
    }
  }

  /** A line whose end is hidden goes to the border of the plate that hides it; one with both ends in it is hidden. */
  route({ element, from, to, line }, map) {
    const [start, end] = [from, to].map((id) => this.cover(this.picture.stops.get(id)));
    const framed = (plate) => {
      const { frame } = this.picture.stops.get(plate);
      return { ...frame, top: map(frame.top), bottom: map(frame.bottom) };
    };
    let now = line.map(({ x, y }) => ({ x, y: map(y) }));
    if (end) now = clipped(now, framed(end));
    if (start) now = clipped(now.reverse(), framed(start)).reverse();
    element.toggleAttribute("hidden", now.length < 2 || (Boolean(start) && start === end));
    if (now.length < 2) return;
    const { base, points } = headOf(now);
    const way = [...now.slice(0, -1), base].map(({ x, y }) => `${x},${y}`);
    element.querySelector("path").setAttribute("d", `M${way.join("L")}`);
    element.querySelector("polygon")?.setAttribute("points", points);
    for (const text of element.querySelectorAll("text")) {
      this.lower(text, map);
      const at = { x: Number(text.getAttribute("x")), y: Number(text.getAttribute("y")) };
      text.toggleAttribute("hidden", [start, end].some((plate) => plate && holds(framed(plate), at)));
    }
  }
}
