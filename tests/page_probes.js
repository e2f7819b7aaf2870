"use strict";
// What tests of the page ask it, beyond one expression.

window.probes = {
  /** All coordinates of the picture. */
  drawn() {
    const told = (one) => ["d", "points", "x", "y", "transform"].map((name) => one.getAttribute(name));
    return JSON.stringify([...picture.svg.querySelectorAll("path, polygon, text, g")].map(told));
  },

  /** The frames of the boxes that can be seen, and of the folded plates. */
  frames() {
    const shown = [...picture.stops.values()].filter((stop) => !stop.hidden);
    return shown
      .filter((stop) => !stop.isPlate || picture.folding.folded.has(stop.id))
      .map((stop) => {
        const { x, y, width, height } = (stop.isPlate ? stop.element.querySelector("path") : stop.element).getBBox();
        const { left, right, top, bottom } = stop.frame;
        const across = stop.isPlate ? 0 : stop.now.x - (left + right) / 2;
        const along = stop.isPlate ? 0 : stop.now.y - (top + bottom) / 2;
        return [x + across, y + along, x + width + across, y + height + along];
      });
  },

  /** How many lines that can be seen go neither level nor upright. */
  slanted() {
    const apart = (a, b) => Math.abs(a.x - b.x) > 0.1 && Math.abs(a.y - b.y) > 0.1;
    const lines = [...picture.svg.querySelectorAll(".edge:not([hidden]) path")].map((one) => pairs(one.getAttribute("d")));
    return lines.filter((line) => line.some((point, index) => index && apart(point, line[index - 1]))).length;
  },

  /** Where the lines that can be seen end. */
  tips() {
    const lines = [...picture.svg.querySelectorAll(".edge:not([hidden]) polygon")];
    return lines.map((one) => pairs(one.getAttribute("points"))[1]).map(({ x, y }) => [x, y]);
  },

  /** The contrast of every text outside the picture by WCAG 2, the least first. */
  contrasts() {
    const numbers = (text) => text.match(/[\d.]+/g).map(Number);
    const linear = (c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
    const light = ([r, g, b]) => 0.2126 * linear(r / 255) + 0.7152 * linear(g / 255) + 0.0722 * linear(b / 255);
    const behind = (one) => {
      for (let at = one; at; at = at.parentElement) {
        const colour = numbers(getComputedStyle(at).backgroundColor);
        if (colour.length === 3 || colour[3]) return colour;
      }
      return [255, 255, 255];
    };
    const hasText = (one) => [...one.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
    return [...document.querySelectorAll("header *, #panel *, #parts *, #trace *, #found *")]
      .filter((one) => one.getClientRects().length && hasText(one))
      .map((one) => {
        const [low, high] = [light(numbers(getComputedStyle(one).color)), light(behind(one))].sort((a, b) => a - b);
        return [(high + 0.05) / (low + 0.05), `${one.tagName} ${one.textContent.slice(0, 40)}`];
      })
      .sort((a, b) => a[0] - b[0]);
  },

  /** The focus: an id, and whether it can be seen. */
  focus() {
    const one = document.activeElement;
    const shape = one instanceof SVGElement && one.querySelector("path, rect, ellipse");
    const isMarked = shape && parseFloat(getComputedStyle(shape).strokeWidth) >= 2;
    return [one.id || one.dataset.level || one.tagName, isMarked || getComputedStyle(one).outlineStyle !== "none"];
  },

  /** What has a role and can be seen, but has no name. */
  nameless() {
    return [...document.querySelectorAll("button, input, [role], .stop")]
      .filter((one) => one.getClientRects().length && !one.getAttribute("aria-label") && !one.textContent.trim())
      .map((one) => one.outerHTML);
  },
};
