// The keys of the desk; help.js lists them for people.

/** What a key does there; null if it means nothing. */
export function actOf(event, desk) {
  const { key } = event;
  const isUndo =
    key.toLowerCase() === "u" || ((event.ctrlKey || event.metaKey) && key.toLowerCase() === "z" && !event.shiftKey);
  if (isUndo) return () => desk.undo();
  if (event.ctrlKey || event.metaKey || event.altKey || desk.id === null || !desk.view) return null;
  const isOnButton = event.target.closest("button");
  if (key === "Enter" && !isOnButton) return event.shiftKey ? () => desk.keepConfirmed() : () => desk.accept();
  if (key === " " && !isOnButton) return () => desk.confirmPlace();
  if (key === "Backspace" || key === "Delete") return () => desk.unpinPlace();
  if (key.toLowerCase() === "s") return () => desk.skip();
  if (key === "0" && desk.labels.length && !desk.model.isPlain) return () => desk.label("O");
  if (/^[1-9]$/.test(key) && desk.labels[Number(key) - 1]) return () => desk.label(desk.labels[Number(key) - 1]);
  return null;
}
