// The main view of a reading: the text with its names or tags, trees, or strings, whichever fits the model.

import { h } from "../dom.js";
import { CodePoints } from "../codepoints.js";
import { arcsElement } from "./arcs.js";
import { stringElement } from "./strings.js";
import { treeElement } from "./tree.js";
import { keepOneTabStop, sentenceElement } from "./words.js";

const LABELS = {
  tags: "The text with what was found in it. Arrow keys move between words, Shift selects several, Enter shows what they may be.",
  heads: "Dependency trees. Arrow keys move between words, Enter shows their possible heads.",
  brackets: "Phrase trees. Arrow keys move between constituents, Enter shows their possible labels.",
  strings: "What each line becomes. Arrow keys move between pieces, Enter shows what they may become.",
};
const BLOCKS = { heads: arcsElement, brackets: treeElement, strings: stringElement };

/** Draws readings into one element and draws anew only the sentences that have changed. */
export class MainView {
  constructor(model) {
    this.model = model;
    this.element = h(`div.reading.of-${model.kind}`, { role: "group", "aria-label": LABELS[model.kind], dir: "auto" });
    if (model.isPlain) this.element.classList.add("plain");
    this.drawn = new Map();
  }

  draw(reading, context) {
    const points = new CodePoints(reading.text);
    const focused = this.element.contains(document.activeElement) ? document.activeElement.dataset.key : null;
    const stop = focused ?? this.element.querySelector('.word[tabindex="0"]')?.dataset.key;
    const kept = new Map();
    const scrolled = this.scrolled();
    const children = reading.sentences.map((sentence) => this.drawnSentence(sentence, points, context, kept));
    this.drawn = kept;
    this.element.replaceChildren(
      ...(this.model.kind === "tags" ? withGaps(children, reading.sentences, points) : children),
    );
    this.element.querySelectorAll('.word[tabindex="0"]').forEach((each) => each.setAttribute("tabindex", "-1"));
    keepOneTabStop(this.element, stop);
    this.element.querySelectorAll(".scroll").forEach((box, i) => (box.scrollLeft = scrolled[i] ?? 0));
    if (focused) this.element.querySelector(`[data-key="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
  }

  /** How far each wide picture is scrolled: it stays there when it is drawn anew. */
  scrolled() {
    return Array.from(this.element.querySelectorAll(".scroll"), (box) => box.scrollLeft);
  }

  drawnSentence(sentence, points, context, kept) {
    const pins = context.pins.filter((pin) => pin.start < sentence.end && sentence.start < pin.end);
    const differs = context.differs ? sentence.tokens.map((token) => Boolean(context.differs(token))) : null;
    const { analyses, choices, spanChoices, ...seen } = sentence;
    const key = JSON.stringify([seen, pins, differs, points.slice(sentence.start, sentence.end)], (name, value) =>
      name === "choices" ? undefined : value,
    );
    const element = this.drawn.get(key) ?? this.newElement(sentence, points, context);
    kept.set(key, element);
    return element;
  }

  newElement(sentence, points, context) {
    if (this.model.kind === "tags") return sentenceElement(sentence, points, context);
    return h("div.block", { data: { sentence: sentence.index } }, BLOCKS[this.model.kind](sentence, context));
  }
}

function withGaps(children, sentences, points) {
  const found = [];
  let at = 0;
  sentences.forEach((sentence, i) => {
    found.push(points.slice(at, sentence.start), children[i]);
    at = sentence.end;
  });
  return found;
}
