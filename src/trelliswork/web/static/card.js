// The answer of one model: its main view, what is wrong if something is, and the details of a sentence.

import { choicesFor, headPin, placePin } from "./choosing.js";
import { CodePoints } from "./codepoints.js";
import { Details } from "./details.js";
import { h } from "./dom.js";
import { bits, count } from "./format.js";
import { withPin, withPins, withoutPin } from "./pins.js";
import { openPopover } from "./popover.js";
import { fits } from "./reading.js";
import { constituentsOf, parseBrackets } from "./views/tree.js";
import { MainView } from "./views/main.js";
import { makeWalkable } from "./views/words.js";

const WITH_WORDS = ["tags", "heads"]; // kinds whose words are underlined

export class Card {
  constructor(model, store) {
    [this.model, this.store] = [model, store];
    [this.current, this.token, this.selection] = [0, 0, null];
    this.main = new MainView(model);
    this.details = new Details(model, () => this.context());
    this.problem = h("p.problem", { role: "alert", hidden: true });
    this.summary = h("p.summary", {});
    this.ignored = h("p.note.ignored", { hidden: true });
    this.element = h(
      "article.card",
      { "aria-label": `Answer of ${model.name}`, data: { model: model.name } },
      h("header.card-head", {}, h("h2", {}, model.name), h("p.soft.kind", {}, model.description), this.summary),
      this.problem,
      this.ignored,
      this.main.element,
      model.can.choices && WITH_WORDS.includes(model.kind) ? legend(model.kind) : null,
      this.details.element,
    );
    this.listen();
  }

  context() {
    return {
      model: this.model,
      pins: this.store.pins,
      differs: this.differs,
      pin: (pin) => this.store.setPins(withPin(this.store.pins, pin)),
      unpin: (pin) => this.store.setPins(withoutPin(this.store.pins, pin)),
      pinAnalysis: (sentence, analysis) =>
        this.store.setPins(withPins(this.store.pins, this.pinsOf(sentence, analysis))),
    };
  }

  /** A new answer; `differs(token)` says where the models differ, `summary` how often. */
  show(reading, differs, summary) {
    [this.reading, this.differs] = [reading, differs];
    this.problem.hidden = true;
    this.element.removeAttribute("aria-busy");
    this.element.classList.remove("stale");
    this.summary.textContent = summary ?? wholeSummary(reading);
    this.current = Math.min(this.current, Math.max(0, reading.sentences.length - 1));
    this.clearSelection();
    this.showIgnored(reading);
    this.main.draw(reading, this.context());
    this.details.show(reading, this.current, this.token);
  }

  /** Pins that mean nothing to this model are not passed over in silence. */
  showIgnored({ text }) {
    const points = new CodePoints(text);
    const others = this.store.pins.filter((pin) => !fits(pin, this.model));
    this.ignored.hidden = !others.length;
    this.ignored.textContent = `Not for this model: ${others.map((pin) => `${points.slice(pin.start, pin.end)} ${pin.value}`).join(", ")}`;
  }

  fail(error) {
    this.problem.textContent = error.message;
    this.problem.hidden = false;
    this.element.removeAttribute("aria-busy");
    this.element.classList.add("stale");
  }

  listen() {
    const { element } = this.main;
    makeWalkable(element, {
      open: (word) => this.openAt(word),
      select: (from, to) => this.select(from, to),
      deselect: () => this.clearSelection(),
    });
    element.addEventListener("click", (event) => {
      const found = event.target.closest(".word, .arc") ?? event.target.closest(".span")?.querySelector(".word");
      if (!found) return this.at(event.target.closest("[data-sentence]"));
      if (!this.model.canPin) return;
      if (event.shiftKey && this.anchorWord) this.select(this.anchorWord, found);
      this.openAt(found);
    });
    element.addEventListener("focusin", (event) => {
      const word = event.target.closest(".word, .arc");
      if (word) this.at(word);
    });
  }

  /** The word that everything else is about now. */
  at(word) {
    if (!word) return;
    const [sentence, token] = [Number(word.dataset.sentence), Number(word.dataset.token ?? word.dataset.first ?? 0)];
    if (!this.selection) this.anchorWord = word;
    if (sentence === this.current && token === this.token) return;
    [this.current, this.token] = [sentence, token];
    if (this.reading) this.details.show(this.reading, sentence, token);
  }

