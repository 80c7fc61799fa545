// The reading half of the page: a text, the answers of the chosen models, pins, undo, and the address.

import { Card } from "./card.js";
import { differences } from "./compare.js";
import { byId, h, replaceChildren, say } from "./dom.js";
import { CodePoints } from "./codepoints.js";
import { count, percent } from "./format.js";
import { Live } from "./live.js";
import { withoutPin } from "./pins.js";
import { readLines } from "./lines.js";
import { read } from "./reading.js";
import { readAddress } from "./store.js";
import { pinIcon } from "./views/words.js";

const ADDRESS_PAUSE = 250;

export class Reader {
  constructor(models, store) {
    [this.models, this.store] = [models, store];
    this.cards = new Map();
    this.readings = new Map();
    this.live = new Live(
      (question, signal) => this.ask(question, signal),
      (found) => this.show(found),
      (error) => this.failAll(error),
    );
    this.box = byId("text");
    this.compares = false;
    byId("compare").addEventListener("click", () => this.toggleCompare());
    this.box.addEventListener("input", () => store.setText(this.box.value));
    store.onChange((what) => this.changed(what));
    addEventListener("hashchange", () => this.followAddress());
  }

  /** Begin with what the address says, or with an example. */
  start() {
    if (!this.followAddress())
      this.store.begin({ text: this.models[0].examples[0] ?? "", models: [this.models[0].name] });
  }

  followAddress() {
    const { text, models = [], pins = [] } = readAddress(location.hash);
    if (text === undefined || location.hash === this.store.address) return text !== undefined;
    const known = models.filter((name) => this.models.some((model) => model.name === name));
    const missing = models.filter((name) => !known.includes(name));
    this.store.begin({ text, pins, models: known.length ? known : [this.models[0].name] });
    this.note(missing.length ? `The link names ${missing.join(" and ")}, which this server does not have.` : "");
    return true;
  }

  get chosen() {
    return this.store.models.map((name) => this.models.find((model) => model.name === name));
  }

  changed(what) {
    const { store } = this;
    if (this.box.value !== store.text) this.box.value = store.text;
    this.drawModels();
    this.drawExamples();
    this.drawPins();
    this.drawCards();
    clearTimeout(this.addressTimer);
    this.addressTimer = setTimeout(
      () => history.replaceState(null, "", store.address),
      what === "text" ? ADDRESS_PAUSE : 0,
    );
    const question = { text: store.text, pins: store.pins, models: this.chosen };
    this.cards.forEach((card) => card.element.setAttribute("aria-busy", "true"));
    if (store.text.trim()) this.live.request(question, { atOnce: what !== "text" });
    else this.clear();
  }

  /** The same question once more: a model has changed. */
  askAgain() {
    this.readings.clear();
    this.store.changed("models");
  }

  clear() {
    this.live.cancel();
    this.readings.clear();
    this.cards.forEach((card) => card.show({ model: card.model, text: "", sentences: [] }));
  }

  /** Each model for itself: the error of one does not hide the answers of the others. */
  async ask({ text, pins, models }, signal) {
    const one = async (model) => {
      const before = this.readings.get(model.name);
      const known = before?.text === text ? before.sentences : undefined;
      try {
        const ask = model.kind === "strings" ? readLines : read;
        return { model, reading: await ask(model, text, pins, { signal, known }) };
      } catch (error) {
        if (error.name === "AbortError") throw error;
        return { model, error };
      }
    };
    return Promise.all(models.map(one));
  }

  show(found) {
    const parted = differences(found.map(({ reading }) => reading));
    found.forEach(({ model, reading, error }, i) => {
      const card = this.cards.get(model.name);
      if (!card) return;
      if (error) return card.fail(error);
      this.readings.set(model.name, reading);
      card.show(reading, parted[i].differs, parted[i].summary);
    });
    say(spoken(found));
  }

  failAll(error) {
    this.cards.forEach((card) => card.fail(error));
    say(error.message);
  }

  note(sentence) {
    const note = byId("text-note");
    note.textContent = sentence;
    note.hidden = !sentence;
  }

  drawModels() {
    const { store } = this;
    const compares = this.compares || store.models.length > 1;
    byId("compare").setAttribute("aria-pressed", String(compares));
    byId("compare").hidden = this.models.length < 2;
    byId("models").classList.toggle("many", compares);
    replaceChildren(
      byId("models"),
      this.models.map((model) =>
        h(
          "button.pill",
          {
            type: "button",
            "aria-pressed": store.models.includes(model.name) ? "true" : "false",
            title: model.description,
            data: { key: `model-${model.name}` },
            onclick: () => this.choose(model.name),
          },
          h("span.tick", { "aria-hidden": "true" }),
          model.name,
          h("span.kind", {}, model.description),
        ),
      ),
    );
  }

