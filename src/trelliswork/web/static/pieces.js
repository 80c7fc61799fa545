// The pieces of a source, and what a transducer makes of each.

export const NOTHING = "(nothing)"; // the value of a piece that writes no symbols

/** The pieces of a source with what each becomes: those whose choices are known, or else from symbols with places. */
export function chunksOf(sentence) {
  if (!sentence.choices.length) return chunksOfParts(sentence);
  return sentence.choices.map((piece) => {
    const symbols = sentence.parts.filter((part) => piece.start <= part.start && part.end <= piece.end);
    const written = [" ", ""].map((between) => symbols.map((part) => part.label).join(between) || NOTHING);
    const choice = piece.choices.find((each) => written.includes(each.label)) ?? piece.choices[0];
    return { ...piece, source: sourceOf(sentence, piece), target: choice.label, probability: choice.probability };
  });
}

const sourceOf = ({ tokens }, { start, end }) =>
  tokens
    .slice(start, end)
    .map((token) => token.text)
    .join("");

/** Letters without a symbol are chunks of their own. */
function chunksOfParts(sentence) {
  const { tokens, parts } = sentence;
  const found = [];
  const silent = (start, end) =>
    found.push({ source: sourceOf(sentence, { start, end }), target: "", probability: null });
  let at = 0;
  for (const part of parts) {
    if (at < part.start) silent(at, part.start);
    const source = part.start < at ? "" : sourceOf(sentence, part);
    found.push({ source, target: part.label, probability: part.probability });
    at = Math.max(at, part.end);
  }
  if (parts.length && at < tokens.length) silent(at, tokens.length);
  return found;
}
