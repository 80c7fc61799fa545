// One sentence to decide: the answer of the model, corrected with keys or pointer, accepted in whole or in part.

import { actOf } from "./desk-keys.js";
import { choicesFor, placePin } from "./choosing.js";
import { DESK_KINDS } from "./desk-kinds.js";
import { h, say } from "./dom.js";
import { Live } from "./live.js";
import { openPopover } from "./popover.js";
import { withPin, withoutPin } from "./pins.js";
import { readWords, readingOf } from "./reading.js";
import { Store } from "./store.js";
import { legend } from "./card.js";
import { MainView } from "./views/main.js";
import { makeWalkable } from "./views/words.js";

const OUTSIDE = "O";

export class Desk {
  /** `decide({id, tags})` or `decide({id, skip})`, and `undo()` when there is nothing of this sentence to take back. */
  constructor({ decide, undo }) {
    [this.decide, this.undoDecision] = [decide, undo];
    this.element = h("section.desk.card", { "aria-label": "Sentence to decide" });
    this.live = new Live(
      ({ words, pins }, signal) => readWords(this.model, words, pins, { signal }),
      (reading) => this.show(reading),
      (error) => this.fail(error),
    );
    document.addEventListener("keydown", (event) => this.onKey(event));
  }

  /** A sentence of GET /v1/teach/next; `tags` are those of a decision that was taken back. */
  put({ id, score, sentence }, model, tags = null) {
    this.live.cancel();
    if (this.model !== model || !this.view) this.build(model);
    [this.id, this.words, this.reading] = [id, sentence.tokens, readingOf(model, sentence)];
    this.score.textContent = typeof score === "number" ? `Uncertainty ${score.toFixed(2)}` : "";
    this.store = new Store();
    this.store.onChange(() => this.changed());
    if (tags) this.store.pins = this.pinsOf(tags);
    this.show(this.reading);
    this.element.removeAttribute("aria-busy");
    if (this.store.pins.length) this.changed();
    this.view.element.querySelector(".word")?.focus({ preventScroll: true });
  }

  finish(open) {
    this.id = null;
    this.view = null;
    this.element.removeAttribute("aria-busy");
    this.element.replaceChildren(
      h(
        "h2.done-title",
        { tabindex: "-1" },
        open.remaining ? "Only sentences that were put off are left" : "Every sentence is decided",
      ),
      h("p.note", {}, "What you confirmed is in ", h("code", {}, open.file), ". Train on it, or open another file."),
      h(
        "div.desk-actions",
        {},
        this.button("Undo", "U", () => this.undo(), "button"),
      ),
    );
    this.element.firstChild.focus();
  }

  build(model) {
    this.model = model;
    this.kind = DESK_KINDS[model.kind];
    this.labels = this.kind.labels(model);
    this.view = new MainView(model);
    this.score = h("p.summary", {});
    this.problem = h("p.problem", { role: "alert", hidden: true });
    this.status = h("p.note.known", {});
    makeWalkable(this.view.element, {
      open: (word) => this.openAt(word),
      openKeys: ["a", "A"],
      select: (from, to) => this.select(from, to),
      deselect: () => this.deselect(),
    });
    this.view.element.addEventListener("click", (event) => this.onClick(event));
    this.element.replaceChildren(
      h("header.card-head", {}, h("h2", {}, "Is this right?"), this.score),
      this.problem,
      this.view.element,
      legend(model.kind),
      this.labels.length
        ? h("div.label-keys", { role: "group", "aria-label": "Labels for the chosen words" }, ...this.labelButtons())
        : "",
      this.status,
      h(
        "div.desk-actions",
        {},
        this.button("Accept", "Enter", () => this.accept(), "primary"),
        this.kind.isWhole
          ? this.button("Change", "A", () => this.openAt(this.focusedWord), "button")
          : this.button("Keep what I confirmed", "Shift Enter", () => this.keepConfirmed(), "button"),
        this.button("Skip", "S", () => this.skip(), "quiet"),
        this.button("Undo", "U", () => this.undo(), "quiet"),
      ),
    );
  }

  labelButtons() {
    const button = (label, key, shown = label) =>
      h(
        `button.label-key.${this.model.colour(label)}`,
        { type: "button", data: { label }, onclick: () => this.label(label) },
        h("kbd", {}, key),
        shown,
      );
    const numbered = this.labels.map((label, i) => button(label, String(i + 1)));
    return this.model.isPlain ? numbered : [...numbered, button(OUTSIDE, "0", "none")];
  }

  button(name, key, act, kind) {
    return h(
      `button.${kind}`,
      { type: "button", onclick: act, "aria-keyshortcuts": key.replace(" ", "+") },
      name,
      " ",
      ...key.split(" ").map((each) => h("kbd", {}, each)),
    );
  }

  // --- drawing -----------------------------------------------------------------------------------------------------

  get context() {
    return {
      model: this.model,
      pins: this.store.pins,
      pin: (pin) => this.store.setPins(withPin(this.store.pins, pin)),
      unpin: (pin) => this.store.setPins(withoutPin(this.store.pins, pin)),
    };
  }

  changed() {
    this.element.setAttribute("aria-busy", "true"); // until the answer under the pins is shown, nothing is decided
    this.live.request({ words: this.words, pins: this.store.pins }, { atOnce: true });
  }

  show(reading) {
    this.reading = reading;
    this.selection = null;
    this.problem.hidden = true;
    if (!this.isBusy) this.element.removeAttribute("aria-busy");
    this.view.draw(reading, this.context);
    const known = this.known.filter((tag) => tag !== null).length;
    this.status.textContent = known
      ? `${known} of ${this.words.length} words confirmed`
      : this.kind.nothing;
  }

