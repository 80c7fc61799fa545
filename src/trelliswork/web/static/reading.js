// What a model says about a text, in the shape that the views draw; and pins in the shape that the API takes.

import { entropyOf } from "./format.js";
import { ServerProblem, predict } from "./api.js";
import { chunksOf } from "./pieces.js";

const KIND = { tags: "tags", spans: "tags", segments: "tags", arcs: "heads", brackets: "brackets", string: "strings" };
const KIND_OF_PIN = { tag: "tags", span: "tags", head: "heads", bracket: "brackets", piece: "strings" };
const OUTSIDE = "O";
const TOP_K = 5;
const MOST_CHOICES = { tags: 12, heads: 12, brackets: 100, strings: 12 };

/** A model as /v1/models lists it, with what the views ask of it. */
export class ModelInfo {
  constructor(listed) {
    Object.assign(this, listed);
    this.description = listed.kind.replace(/^an? /, "");
    this.kind = KIND[listed.answers] ?? "strings"; // what its views are; `listed.kind` is what it is in words
    this.isPlain = this.kind === "tags" && listed.answers === "tags";
    this.canPin = listed.can.pins;
  }

  /** The class that colours a label: c0 to c5, or cx for what is outside. */
  colour(label) {
    const index = this.colours?.[label];
    return index === undefined || index === null ? "cx" : `c${index}`;
  }

  /** The labels that a span may have: the tags without their prefixes. */
  get spanLabels() {
    return [...new Set(this.labels.map(typeOf))].filter((label) => label !== OUTSIDE);
  }
}

/** The type of a tag: PER of B-PER, O of O. */
export const typeOf = (tag) => (/^[BIESLU]-./.test(tag) ? tag.slice(2) : tag);

/** How much is asked for. */
export const askedOf = (model, signal) => ({
  signal,
  top_k: TOP_K,
  choices: model.can.choices ? MOST_CHOICES[model.kind] : 0,
});

/** Ask a model about a text under pins; `known` are its sentences if the same text was read before. */
export async function read(model, text, pins, { signal, known } = {}) {
  let sentences = [];
  if (pins.length) sentences = known ?? sentencesOf(await predict(model.name, { text }, { signal }), model);
  const response = await predict(model.name, { text }, { ...askedOf(model, signal), pins: pinsFor(pins, sentences, model) });
  return { model, text, sentences: sentencesOf(response, model) };
}

/** Ask a model about one sentence whose words are known, under pins; places are those of the words with blanks between. */
export async function readWords(model, words, pins, { signal } = {}) {
  const places = placesOf(words);
  const [first, last] = [places[0]?.[0] ?? 0, places.at(-1)?.[1] ?? 0];
  const bare = {
    index: 0,
    start: first,
    end: last,
    tokens: words.map((text, t) => ({ text, start: places[t][0], end: places[t][1] })),
  };
  const response = await predict(model.name, { tokens: [words] }, { ...askedOf(model, signal), pins: pinsFor(pins, [bare], model) });
  return readingOf(model, response.results[0].sentences[0]);
}

/** The reading of one sentence that the server has answered, its words with blanks between. */
export function readingOf(model, record) {
  const sentence = sentenceOf({ ...record, offsets: placesOf(record.tokens) }, 0, model);
  return { model, text: record.tokens.join(" "), sentences: [sentence] };
}

function placesOf(words) {
  let at = 0;
  return words.map((word) => {
    const start = at;
    at += Array.from(word).length + 1;
    return [start, at - 1];
  });
}

function sentencesOf(response, model) {
  return response.results[0].sentences.map((each, index) => sentenceOf(each, index, model));
}

