// What a transducer makes of each line of a text: its target, and which piece of the source becomes which symbols.

import { explain, predict } from "./api.js";
import { askedOf, pinsFor, sentenceOf } from "./reading.js";

const MOST_LINES = 200;

/** Ask about each line under pins; `known` are the lines if they were read before. */
export async function readLines(model, text, pins, { signal, known } = {}) {
  const lines = linesOf(text);
  const texts = lines.map((line) => line.text);
  const answered = (response) =>
    response.results.map((result, i) => {
      const record = result.sentences[0];
      const places = placesIn(lines[i], record.tokens);
      return { ...sentenceOf({ ...record, offsets: places }, i, model), source: lines[i].text };
    });
  let sentences = [];
  if (pins.length) sentences = known ?? answered(await predict(model.name, { texts }, { signal }));
  const [response, explained] = await Promise.all([
    predict(model.name, { texts }, { ...askedOf(model, signal), pins: pinsFor(pins, sentences, model) }),
    model.can.explain && !model.can.choices ? explain(model.name, { texts }, { signal }) : null,
  ]);
  const found = answered(response);
  explained?.results.forEach((result, i) => (found[i].chunks = result.sentences[0].chunks));
  return { model, text, sentences: found };
}

/** The lines that have something in them, each with the place of its first code point in the text. */
function linesOf(text) {
  const found = [];
  let at = 0;
  for (const line of text.split("\n")) {
    const trimmed = line.trim();
    if (trimmed) found.push({ text: trimmed, start: at + lengthOf(line.slice(0, line.indexOf(trimmed))) });
    at += lengthOf(line) + 1;
  }
  return found.slice(0, MOST_LINES);
}

const lengthOf = (text) => Array.from(text).length;

/** Where the symbols of a source are in the text: one behind the other; none of those that are written otherwise. */
function placesIn(line, symbols) {
  let at = 0;
  return symbols.map((symbol) => {
    const place = line.text.indexOf(symbol, at);
    if (place < 0) return [undefined, undefined];
    at = place + symbol.length;
    const start = line.start + lengthOf(line.text.slice(0, place));
    return [start, start + lengthOf(symbol)];
  });
}
