// Pins: what the user knows. A pin says of the characters [start, end) of the text what they are:
//   {what: "tag", start, end, value}            the tag of one word
//   {what: "span", start, end, value}           exactly this is one name or segment
//   {what: "head", start, end, head, value}     the word hangs on the word at `head` ([start, end), null is the root)
//   {what: "bracket", start, end, value}        a constituent with this label
//   {what: "piece", start, end, value}          a transducer makes these symbols of it
// Places are characters, not words, so that a pin stays with its words while the text around them is edited.

import { CodePoints, editBetween, isBetweenWords, movedRange } from "./codepoints.js";

const LETTERS = { tag: "t", span: "s", head: "h", bracket: "b", piece: "p" };
const KINDS = Object.fromEntries(Object.entries(LETTERS).map(([what, letter]) => [letter, what]));

const meets = (a, b) => a.start < b.end && b.start < a.end;
const crosses = (a, b) =>
  meets(a, b) && !(a.start <= b.start && b.end <= a.end) && !(b.start <= a.start && a.end <= b.end);

/** Whether both say something of the same thing, so that the later one takes the place of the earlier. */
export function isRival(a, b) {
  if (a.what === "head" || b.what === "head") return a.what === b.what && a.start === b.start;
  if (a.what === "bracket" || b.what === "bracket") {
    return a.what === b.what && ((a.start === b.start && a.end === b.end) || crosses(a, b));
  }
  return (a.what === "piece") === (b.what === "piece") && meets(a, b);
}

export const isSame = (a, b) =>
  a.what === b.what &&
  a.start === b.start &&
  a.end === b.end &&
  a.value === b.value &&
  String(a.head) === String(b.head);

/** The pins with some more, which go together, in the order of the text. */
export function withPins(pins, added) {
  const kept = pins.filter((each) => !added.some((pin) => isRival(each, pin)));
  return [...kept, ...added].sort((a, b) => a.start - b.start || a.end - b.end);
}

export const withPin = (pins, pin) => withPins(pins, [pin]);

export const withoutPin = (pins, pin) => pins.filter((each) => !isSame(each, pin));

/** The pins after the text was edited; those whose words were touched are gone. */
export function movedPins(pins, before, after) {
  if (!pins.length || before === after) return pins;
  const edit = editBetween(before, after);
  const points = new CodePoints(after);
  const moved = (range, what) => {
    const found = movedRange(range, edit);
    return found && (what === "piece" || isBetweenWords(points, found)) ? found : null;
  };
  return pins.flatMap((pin) => {
    const place = moved([pin.start, pin.end], pin.what);
    const head = pin.head ? moved(pin.head) : pin.head;
    if (!place || (pin.head && !head)) return [];
    return [{ ...pin, start: place[0], end: place[1], ...(pin.what === "head" ? { head } : {}) }];
  });
}

/** Pins as they are written in the address: s12-17=LOC, h3-8@10-14=nsubj, h3-8@root=root. */
export function writePins(pins) {
  return pins
    .map((pin) => {
      const head = pin.what === "head" ? `@${pin.head ? pin.head.join("-") : "root"}` : "";
      return `${LETTERS[pin.what]}${pin.start}-${pin.end}${head}=${encodeURIComponent(pin.value ?? "")}`;
    })
    .join(",");
}

const WRITTEN = /^([tshbp])(\d{1,7})-(\d{1,7})(?:@(root|\d{1,7}-\d{1,7}))?=(.*)$/;

/** The pins of an address; what cannot be read is left out. */
export function readPins(written) {
  return written.split(",").flatMap((each) => {
    const match = WRITTEN.exec(each);
    if (!match || (match[1] === "h") !== (match[4] !== undefined)) return [];
    const pin = { what: KINDS[match[1]], start: Number(match[2]), end: Number(match[3]), value: decoded(match[5]) };
    if (pin.what === "head") pin.head = match[4] === "root" ? null : match[4].split("-").map(Number);
    return pin.start < pin.end ? [pin] : [];
  });
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