export function sentenceOf(record, index, model) {
  const task = record.tasks ? Object.keys(record.tasks)[0] : null;
  const found = task ? { ...record, ...record.tasks[task] } : record;
  const places = record.offsets ?? [];
  const tokens = record.tokens.map((text, t) => ({
    text,
    index: t,
    start: places[t]?.[0],
    end: places[t]?.[1],
    entropy: 0,
  }));
  const sentence = {
    index,
    start: places[0]?.[0] ?? 0,
    end: places.at(-1)?.[1] ?? 0,
    tokens,
    value: found.value,
    probability: found.probability ?? null,
    parts: found.parts ?? [],
    spans: found.spans ?? [],
    analyses: (found.alternatives ?? []).filter((each) => each.probability > 0),
    choices: found.choices ?? [],
    spanChoices: found.span_choices ?? [],
  };
  FILL[model.kind](sentence, found);
  return sentence;
}

const FILL = {
  tags: (sentence) =>
    fillTokens(sentence, (token, t) => ({ label: sentence.value[t], probability: sentence.parts[t]?.probability })),
  heads: (sentence, found) =>
    fillTokens(sentence, (token, t) => ({
      head: sentence.value[t][0],
      label: sentence.value[t][1],
      probability: sentence.parts[t]?.probability ?? 1,
      tag: found.columns?.UPOS?.[t],
    })),
  brackets: (sentence) => fillTokens(sentence, () => ({})),
  strings: (sentence) => {
    sentence.chunks = chunksOf(sentence);
  },
};

function fillTokens(sentence, about) {
  sentence.tokens.forEach((token, t) => Object.assign(token, about(token, t)));
  for (const each of sentence.choices) {
    if (each.end !== each.start + 1 || sentence.tokens[each.start].label === undefined) continue;
    Object.assign(sentence.tokens[each.start], {
      choices: each.choices,
      entropy: each.entropy ?? entropyOf(each.choices.map((c) => c.probability)),
    });
  }
}

/** Pins of places in the text as pins of words; a pin whose place is no word any more is reported in a sentence. */
export function pinsFor(pins, sentences, model) {
  return pins.filter((pin) => fits(pin, model)).flatMap((pin) => apiPins(pin, sentences, model));
}

/** Whether a pin says something that the model can answer with: of its kind, with one of its labels. */
export function fits(pin, model) {
  if (!model.canPin || KIND_OF_PIN[pin.what] !== model.kind) return false;
  if (pin.what === "piece") return true;
  if (pin.what !== "span") return !pin.value || model.labels.some((label) => label.split("+").includes(pin.value));
  return !model.isPlain && (pin.value === OUTSIDE || model.spanLabels.includes(pin.value));
}

function apiPins(pin, sentences, model) {
  const sentence = sentences.find((each) => each.start <= pin.start && pin.end <= each.end);
  const first = sentence?.tokens.findIndex((token) => token.start === pin.start) ?? -1;
  const last = sentence?.tokens.findIndex((token) => token.end === pin.end) ?? -1;
  if (first < 0 || last < first) {
    throw new ServerProblem(
      422,
      `The pin ${pin.value} is at characters ${pin.start} to ${pin.end}, where ${model.name} has no ${model.kind === "strings" ? "symbols" : "words"} of its own; take it back.`,
    );
  }
  if (pin.what === "piece") return [{ input: sentence.index, start: first, end: last + 1, label: pin.value }];
  const at = (token, value) => ({ sentence: sentence.index, token, value });
  if (pin.what === "tag") return [at(first, pin.value)];
  if (pin.what === "bracket") return [at(first, `${last + 1}:${pin.value}`)];
  if (pin.what === "head") {
    const head = pin.head ? sentence.tokens.findIndex((token) => token.start === pin.head[0]) : -1;
    if (pin.head && head < 0)
      throw new ServerProblem(
        422,
        `The pinned head of ${sentence.tokens[first].text} is not a word of its sentence; take the pin back.`,
      );
    return [at(first, pin.value ? `${head + 1}:${pin.value}` : `${head + 1}`)];
  }
  return [
    pin.value === OUTSIDE
      ? range(first, last).map((t) => at(t, OUTSIDE))
      : { sentence: sentence.index, start: first, end: last + 1, label: pin.value },
  ].flat();
}

const range = (first, last) => Array.from({ length: last - first + 1 }, (_, i) => first + i);
