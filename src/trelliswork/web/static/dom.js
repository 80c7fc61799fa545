// Elements from plain descriptions. Text is always set as text, never as HTML.

const SVG = "http://www.w3.org/2000/svg";

/** An element: h("button.quiet", {onclick, "aria-label": "Close"}, "×"). Attributes that are null or false are left out. */
export function h(description, attributes = {}, ...children) {
  const [name, ...classes] = description.split(".");
  return filled(document.createElement(name), classes, attributes, children);
}

/** The same for SVG. */
export function s(description, attributes = {}, ...children) {
  const [name, ...classes] = description.split(".");
  return filled(document.createElementNS(SVG, name), classes, attributes, children);
}

function filled(element, classes, attributes, children) {
  element.classList.add(...classes);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (key.startsWith("--")) element.style.setProperty(key, value);
    else if (key === "data") Object.assign(element.dataset, value);
    else element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

export const byId = (id) => document.getElementById(id);

/** Put new children in place of the old, and the focus back on the element with the same `data-key`. */
export function replaceChildren(parent, ...children) {
  const focused = parent.contains(document.activeElement) ? document.activeElement.dataset.key : undefined;
  parent.replaceChildren(...children.flat().filter(Boolean));
  if (focused !== undefined) parent.querySelector(`[data-key="${CSS.escape(focused)}"]`)?.focus();
}

/** Say something to those who listen to the page. */
export function say(sentence) {
  const spoken = byId("spoken");
  if (spoken.textContent !== sentence) spoken.textContent = sentence;
}

/** A drawing of the server as an element of the page: its own style sheet is dropped, palette.css has the colours. */
export function drawingElement(svg) {
  const bare = svg.replace(/<style>[^<]*<\/style>/g, ""); // before it is read: the policy of the page refuses inline styles
  return document.importNode(new DOMParser().parseFromString(bare, "image/svg+xml").documentElement, true);
}