  fail(error) {
    this.problem.textContent = error.message;
    this.problem.hidden = false;
    if (!this.isBusy) this.element.removeAttribute("aria-busy");
    say(error.message);
  }

  // --- what is known -----------------------------------------------------------------------------------------------

  get sentence() {
    return this.reading.sentences[0];
  }

  /** The tag of each word that was confirmed, null of the others. */
  get known() {
    const isKnown = (token) => this.store.pins.some((pin) => pin.start <= token.start && token.end <= pin.end);
    return this.sentence.tokens.map((token) => (isKnown(token) ? this.kind.written(token) : null));
  }

  /** Pins for what a decision said: of a whole one only what the model had otherwise. */
  pinsOf(tags) {
    const isWhole = tags.every((tag) => tag !== null);
    const wanted = (tag, t) => tag !== null && !(isWhole && tag === this.kind.written(this.sentence.tokens[t]));
    return tags.flatMap((tag, t) => (wanted(tag, t) ? [this.kind.pinOf(this.sentence, t, tag)] : []));
  }

  /** The words that a key is about: the selected ones, those of the span of the focused word, or that word. */
  get place() {
    const { sentence } = this;
    if (this.selection) return [Math.min(...this.selection), Math.max(...this.selection) + 1];
    const token = Number(this.focusedWord?.dataset.token ?? 0);
    const span = this.model.isPlain ? null : sentence.spans.find((each) => each.start <= token && token < each.end);
    return span ? [span.start, span.end] : [token, token + 1];
  }

  get focusedWord() {
    const { element } = this.view;
    return element.querySelector(".word:focus") ?? element.querySelector('.word[tabindex="0"]');
  }

  label(label) {
    const [first, last] = this.place;
    this.context.pin(placePin(this.model.isPlain ? "tag" : "span", this.sentence, first, last, label));
  }

  confirmPlace() {
    this.context.pin(this.kind.shownPin(this.model, this.sentence, this.place));
  }

  unpinPlace() {
    const [first, last] = this.place;
    const [start, end] = [this.sentence.tokens[first].start, this.sentence.tokens[last - 1].end];
    const kept = this.store.pins.filter((pin) => pin.end <= start || end <= pin.start);
    if (kept.length < this.store.pins.length) this.store.setPins(kept);
  }

  // --- deciding ----------------------------------------------------------------------------------------------------

  accept() {
    this.send({ id: this.id, tags: this.sentence.tokens.map(this.kind.written) });
  }

  keepConfirmed() {
    if (this.kind.isWhole) return this.fail(new Error(this.kind.nothing));
    const tags = this.known;
    if (tags.some((tag) => tag !== null)) return this.send({ id: this.id, tags });
    this.fail(new Error("Nothing is confirmed yet. Confirm words with Space or a label, or accept all with Enter."));
  }

  skip() {
    this.send({ id: this.id, skip: true });
  }

  /** One decision at a time, and only about what is shown. */
  send(decision) {
    if (this.id !== null && !this.live.isWaiting) this.alone(() => this.decide(decision));
  }

  undo() {
    if (this.id !== null && this.store?.past.length) this.store.undo();
    else this.alone(() => this.undoDecision());
  }

  async alone(act) {
    if (this.isBusy) return;
    this.isBusy = true;
    this.element.setAttribute("aria-busy", "true");
    await act();
    this.isBusy = false;
    if (!this.live.isWaiting) this.element.removeAttribute("aria-busy");
  }

  // --- keys and pointer --------------------------------------------------------------------------------------------

  onClick(event) {
    const word = event.target.closest(".word, .arc") ?? event.target.closest(".span")?.querySelector(".word");
    if (!word) return;
    if (event.shiftKey && this.lastWord) this.select(this.lastWord, word);
    else this.openAt(word);
    this.lastWord = word;
  }

  select(from, to) {
    if (this.model.isPlain || this.kind.isWhole) return;
    this.selection = [this.selection?.[0] ?? Number(from.dataset.token), Number(to.dataset.token)];
    const [low, high] = [Math.min(...this.selection), Math.max(...this.selection)];
    this.view.element
      .querySelectorAll(".word")
      .forEach((word) =>
        word.classList.toggle("selected", low <= Number(word.dataset.token) && Number(word.dataset.token) <= high),
      );
  }

  deselect() {
    this.selection = null;
    this.view.element.querySelectorAll(".selected").forEach((word) => word.classList.remove("selected"));
  }

  openAt(word) {
    const token = Number(word.dataset.token);
    const [first, last] = this.selection
      ? [Math.min(...this.selection), Math.max(...this.selection) + 1]
      : this.placeAt(token);
    openPopover(word, choicesFor({ sentence: this.sentence, first, last }, this.context));
  }

  placeAt(token) {
    const span = this.model.isPlain
      ? null
      : this.sentence.spans.find((each) => each.start <= token && token < each.end);
    return span ? [span.start, span.end] : [token, token + 1];
  }

  onKey(event) {
    if (this.isBusy) return;
    const isElsewhere =
      !this.element.isConnected ||
      this.element.closest("[hidden]") ||
      event.target.closest("input, select, textarea, dialog, .popover");
    if (isElsewhere || event.defaultPrevented) return;
    const act = actOf(event, this);
    if (!act) return;
    event.preventDefault();
    act();
  }
}
