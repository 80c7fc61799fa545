// What the page is about: text, models and pins. Changes of pins can be undone; the address says it all.

import { movedPins, readPins, writePins } from "./pins.js";

const MOST_STEPS = 200;

export class Store {
  constructor() {
    this.text = "";
    this.models = [];
    this.pins = [];
    this.past = [];
    this.future = [];
    this.listeners = [];
  }

  onChange(listener) {
    this.listeners.push(listener);
  }

  changed(what) {
    this.listeners.forEach((listener) => listener(what));
  }

  /** A new text: pins, also those that undo would bring back, stay with their words. */
  setText(text) {
    if (text === this.text) return;
    const moved = (pins) => movedPins(pins, this.text, text);
    [this.pins, this.past, this.future] = [moved(this.pins), this.past.map(moved), this.future.map(moved)];
    this.text = text;
    this.changed("text");
  }

  setModels(models) {
    this.models = models;
    this.changed("models");
  }

  setPins(pins) {
    this.past = [...this.past, this.pins].slice(-MOST_STEPS);
    this.future = [];
    this.pins = pins;
    this.changed("pins");
  }

  undo() {
    this.step(this.past, this.future);
  }

  redo() {
    this.step(this.future, this.past);
  }

  step(from, to) {
    if (!from.length) return;
    to.push(this.pins);
    this.pins = from.pop();
    this.changed("pins");
  }

  /** Begin anew, from an address or an example. */
  begin({ text, models, pins = [] }) {
    [this.text, this.models, this.pins, this.past, this.future] = [text, models, pins, [], []];
    this.changed("all");
  }

  /** The part of the address behind #. */
  get address() {
    const parts = [`m=${this.models.map(encodeURIComponent).join(",")}`, `t=${encodeURIComponent(this.text)}`];
    if (this.pins.length) parts.push(`p=${writePins(this.pins)}`);
    return `#${parts.join("&")}`;
  }
}

/** What an address says: {models, text, pins}, each only if it is there. */
export function readAddress(hash) {
  const found = {};
  for (const part of hash.replace(/^#/, "").split("&")) {
    const [key, written] = [part.slice(0, 2), part.slice(2)];
    try {
      if (key === "m=") found.models = written.split(",").map(decodeURIComponent).filter(Boolean);
      if (key === "t=") found.text = decodeURIComponent(written);
    } catch {
      // not written by us: left out
    }
    if (key === "p=") found.pins = readPins(written);
  }
  return found;
}
