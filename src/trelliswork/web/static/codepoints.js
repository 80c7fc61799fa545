// Offsets of the server count code points; strings of the browser count UTF-16 units. Here the two meet.

/** The text as a list of code points, so that `slice` and `length` count as the server does. */
export class CodePoints {
  constructor(text) {
    this.text = text;
    this.points = /[\ud800-\udfff]/.test(text) ? Array.from(text) : text;
  }

  get length() {
    return this.points.length;
  }

  slice(start, end) {
    const found = this.points.slice(start, end);
    return typeof found === "string" ? found : found.join("");
  }
}

/** What an edit did: {start, removed, added} in code points, from the longest common start and end. */
export function editBetween(before, after) {
  const a = Array.from(before),
    b = Array.from(after);
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start += 1;
  let end = 0;
  while (end < a.length - start && end < b.length - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end += 1;
  return { start, removed: a.length - start - end, added: b.length - start - end };
}

/** A range [start, end) after an edit; null if the edit touched it. */
export function movedRange([start, end], edit) {
  if (edit.start + edit.removed <= start) {
    const by = edit.added - edit.removed;
    return [start + by, end + by];
  }
  return edit.start >= end ? [start, end] : null;
}

const LETTER = /[\p{L}\p{N}\p{M}]/u;

/** Whether [start, end) begins and ends between words: what was typed directly next to a word makes it another word. */
export function isBetweenWords(points, [start, end]) {
  const glued = (at) =>
    at > 0 && at < points.length && LETTER.test(points.slice(at - 1, at)) && LETTER.test(points.slice(at, at + 1));
  return !glued(start) && !glued(end);
}
