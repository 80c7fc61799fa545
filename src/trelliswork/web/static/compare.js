// Where models differ about the same text, word by word.

import { count } from "./format.js";

const sayOf = {
  tags: (token) => token.label,
  heads: (token) => `${token.head} ${token.label}`,
  brackets: () => "",
  strings: () => "",
};

/** For each reading what differs from the first one: {differs, summary}, or nothing for a reading alone. */
export function differences(readings) {
  if (readings.filter(Boolean).length < 2) return readings.map(() => ({}));
  const tables = readings.map((reading) => reading && tableOf(reading));
  const [first] = tables;
  return tables.map((table, i) => {
    const other = i === 0 ? tables.filter((each, j) => j > 0 && each && each.kind === table?.kind) : [first];
    if (!table || !other.length || !other[0] || other[0].kind !== table.kind) return {};
    return table.kind === "strings" || table.kind === "brackets"
      ? wholeDifference(table, other)
      : wordDifference(table, other);
  });
}

function tableOf(reading) {
  const { kind } = reading.model;
  const words = new Map();
  for (const sentence of reading.sentences) {
    for (const token of sentence.tokens) words.set(`${token.start}-${token.end}`, sayOf[kind](token));
  }
  return { kind, name: reading.model.name, words, values: reading.sentences.map((sentence) => String(sentence.value)) };
}

function wordDifference(table, others) {
  const differs = (token) => {
    const place = `${token.start}-${token.end}`;
    return others.some((other) => other.words.get(place) !== table.words.get(place));
  };
  const n = [...table.words.keys()].filter((place) =>
    others.some((other) => other.words.get(place) !== table.words.get(place)),
  ).length;
  return { differs, summary: summaryOf(n, table.words.size, "word", others) };
}

function wholeDifference(table, others) {
  const n = table.values.filter((value, s) => others.some((other) => other.values[s] !== value)).length;
  return { summary: summaryOf(n, table.values.length, "answer", others) };
}

function summaryOf(n, all, noun, others) {
  const than = others.length > 1 ? "the others" : others[0].name;
  return n
    ? `${n} of ${count(all, noun)} ${n === 1 ? "differs" : "differ"} from ${than}`
    : `No differences from ${than}`;
}
