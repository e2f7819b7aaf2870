"use strict";
// The side panel: what is known of the chosen part, or of the whole.

class Panel {
  constructor(element) {
    this.element = element;
  }

  get isOpen() {
    return !this.element.hidden;
  }

  close() {
    this.element.hidden = true;
    this.element.replaceChildren();
  }

  /** Show parts of the panel; empty ones are left out. */
  show(title, ...sections) {
    const close = make("button", { class: "close", "aria-label": "Close details", title: "Close (Esc)" }, "×");
    on(close, "click", () => this.element.dispatchEvent(new CustomEvent("leave")));
    this.element.replaceChildren(close, make("h2", {}, word(title)), ...sections.flat().filter(Boolean));
    this.element.hidden = false;
    this.element.scrollTop = 0;
  }

  part(fact, buttons) {
    const names = [fact.kind, fact.name === fact.title ? "" : fact.name].filter(Boolean).join(" · ");
    this.show(
      fact.title,
      make("p", { class: "soft" }, word(names)),
      ...(fact.details || []).map((line) => make("p", {}, word(line))),
      buttons,
      fact.formula && make("p", { class: "formula" }, word(fact.formula)),
      titled("Equation", (fact.equations || []).map((text) => codeLine(text))),
      titled("Inside", (fact.inside || []).map(([text, ...shape]) => codeLine(text, shape))),
      titled("Operands", shapes(fact.operands)),
      titled("Results", shapes(fact.results)),
      titled("Parameters", fact.parameters && table(["", "shape", "in numbers", "count"], fact.parameters)),
      titled(isLayered(fact) ? "Costs of one layer" : "Costs", fact.costs && table(["", "formula", "number"], fact.costs)),
      titled("In the spec", (fact.places || []).map(([line, text]) => codeLine(`${line}  ${text.trim()}`))),
      titled("Findings", (fact.findings || []).map((number) => this.finding(page.findings[number]))),
    );
  }

  whole() {
    const rows = page.about.flat();
    const loose = page.findings.map((one) => this.finding(one));
    this.show(
      "Overview",
      titled("Facts", rows.length && table([], rows)),
      titled("Findings", loose),
      make("p", { class: "soft" }, "Choose a part of the picture, or press ? for the keys."),
    );
  }

  finding(one) {
    const place = one.line === null ? "" : `line ${one.line}`;
    return make(
      "div",
      { class: `finding ${one.severity}` },
      make("p", {}, make("strong", {}, one.code), ` ${one.severity} ${place}`),
      make("p", {}, word(one.message)),
      one.text && codeLine(one.text.trim()),
      one.label && make("p", { class: "soft" }, word(one.label)),
      one.related.map((line) => make("p", { class: "soft" }, word(line))),
      one.help && make("p", {}, "help: ", word(one.help)),
      explained(one.code),
    );
  }
}

function isLayered({ costs = [] }) {
  return costs.some(([label]) => label === "layers");
}

/** The page about a code, closed at first. */
function explained(code) {
  const pieces = (page.codes[code] || []).map(([kind, text]) => {
    if (kind === "heading") return make("h3", {}, text);
    return make(kind === "code" ? "pre" : "p", {}, text);
  });
  return make("details", {}, make("summary", {}, `What ${code} means`), make("div", { class: "page" }, pieces));
}

function titled(title, content) {
  const filled = Array.isArray(content) ? content.length : content;
  return filled ? [make("h3", {}, title), content].flat() : [];
}

/** A line of code, its shape in symbols and numbers under it. */
function codeLine(text, shape = []) {
  const told = [...new Set(shape.filter(Boolean))].join("  =  ");
  return make("p", { class: "code" }, word(text), told && make("small", {}, word(told)));
}

/** Values with their shapes in symbols and numbers. */
function shapes(values) {
  return values && table(["", "shape", "in numbers"], values);
}

/** A table without the columns that say nothing new. */
function table(head, rows) {
  const wide = Math.max(...rows.map((row) => row.length));
  const told = Array.from({ length: wide }, (_, column) => column).filter(
    (column) => column < 2 || rows.some((row) => row[column] && row[column] !== row[column - 1]),
  );
  const cells = (row) => told.map((column) => make("td", {}, word(row[column] ?? "")));
  const titles = head.length ? make("thead", {}, make("tr", {}, told.map((column) => make("th", { scope: "col" }, head[column])))) : "";
  return make("table", { class: head[1] === "shape" ? "shapes" : "" }, titles, make("tbody", {}, rows.map((row) => make("tr", {}, cells(row)))));
}
