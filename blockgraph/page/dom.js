"use strict";
// The page's data and the few ways in which the scripts make elements. Text is only ever set as text.

const SVG = "http://www.w3.org/2000/svg";
const page = JSON.parse(document.getElementById("facts").textContent);

function byId(id) {
  return document.getElementById(id);
}

/** An HTML element with attributes and children; a child that is no node becomes text. */
function make(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** The same for SVG. */
function draw(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== undefined && value !== null) element.setAttribute(name, value);
  }
  for (const child of children.flat()) {
    if (child !== undefined && child !== null && child !== "") {
      element.append(child instanceof Node ? child : String(child));
    }
  }
  return element;
}

/** Text of the spec, whichever way it is read. */
function word(text) {
  return make("bdi", {}, text);
}

function on(element, event, answer, options) {
  element.addEventListener(event, answer, options);
}

/** Whether a key goes into a field instead of to the page. */
function isTyping(target) {
  return target instanceof HTMLInputElement && target.type !== "range";
}
