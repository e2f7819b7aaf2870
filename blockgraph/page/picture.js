"use strict";
// One level: what can be chosen in it, and how the keys go from one to the next along the edges.

class Picture {
  constructor(level) {
    this.level = level;
    this.svg = byId(`${level.name}-picture`);
    this.stops = new Map();
    for (const [id, [fact, plate]] of Object.entries(level.plates)) this.add(id, fact, plate, true);
    for (const [id, [fact, plate]] of Object.entries(level.boxes)) this.add(id, fact, plate, false);
    this.plates = [...this.stops.values()].filter((stop) => stop.isPlate);
    this.svg.setAttribute("role", "group");
    this.folding = new Folding(this);
    this.folding.apply();
    this.link();
    this.current = [...this.stops.values()].find((stop) => !stop.isPlate) || null;
    if (this.current) this.current.element.setAttribute("tabindex", "0");
  }

  add(id, number, plate, isPlate) {
    const element = byId(id);
    const fact = page.facts[number];
    const box = element.getBBox();
    const frame = { left: box.x, right: box.x + box.width, top: box.y, bottom: box.y + box.height };
    const stop = { id, element, fact, plate, isPlate, frame, into: [], out: [], hidden: false };
    const names = [fact.title, fact.name === fact.title ? "" : fact.name, ...(fact.details || [])];
    element.classList.add("stop");
    fill(element, { role: "button", tabindex: "-1", "aria-label": names.filter(Boolean).join(", ") }, []);
    if (isPlate) this.dress(stop);
    else if (!element.querySelector("path,polygon,ellipse")) element.prepend(this.halo(frame));
    this.stops.set(id, stop);
  }

  /** A frame around what has none of its own. */
  halo({ left, right, top, bottom }) {
    const size = { width: right - left + 8, height: bottom - top + 4 };
    return draw("rect", { class: "halo", x: left - 4, y: top - 2, rx: 4, "pointer-events": "all", ...size });
  }

  /** What a plate needs to be folded: where its label ends, a handle, and a note for when it is folded. */
  dress(stop) {
    const texts = [...stop.element.querySelectorAll("text")];
    const inside = Object.values(this.level.boxes).filter(([, plate]) => this.isAround(stop.id, plate)).length;
    const bottom = Math.max(stop.frame.top + 4, ...texts.map((text) => Number(text.getAttribute("y")) + 4)) + 12;
    stop.note = draw("text", { class: "folded-note", x: stop.frame.left + 9, y: bottom - 2 }, `${inside} parts folded`);
    stop.element.append(stop.note);
    const right = Math.max(...[...texts, stop.note].map((text) => text.getBBox().x + text.getBBox().width));
    stop.label = { x: right + 16, y: bottom };
    stop.handle = draw("g", { class: "handle" }, draw("rect", { width: 13, height: 13, rx: 3 }), draw("path"));
    fill(stop.handle, { "aria-hidden": "true" }, []);
    stop.element.append(stop.handle);
  }

  isAround(plate, inner) {
    for (let one = inner; one; one = this.level.plates[one][1]) if (one === plate) return true;
    return false;
  }

  link() {
    for (const edge of this.folding.edges) {
      const [from, to] = [this.stops.get(edge.from), this.stops.get(edge.to)];
      from.out.push({ edge, stop: to });
      to.into.push({ edge, stop: from });
    }
  }

  /** What can be seen of a stop: itself, or the folded plate that hides it. */
  seen(stop) {
    const cover = this.folding.cover(stop);
    return cover ? this.stops.get(cover) : stop;
  }

  /** The edges of a stop; of a folded plate those that leave or enter it. */
  edges(stop, side) {
    const all = stop.isPlate ? [...this.stops.values()].filter((one) => this.isAround(stop.id, one.plate)) : [stop];
    const found = all.flatMap((one) => one[side]).map(({ edge, stop: other }) => ({ edge, stop: this.seen(other) }));
    return found.filter(({ stop: other }) => other !== stop && !(stop.isPlate && this.isAround(stop.id, other.plate)));
  }

  /** Where an arrow key leads: up and down along edges, sideways among branches, or along a rail. */
  next(key) {
    const { current } = this;
    const sideways = (stop) => Math.abs(stop.now.x - current.now.x);
    const nearest = (side) => {
      const ends = this.edges(current, side).sort(
        (a, b) => sideways(a.stop) - sideways(b.stop) || this.far(a.stop) - this.far(b.stop),
      );
      return ends.length ? ends[0].stop : null;
    };
    if (key === "ArrowUp") return nearest("out");
    if (key === "ArrowDown") return nearest("into");
    const sign = key === "ArrowRight" ? 1 : -1;
    const beside = this.siblings().filter((stop) => (stop.now.x - current.now.x) * sign > 1);
    if (beside.length) return beside.sort((a, b) => sideways(a) - sideways(b) || this.far(a) - this.far(b))[0];
    const rails = ["into", "out"].flatMap((side) => this.edges(current, side));
    return rails.find(({ edge }) => edge.element.classList.contains("rail"))?.stop || null;
  }

  far(stop) {
    return Math.abs(stop.now.y - this.current.now.y);
  }

  /** What shares a source or a target with the current stop. */
  siblings() {
    const found = new Set();
    for (const [side, back] of [["into", "out"], ["out", "into"]]) {
      for (const { stop } of this.edges(this.current, side)) {
        found.add(stop);
        for (const { stop: other } of this.edges(stop, back)) found.add(other);
      }
    }
    found.delete(this.current);
    return [...found];
  }

  /** Make a stop the current one: it alone is in the order of the Tab key. */
  choose(stop) {
    this.leave();
    this.isChosen = true;
    this.current?.element.setAttribute("tabindex", "-1");
    this.current = this.seen(stop);
    this.current.element.setAttribute("tabindex", "0");
    this.current.element.classList.add("chosen");
    for (const side of ["into", "out"]) {
      for (const { edge } of this.edges(this.current, side)) edge.element.classList.add("near");
    }
    return this.current;
  }

  leave() {
    this.isChosen = false;
    for (const old of this.svg.querySelectorAll(".chosen, .near")) old.classList.remove("chosen", "near");
  }

  /** Bring the marks in line with what can be seen after folding. */
  refresh() {
    if (this.isChosen) this.choose(this.current);
    else if (this.current) {
      this.choose(this.current);
      this.leave();
    }
  }

  /** Unfold whatever hides a stop. */
  uncover(stop) {
    for (let plate = stop.plate; plate; plate = this.stops.get(plate).plate) this.folding.folded.delete(plate);
    this.folding.apply();
  }
}
