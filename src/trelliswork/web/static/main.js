// The start of the page: which models there are, what the address says, reading or teaching.

import { get, keepToken } from "./api.js";
import { byId, h } from "./dom.js";
import { startHelp } from "./help.js";
import { startPopover } from "./popover.js";
import { Reader, startUndo } from "./read.js";
import { ModelInfo } from "./reading.js";
import { Store } from "./store.js";
import { Teacher } from "./teach.js";
import { startTheme } from "./theme.js";

async function start() {
  startTheme(byId("theme"));
  startHelp();
  startPopover();
  const teachWith = startModes();
  const models = (await listedModels()).map((listed) => new ModelInfo(listed));
  sayWhatIsExact(models);
  const store = new Store();
  const reader = new Reader(models, store);
  const teacher = new Teacher(models, () => reader.askAgain());
  startUndo(store);
  teachWith(teacher);
  reader.start();
}

/** Models that search in a beam have probabilities that are not those of all answers. */
function sayWhatIsExact(models) {
  const others = models.filter((model) => model.search !== "exact").map((model) => model.name);
  if (others.length) byId("exact").textContent = `Probabilities are exact, except those of ${others.join(" and ")}.`;
}

/** The models; a server with a token is asked again once somebody has given it. */
async function listedModels() {
  for (;;) {
    try {
      return (await get("v1/models")).models;
    } catch (error) {
      if (error.status !== 401) throw error;
      await askForToken(error.message);
    }
  }
}

function askForToken(reason) {
  const field = h("input", { type: "password", id: "token", autocomplete: "off" });
  const button = h("button.primary", { type: "button" }, "Go on");
  byId("answers").replaceChildren(
    h("div.token", {}, h("p", {}, reason), h("label", { for: "token" }, "Token"), field, button),
  );
  field.focus();
  return new Promise((resolve) => {
    const done = () => {
      keepToken(field.value);
      byId("answers").replaceChildren();
      resolve();
    };
    button.addEventListener("click", done);
    field.addEventListener("keydown", (event) => event.key === "Enter" && done());
  });
}

/** The buttons work from the start: what is chosen before there is a teacher is shown when `teachWith(teacher)` brings it. */
function startModes() {
  let [teacher, chosen] = [null, "read"];
  const show = (mode) => {
    chosen = mode;
    if (!teacher) return;
    for (const each of ["read", "teach"]) {
      byId(each).hidden = each !== mode;
      if (each === mode) byId(`mode-${each}`).setAttribute("aria-current", "page");
      else byId(`mode-${each}`).removeAttribute("aria-current");
    }
    if (mode === "teach") teacher.enter();
  };
  byId("mode-read").addEventListener("click", () => show("read"));
  byId("mode-teach").addEventListener("click", () => show("teach"));
  return (ready) => {
    teacher = ready;
    const canTeach = teacher.models.length > 0;
    byId("mode-teach").hidden = !canTeach;
    if (canTeach && chosen === "teach") show("teach");
  };
}

start().catch((error) => {
  byId("answers").replaceChildren(h("p.problem", { role: "alert" }, error.message));
  console.warn(error);
});
