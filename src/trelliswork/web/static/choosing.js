// What a word, span, arc or constituent may be: the contents of its popover.

import { bits, percent } from "./format.js";
import { NOTHING } from "./pieces.js";
import { isSame } from "./pins.js";

const [NONE, OUTSIDE] = ["none", "O"];
const [LEAST_SHOWN, MOST_OTHERS] = [0.005, 4]; // of spans with other words

/**
 * What can be chosen for tokens [first, last) of a sentence, or for a constituent of them.
 * `pin(pin)` and `unpin(pin)` are called with what was chosen.
 */
export function choicesFor(place, context) {
  return MAKERS[context.model.kind](place, context);
}

const MAKERS = { tags: tagChoices, heads: headChoices, brackets: bracketChoices, strings: pieceChoices };

function tagChoices({ sentence, first, last }, context) {
  const { model } = context;
  const token = sentence.tokens[first];
  const words = textOf(sentence, first, last);
  if (last - first === 1 && model.isPlain) {
    const options = (token.choices ?? []).map((choice) =>
      option(
        choice.label,
        choice.probability,
        choice.label === token.label,
        placePin("tag", sentence, first, last, choice.label),
        context,
      ),
    );
    return {
      title: words,
      note: unsure(token),
      groups: [{ heading: "Tag", options }],
      actions: unpinActions(sentence, first, last, context),
    };
  }
  const others = otherSpans(sentence, first, last, context);
  const groups = [
    {
      heading: last - first === 1 ? "This word is" : "These words are",
      options: spanOptions(sentence, first, last, context),
    },
  ];
  if (others.length) groups.push({ heading: "Or part of", options: others });
  return {
    title: words,
    note: last - first === 1 ? unsure(token) : null,
    groups,
    actions: unpinActions(sentence, first, last, context),
  };
}

/** Each label that exactly these words may have together, and none at all. */
function spanOptions(sentence, first, last, context) {
  const listed = sentence.spanChoices.find((each) => each.start === first && each.end === last);
  const found = sentence.spans.find((span) => span.start === first && span.end === last);
  const isOutside = sentence.tokens.slice(first, last).every((token) => token.label === OUTSIDE);
  const sure = (label) =>
    listed?.choices.find((choice) => choice.label === label)?.probability ??
    (found?.label === label ? found.probability : undefined);
  const options = context.model.spanLabels.map((label) =>
    option(label, sure(label), found?.label === label, placePin("span", sentence, first, last, label), context, label),
  );
  const outside =
    last - first === 1
      ? sentence.tokens[first].choices?.find((choice) => choice.label === OUTSIDE)?.probability
      : undefined;
  options.push({
    ...option(OUTSIDE, outside, isOutside, placePin("span", sentence, first, last, OUTSIDE), context),
    label: NONE,
  });
  return byProbability(options);
}

/** Other spans that share words with these. */
function otherSpans(sentence, first, last, context) {
  const overlapping = sentence.spanChoices.filter(
    (each) => each.start < last && first < each.end && !(each.start === first && each.end === last),
  );
  const options = overlapping.flatMap((each) =>
    each.choices.map((choice) => ({
      ...option(
        choice.label,
        choice.probability,
        false,
        placePin("span", sentence, each.start, each.end, choice.label),
        context,
      ),
      detail: textOf(sentence, each.start, each.end),
    })),
  );
  return byProbability(options)
    .filter((each) => each.probability >= LEAST_SHOWN)
    .slice(0, MOST_OTHERS);
}

const byProbability = (options) => options.sort((a, b) => (b.probability ?? -1) - (a.probability ?? -1));

function headChoices({ sentence, first }, context) {
  const token = sentence.tokens[first];
  const name = (head) => (head ? sentence.tokens[head - 1].text : "the root");
  const options = (token.choices ?? []).map((choice) => ({
    ...option(
      choice.label,
      choice.probability,
      choice.head === token.head && choice.label === token.label,
      headPin(sentence, first, choice.head, choice.label),
      context,
      choice.label,
    ),
    detail: choice.head ? `of ${name(choice.head)}` : name(0),
  }));
  return {
    title: token.text,
    note: unsure(token),
    groups: [{ heading: "Head and label", options }],
    actions: unpinActions(sentence, first, first + 1, context),
  };
}

/** The labels that exactly these words may have; several if one constituent is all of another. */
function bracketChoices({ sentence, first, last, label }, context) {
  const listed = sentence.choices.find((each) => each.start === first && each.end === last);
  const unlisted = listed ? 0 : undefined;
  const shares = new Map(context.model.labels.flatMap((each) => each.split("+")).map((each) => [each, unlisted]));
  for (const choice of listed?.choices ?? []) {
    for (const each of choice.label.split("+"))
      if (each) shares.set(each, (shares.get(each) ?? 0) + choice.probability);
  }
  const found = sentence.spans.find((span) => span.start === first && span.end === last && span.label === label);
  if (!listed) shares.set(label, found?.probability);
  const options = byProbability(
    [...shares].map(([each, share]) =>
      option(each, share, each === label, placePin("bracket", sentence, first, last, each), context),
    ),
  );
  const none = listed?.choices.find((choice) => choice.label === "")?.probability;
  const note = none === undefined ? null : `Not a constituent: ${percent(none)}`;
  return {
    title: textOf(sentence, first, last),
    note,
    groups: [{ heading: "These words are", options }],
    actions: unpinActions(sentence, first, last, context),
  };
}

/** The symbols that a piece of the source may become; what is left is that it is cut elsewhere. */
function pieceChoices({ sentence, first, last, label }, context) {
  const listed = sentence.choices.find((each) => each.start === first && each.end === last);
  const options = listed.choices.map((choice) => ({
    ...option(
      choice.label,
      choice.probability,
      choice.label === label,
      placePin("piece", sentence, first, last, choice.label),
      context,
    ),
    ...(choice.label === NOTHING ? { label: "nothing" } : {}),
  }));
  const rest = 1 - options.reduce((sum, each) => sum + each.probability, 0);
  return {
    title: textOf(sentence, first, last, ""),
    note: rest > 0.0005 ? `Cut elsewhere, or something rarer: ${percent(rest)}` : null,
    groups: [{ heading: "Becomes", options }],
    actions: unpinActions(sentence, first, last, context),
  };
}

function option(label, probability, isChosen, pin, context, colour = label) {
  return { label, probability, isChosen, colour: context.model.colour(colour), choose: () => context.pin(pin) };
}

export function placePin(what, sentence, first, last, value) {
  return { what, start: sentence.tokens[first].start, end: sentence.tokens[last - 1].end, value };
}

export function headPin(sentence, token, head, value) {
  const [of, on] = [sentence.tokens[token], head ? sentence.tokens[head - 1] : null];
  return { what: "head", start: of.start, end: of.end, head: on ? [on.start, on.end] : null, value };
}

const textOf = (sentence, first, last, between = " ") =>
  sentence.tokens
    .slice(first, last)
    .map((token) => token.text)
    .join(between);
const unsure = (token) => (token.entropy > 0.005 ? `Unsure by ${bits(token.entropy)}` : "The model is sure.");

function unpinActions(sentence, first, last, context) {
  const [start, end] = [sentence.tokens[first].start, sentence.tokens[last - 1].end];
  return context.pins
    .filter(
      (pin) =>
        pin.start < end && start < pin.end && (pin.what !== "bracket" || (pin.start === start && pin.end === end)),
    )
    .map((pin) => ({
      label: `Unpin ${pin.value}`,
      act: () => context.unpin(context.pins.find((each) => isSame(each, pin))),
    }));
}
