"use strict";
// Search: by name, kind, text in the box and parameter; hits are listed, and marked in the picture.

const MOST = 50;

class Search {
  constructor(field, list, choose) {
    this.field = field;
    this.list = list;
    this.choose = choose;
    this.hits = [];
    on(field, "input", () => this.look());
    on(field, "focus", () => this.look());
    on(field, "keydown", (event) => this.key(event));
    on(field, "blur", () => this.close());
    on(list, "pointerdown", (event) => event.preventDefault());
    on(list, "click", (event) => this.take(event.target.closest("li")?.dataset.stop));
  }

  /** The stops in which every word of the field is found. */
  found() {
    const words = this.field.value.toLocaleLowerCase().split(/\s+/).filter(Boolean);
    const stops = words.length ? [...this.picture.stops.values()] : [];
    return stops.filter((stop) => words.every((one) => said(stop.fact).includes(one)));
  }

  look() {
    if (!this.picture) return;
    this.hits = this.found();
    for (const stop of this.picture.stops.values()) stop.element.classList.toggle("hit", this.hits.includes(stop));
    this.picture.svg.classList.toggle("searching", this.hits.length > 0);
    const items = this.hits.slice(0, MOST).map((stop, index) => item(stop, index));
    const none = this.field.value.trim() && !items.length ? [make("li", {}, "nothing found")] : [];
    this.list.replaceChildren(...items, ...none);
    this.open(items.length + none.length > 0);
    this.point(items.length ? 0 : -1);
  }

  open(isOpen) {
    this.list.hidden = !isOpen;
    this.field.setAttribute("aria-expanded", String(isOpen));
  }

  /** Close the list; marks stay as long as there is something in the field. */
  close() {
    this.open(false);
    if (!this.field.value.trim()) this.clear();
  }

  clear() {
    this.field.value = "";
    this.look();
    this.open(false);
  }

  point(index) {
    this.at = index;
    for (const [place, one] of [...this.list.children].entries()) {
      one.setAttribute("aria-selected", String(place === index));
      if (place === index) one.scrollIntoView({ block: "nearest" });
    }
    if (index < 0) this.field.removeAttribute("aria-activedescendant");
    else this.field.setAttribute("aria-activedescendant", `hit-${index}`);
  }

  key(event) {
    const count = Math.min(this.hits.length, MOST);
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && count) this.point((this.at + step + count) % count);
    else if (event.key === "Enter") this.take(this.hits[this.at]?.id);
    else if (event.key === "Escape" && (this.field.value || !this.list.hidden)) this.clear();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  take(id) {
    if (!id) return;
    this.open(false);
    this.choose(this.picture.stops.get(id));
  }
}

/** All text of a fact by which it may be found. */
function said(fact) {
  const { title, name, kind, family, details = [], parameters = [] } = fact;
  const names = parameters.map(([parameter]) => parameter);
  return [title, name, kind, family, ...details, ...names].filter(Boolean).join(" ").toLocaleLowerCase();
}

function item({ id, fact }, index) {
  const names = [fact.kind, fact.name].filter(Boolean).join(" · ");
  const attributes = { id: `hit-${index}`, role: "option", "data-stop": id, "aria-selected": "false" };
  return make("li", attributes, word(fact.title), make("small", {}, word(names)));
}
