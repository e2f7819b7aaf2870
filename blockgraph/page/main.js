"use strict";
// The page comes to life: levels, folding, theme, and what each key does.

const DARK = "screen and (prefers-color-scheme: dark)";
const pictures = new Map();
const stage = byId("stage");
const view = new View(stage);
const panel = new Panel(byId("panel"));
const search = new Search(byId("search"), byId("hits"), (stop) => pick(stop, true));
const trace = page.trace ? new Trace(page.trace) : null;
let picture = null;

function showLevel(name) {
  const level = page.levels.find((one) => one.name === name);
  for (const { name: other } of page.levels) byId(`${other}-picture`).toggleAttribute("hidden", other !== name);
  for (const button of byId("levels").children) {
    const isThis = button.dataset.level === name;
    button.setAttribute("aria-checked", String(isThis));
    button.setAttribute("tabindex", isThis ? "0" : "-1");
  }
  if (!pictures.has(name)) pictures.set(name, new Picture(level));
  picture = pictures.get(name);
  byId("folding").hidden = !picture.plates.length;
  search.picture = picture;
  if (search.field.value.trim()) search.look();
  search.open(false);
  view.show(picture.svg, picture.folding.content);
  trace?.show(picture);
}

/** Choose a stop and tell about it; with `focus` the keys go on from there. */
function pick(stop, focus) {
  if (picture.folding.cover(stop)) picture.uncover(stop);
  const chosen = picture.choose(stop);
  panel.part(chosen.fact, chosen.isPlate ? foldButton(chosen) : null);
  view.resize(picture.folding.content);
  view.reveal(chosen.element);
  if (focus) chosen.element.focus({ preventScroll: true });
}

function foldButton(plate) {
  const isFolded = picture.folding.folded.has(plate.id);
  const button = make("button", {}, isFolded ? "Unfold" : "Fold");
  on(button, "click", () => toggle(plate));
  return button;
}

function toggle(plate) {
  picture.folding.toggle(plate.id);
  view.resize(picture.folding.content);
  trace?.show(picture);
  if (picture.isChosen) pick(picture.seen(plate), false);
  else picture.refresh();
}

function foldAll(fold) {
  picture.folding.all(fold);
  picture.refresh();
  view.resize(picture.folding.content);
  trace?.show(picture);
}

function leavePanel() {
  const inside = panel.element.contains(document.activeElement);
  panel.close();
  picture?.leave();
  if (inside) picture?.current?.element.focus({ preventScroll: true });
}

function isDark() {
  return window.matchMedia(byId("dark").media).matches;
}

function setTheme(dark) {
  byId("dark").media = dark ? "screen" : "not all";
  nameTheme();
}

function nameTheme() {
  byId("theme").textContent = isDark() ? "Light" : "Dark";
  document.documentElement.dataset.theme = isDark() ? "dark" : "light";
}

/** Keys in the picture. */
function pictureKey(event) {
  const arrow = event.key.startsWith("Arrow");
  const next = arrow ? picture.next(event.key) : null;
  const { current } = picture;
  if (arrow) {
    if (next) goTo(next);
  } else if (event.key === "Enter" || event.key === " ") {
    pick(current, true);
    if (event.key === "Enter") panel.element.focus({ preventScroll: true });
  } else if (event.key === "f") {
    const plate = current.isPlate ? current : picture.stops.get(current.plate);
    if (plate) {
      toggle(plate);
      goTo(picture.seen(plate));
    }
  } else if (event.key === "p") {
    if (current.plate) goTo(picture.stops.get(current.plate));
  } else return false;
  return true;
}

/** Go to a stop by key: the panel follows if it is open. */
function goTo(stop) {
  const chosen = picture.choose(stop);
  chosen.element.focus({ preventScroll: true });
  if (panel.isOpen) pick(chosen, true);
  else view.reveal(chosen.element);
}

const KEYS = {
  "/": () => byId("search").focus(),
  "+": () => view.zoom(1.25),
  "=": () => view.zoom(1.25),
  "-": () => view.zoom(0.8),
  0: () => view.fit(),
  d: () => setTheme(!isDark()),
  "?": () => byId("keys").showModal(),
  ",": () => trace?.move(-1),
  ".": () => trace?.move(1),
  Escape: () => leavePanel(),
};

function key(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || byId("keys").open || isTyping(event.target)) return;
  const level = page.levels[Number(event.key) - 1];
  const inPicture = picture && picture.svg.contains(event.target);
  if (inPicture && pictureKey(event)) event.preventDefault();
  else if (Object.hasOwn(KEYS, event.key)) {
    event.preventDefault();
    KEYS[event.key]();
  } else if (level) showLevel(level.name);
}

function levelButtons() {
  for (const { name } of page.levels) {
    const button = make("button", { role: "radio", "data-level": name }, name);
    on(button, "click", () => showLevel(name));
    on(button, "keydown", (event) => {
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      if (!step) return;
      event.preventDefault();
      const names = page.levels.map((one) => one.name);
      const next = names[(names.indexOf(name) + step + names.length) % names.length];
      showLevel(next);
      byId("levels").querySelector('[aria-checked="true"]').focus();
    });
    byId("levels").append(button);
  }
  byId("levels").hidden = page.levels.length < 2;
}

function start() {
  document.documentElement.classList.add("live");
  document.querySelector(".tools").hidden = false;
  levelButtons();
  if (page.levels.length) showLevel(page.first);
  if (trace) {
    trace.show(picture);
    trace.go(0);
    trace.reveal = (element) => view.reveal(element);
  }
  nameTheme();
  on(window.matchMedia("(prefers-color-scheme: dark)"), "change", nameTheme);
  on(document, "keydown", key);
  on(panel.element, "leave", leavePanel);
  on(stage, "click", (event) => {
    const handle = event.target.closest(".handle");
    const stop = picture?.stops.get(event.target.closest(".stop")?.id);
    if (handle) toggle(stop);
    else if (stop) pick(stop, true);
  });
  on(byId("parts"), "click", (event) => {
    const row = event.target.closest("tr[data-box]");
    const stop = row && [...pictures.values()].map((one) => one.stops.get(row.dataset.box)).find(Boolean);
    if (stop) {
      showLevel(stop.id.slice(0, stop.id.lastIndexOf("-")));
      pick(stop, true);
      window.scrollTo({ top: 0 });
    }
  });
  const buttons = { in: () => view.zoom(1.25), out: () => view.zoom(0.8), fit: () => view.fit() };
  buttons.fold = () => foldAll(true);
  buttons.unfold = () => foldAll(false);
  buttons.theme = () => setTheme(!isDark());
  buttons.help = () => byId("keys").showModal();
  for (const [id, answer] of Object.entries(buttons)) on(byId(id), "click", answer);
  on(window, "beforeprint", () => view.print(true));
  on(window, "afterprint", () => view.print(false));
  if (window.matchMedia("(min-width: 52.01rem)").matches || page.findings.length) panel.whole();
}

start();