  select(from, to) {
    if (this.model.kind !== "tags" || this.model.isPlain || from.dataset.sentence !== to.dataset.sentence) return;
    const start = this.selection?.from ?? Number(from.dataset.token);
    this.selection = { sentence: Number(from.dataset.sentence), from: start, to: Number(to.dataset.token) };
    const [low, high] = [Math.min(start, this.selection.to), Math.max(start, this.selection.to)];
    this.main.element.querySelectorAll(".word").forEach((word) => {
      const t = Number(word.dataset.token);
      word.classList.toggle("selected", word.dataset.sentence === from.dataset.sentence && low <= t && t <= high);
    });
  }

  clearSelection() {
    this.selection = null;
    this.main.element.querySelectorAll(".selected").forEach((word) => word.classList.remove("selected"));
  }

  openAt(word) {
    const sentence = this.reading?.sentences[Number(word.dataset.sentence)];
    if (!sentence || !this.model.canPin) return;
    openPopover(word, choicesFor(this.placeOf(word, sentence), this.context()));
    this.clearSelection();
  }

  /** Which tokens a click or Enter on a word is about: the selected ones, those of its span, or itself. */
  placeOf(word, sentence) {
    if (word.dataset.first !== undefined) {
      return {
        sentence,
        first: Number(word.dataset.first),
        last: Number(word.dataset.last),
        label: word.dataset.label,
      };
    }
    const token = Number(word.dataset.token);
    if (this.selection && this.selection.sentence === sentence.index) {
      const { from, to } = this.selection;
      return { sentence, first: Math.min(from, to), last: Math.max(from, to) + 1 };
    }
    const span =
      this.model.kind === "tags" && !this.model.isPlain
        ? sentence.spans.find((each) => each.start <= token && token < each.end)
        : null;
    return { sentence, first: span?.start ?? token, last: span?.end ?? token + 1 };
  }

  /** The pins that make an analysis the only one. */
  pinsOf(sentence, analysis) {
    const { kind } = this.model;
    if (this.model.isPlain)
      return sentence.tokens.map((_, t) => placePin("tag", sentence, t, t + 1, analysis.value[t]));
    if (kind === "tags") return spanPinsOf(sentence, analysis.spans);
    if (kind === "heads") return sentence.tokens.map((_, t) => headPin(sentence, t, ...analysis.value[t]));
    const found = constituentsOf(parseBrackets(analysis.value));
    const isTop = (each, i) => !found.slice(0, i).some((other) => other.start === each.start && other.end === each.end);
    return found
      .filter((each, i) => this.model.can.chains || isTop(each, i))
      .map((each) => placePin("bracket", sentence, each.start, each.end, each.label));
  }
}

/** Each span as a pin, and what is between spans as being outside. */
function spanPinsOf(sentence, spans) {
  const found = [];
  let at = 0;
  for (const span of [...spans, { start: sentence.tokens.length, end: sentence.tokens.length }]) {
    if (at < span.start) found.push(placePin("span", sentence, at, span.start, "O"));
    if (span.label) found.push(placePin("span", sentence, span.start, span.end, span.label));
    at = span.end;
  }
  return found;
}

function wholeSummary(reading) {
  const tokens = reading.sentences.reduce((sum, sentence) => sum + sentence.tokens.length, 0);
  const unsure = reading.sentences.reduce(
    (sum, sentence) => sum + sentence.tokens.filter((token) => token.entropy > 0.5).length,
    0,
  );
  if (!WITH_WORDS.includes(reading.model.kind) || !reading.model.can.choices) return "";
  return `${count(tokens, "word")}, unsure of ${unsure}`;
}

/** What the underlines mean. */
export function legend(kind = "tags") {
  const step = (value, text) =>
    h(
      "span.legend-step",
      {},
      h("span.word", { "--unsure": value, "aria-hidden": "true" }, h("span.letters", {}, "word")),
      text,
    );
  return h(
    "p.legend",
    {},
    h("span", {}, "Underlined where the model is unsure:"),
    step(0.35, bits(0.25)),
    step(0.71, bits(1)),
    step(1, `${bits(2)} or more`),
    kind === "heads" ? h("span", {}, "Arcs without a number have more than 99%.") : null,
  );
}
