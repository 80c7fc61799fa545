// The text itself with what the model found in it: names as coloured spans, or a tag under each word.

import { h, s } from "../dom.js";
import { bits, shortPercent } from "../format.js";

const LEAST_SHOWN = 0.08; // bits

/** How strongly a word is underlined: 0 for certain, 1 for two bits and more. */
export const unsureness = (entropy) => (entropy < LEAST_SHOWN ? 0 : Math.min(1, Math.sqrt(entropy / 2)));

/** A sentence of a reading as an inline element; what is between its words is kept as it is. */
export function sentenceElement(sentence, points, context) {
  const element = h("span.sentence", { data: { sentence: sentence.index } });
  let at = sentence.start;
  const groups = context.model.isPlain ? [] : sentence.spans;
  const spanAt = new Map(groups.map((span) => [span.start, span]));
  for (let t = 0; t < sentence.tokens.length;) {
    const span = spanAt.get(t);
    const end = span ? span.end : t + 1;
    element.append(points.slice(at, sentence.tokens[t].start));
    const words = wordsBetween(sentence, t, end, points, context);
    element.append(...(span ? [spanElement(sentence, span, words, context)] : words));
    at = sentence.tokens[end - 1].end;
    t = end;
  }
  return element;
}

function wordsBetween(sentence, from, to, points, context) {
  const found = [];
  for (let t = from; t < to; t += 1) {
    if (t > from) found.push(points.slice(sentence.tokens[t - 1].end, sentence.tokens[t].start));
    found.push(wordElement(sentence, t, context));
  }
  return found;
}

function spanElement(sentence, span, words, context) {
  const [first, last] = [sentence.tokens[span.start], sentence.tokens[span.end - 1]];
  const pin = context.pins.find((each) => each.what === "span" && each.start === first.start && each.end === last.end);
  const differs = words.some((each) => each.classList?.contains("differs"));
  return h(
    `span.span.${context.model.colour(span.label)}`,
    {
      data: {
        label: span.label,
        probability: span.probability,
        pinned: Boolean(pin),
        differs,
        first: span.start,
        last: span.end,
      },
    },
    ...words,
    h(
      "span.label",
      { "aria-hidden": "true" },
      pin ? pinIcon() : null,
      h("bdi", {}, h("b", {}, span.label), ` ${shortPercent(span.probability)}`),
    ),
  );
}

function wordElement(sentence, t, context) {
  const token = sentence.tokens[t];
  const pin = context.pins.find((each) => isOn(token, each));
  const differs = context.differs?.(token);
  const stacked = context.model.isPlain;
  return h(
    `span.word${stacked ? ".stacked" : ""}${differs ? ".differs" : ""}`,
    {
      role: "button",
      tabindex: "-1",
      "aria-haspopup": "dialog",
      "aria-label": spokenWord(token, pin, differs),
      "--unsure": unsureness(token.entropy).toFixed(3),
      data: {
        key: `${context.model.name}/${sentence.index}/${t}`,
        sentence: sentence.index,
        token: t,
        label: token.label,
        probability: token.probability,
      },
    },
    h("span.letters", {}, token.text),
    stacked ? underWord(token, pin, context) : null,
    pin && !stacked ? pinIcon() : null,
  );
}

/** Whether a pin says something of this word alone: its tag, or that it is outside. */
function isOn(token, pin) {
  if (pin.what === "tag") return pin.start === token.start && pin.end === token.end;
  return pin.what === "span" && pin.value === "O" && pin.start <= token.start && token.end <= pin.end;
}

function underWord(token, pin, context) {
  return h(
    `span.under.${context.model.colour(token.label)}`,
    { "aria-hidden": "true" },
    pin ? pinIcon() : null,
    h("bdi", {}, token.label),
  );
}

function spokenWord(token, pin, differs) {
  const sure = token.probability === undefined ? "" : ` ${shortPercent(token.probability)}`;
  const unsure = token.entropy > 0.5 ? `, unsure: ${bits(token.entropy)}` : "";
  return `${token.text}: ${token.label ?? "no tag"}${sure}${unsure}${pin ? ", pinned" : ""}${differs ? ", models differ" : ""}`;
}

/** The sign of a pin. */
export function pinIcon() {
  return s(
    "svg.pin-icon",
    { viewBox: "0 0 12 12", width: 11, height: 11, "aria-hidden": "true" },
    s("path", { d: "M6 7.5V11.5M3.2 7.5h5.6M4.4 7.5V4L3.6 1.2h4.8L7.6 4v3.5" }),
  );
}

/** Arrow keys move between the words of an element, of which one can be reached with Tab. */
export function makeWalkable(container, { open, select, deselect, openKeys = ["Enter", " "], selector = ".word" }) {
  const all = () => Array.from(container.querySelectorAll(selector));
  const focusOn = (element) => {
    if (!element) return;
    container.querySelectorAll(`${selector}[tabindex="0"]`).forEach((each) => each.setAttribute("tabindex", "-1"));
    element.setAttribute("tabindex", "0");
    element.focus();
  };
  container.addEventListener("keydown", (event) => {
    const here = event.target.closest(selector);
    if (!here || event.ctrlKey || event.metaKey || event.altKey) return;
    const words = all();
    const at = words.indexOf(here);
    const next = words[at + stepOf(event.key, getComputedStyle(here).direction, words.length - 1 - at, at)];
    if (openKeys.includes(event.key)) open(here);
    else if (next && next !== here) {
      if (event.shiftKey) select?.(here, next);
      else deselect?.();
      focusOn(next);
    } else return;
    event.preventDefault();
  });
  container.addEventListener("focusin", (event) => {
    const here = event.target.closest(selector);
    if (here && here.getAttribute("tabindex") !== "0") focusOn(here);
  });
}

function stepOf(key, direction, toEnd, toStart) {
  const forward = direction === "rtl" ? -1 : 1;
  const steps = { ArrowRight: forward, ArrowLeft: -forward, ArrowDown: 1, ArrowUp: -1, End: toEnd, Home: -toStart };
  return steps[key] ?? 0;
}

/** One word can be reached with Tab: the one that could before, or the first. */
export function keepOneTabStop(container, key, selector = ".word") {
  const stop =
    (key && container.querySelector(`${selector}[data-key="${CSS.escape(key)}"]`)) || container.querySelector(selector);
  stop?.setAttribute("tabindex", "0");
}