  /** One model in place of the other, or while comparing one more or less. */
  choose(name) {
    const { models } = this.store;
    if (!this.compares && models.length === 1) return this.store.setModels([name]);
    const without = models.filter((each) => each !== name);
    return this.store.setModels(
      without.length === models.length ? [...models, name] : without.length ? without : models,
    );
  }

  toggleCompare() {
    this.compares = !(this.compares || this.store.models.length > 1);
    this.store.setModels(this.compares ? this.store.models : this.store.models.slice(0, 1));
  }

  drawExamples() {
    const examples = this.chosen[0].examples
      .filter((each) => each !== this.store.text)
      .slice(0, 2);
    replaceChildren(
      byId("examples"),
      examples.length ? "Try" : null,
      examples.map((text) =>
        h(
          "button",
          { type: "button", data: { key: text }, onclick: () => this.store.begin({ text, models: this.store.models }) },
          h("bdi", {}, text.length > 64 ? `${text.slice(0, 60)}…` : text),
        ),
      ),
    );
  }

  drawCards() {
    const answers = byId("answers");
    const cards = this.chosen.map((model) => {
      if (!this.cards.has(model.name)) this.cards.set(model.name, new Card(model, this.store));
      return this.cards.get(model.name).element;
    });
    for (const name of [...this.cards.keys()]) if (!this.store.models.includes(name)) this.cards.delete(name);
    answers.classList.toggle("several", cards.length > 1);
    if (cards.length !== answers.children.length || cards.some((card, i) => answers.children[i] !== card))
      answers.replaceChildren(...cards);
  }

  drawPins() {
    const { store } = this;
    const points = new CodePoints(store.text);
    const [strip, none] = [byId("pins"), !store.pins.length];
    strip.hidden = none && !store.past.length && !store.future.length;
    const step = (name, list, act, keys) =>
      h(
        "button.quiet",
        { type: "button", disabled: !list.length, data: { key: name }, "aria-keyshortcuts": keys, onclick: act },
        name,
      );
    replaceChildren(
      strip,
      h("p.over", {}, none ? "No pins" : count(store.pins.length, "pin")),
      h(
        "ul.pin-list",
        {},
        ...store.pins.map((pin) => pinChip(pin, points, () => store.setPins(withoutPin(store.pins, pin)))),
      ),
      h(
        "div.pin-tools",
        {},
        step("Undo", store.past, () => store.undo(), "Control+Z"),
        step("Redo", store.future, () => store.redo(), "Control+Shift+Z"),
        none
          ? null
          : h(
              "button.quiet",
              { type: "button", data: { key: "unpin-all" }, onclick: () => store.setPins([]) },
              "Unpin all",
            ),
      ),
    );
  }
}

function pinChip(pin, points, unpin) {
  const words = points.slice(pin.start, pin.end);
  const value = { O: "none", "(nothing)": "nothing" }[pin.value] ?? pin.value;
  const head = pin.what === "head" ? ` of ${pin.head ? points.slice(...pin.head) : "the root"}` : "";
  return h(
    "li.pin",
    { data: { what: pin.what, value: pin.value } },
    pinIcon(),
    h("bdi", {}, words),
    h("b", {}, value),
    head ? h("bdi.soft", {}, head) : null,
    h("button.quiet.round", { type: "button", "aria-label": `Unpin ${words}: ${value}`, onclick: unpin }, "×"),
  );
}

function spoken(found) {
  const [first] = found;
  if (!first || first.error) return first?.error.message ?? "";
  const names = first.reading.sentences.flatMap((sentence) =>
    first.model.kind === "tags"
      ? sentence.spans.map(
          (span) =>
            `${sentence.tokens
              .slice(span.start, span.end)
              .map((token) => token.text)
              .join(" ")}: ${span.label}`,
        )
      : [],
  );
  if (first.model.kind === "strings")
    return first.reading.sentences
      .map((sentence) => `${sentence.value}, ${percent(sentence.probability ?? 0)}`)
      .join("; ");
  return names.length
    ? `New answer: ${names.slice(0, 8).join(", ")}`
    : `New answer: ${count(first.reading.sentences.length, "sentence")}`;
}

/** Undo and redo with the keyboard, except in fields, which have their own. */
export function startUndo(store) {
  document.addEventListener("keydown", (event) => {
    const isField = event.target.closest?.("textarea, input, select, #teach");
    if (isField || event.altKey || !(event.ctrlKey || event.metaKey) || event.key.toLowerCase() !== "z") return;
    event.preventDefault();
    if (event.shiftKey) store.redo();
    else store.undo();
  });
}
