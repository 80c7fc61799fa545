// Which feature, or which word, voted for which tag: of one word at a time, in words that can be read.

import { h } from "../dom.js";
import { percent } from "../format.js";

/** The votes on one word, as /v1/explain gives them: for its tag, and for the strongest other one, or for both. */
export function votesElement(explained, model, note) {
  const most = Math.max(
    0.001,
    ...[...explained.votes, ...(explained.rival_votes ?? [])].map((vote) => Math.abs(vote.score)),
  );
  return h(
    "div.votes",
    {},
    h(
      "div.vote-columns",
      {},
      column(explained.token, explained.label, explained.votes, most, model, aboutTag(explained)),
      explained.rival && explained.rival_votes.length
        ? column(explained.token, explained.rival, explained.rival_votes, most, model, ", the strongest other tag")
        : null,
    ),
    h("p.note", {}, note),
  );
}

/** How probable the tag is; and of a network, whose votes are for it rather than another one, which that is. */
function aboutTag(explained) {
  const share = ` with ${percent(explained.probability)}`;
  if (!explained.rival || explained.rival_votes.length) return share;
  const others = explained.others.map((other) => `${other.label} ${percent(other.probability)}`).join(", ");
  return `${share}, rather than ${explained.rival}${others ? ` (others: ${others})` : ""}`;
}

function column(word, label, votes, most, model, about) {
  return h(
    "div.vote-column",
    { data: { label } },
    h("p.lead", {}, h("bdi", {}, h("b", {}, word)), " as ", h(`b.tint.${model.colour(label)}`, {}, label), about),
    votes.length
      ? h(
          "table",
          {},
          h("caption.unseen", {}, `Votes on ${word} as ${label}`),
          h(
            "thead.unseen",
            {},
            h(
              "tr",
              {},
              h("th", { scope: "col" }, "Feature"),
              h("th", { scope: "col" }, "Size"),
              h("th", { scope: "col" }, "Vote"),
            ),
          ),
          h("tbody", {}, ...votes.map((vote) => voteRow(vote, most))),
        )
      : h("p.note", {}, "Nothing votes for this tag here."),
  );
}

function voteRow(vote, most) {
  const isAgainst = vote.score < 0;
  return h(
    `tr${isAgainst ? ".against" : ""}`,
    { data: { score: vote.score } },
    h("th", { scope: "row", title: vote.name }, h("bdi", {}, vote.words)),
    h(
      "td.vote-bar",
      { "aria-hidden": "true" },
      h("span.meter", { "--part": (Math.abs(vote.score) / most).toFixed(3) }),
    ),
    h("td.weight", {}, `${isAgainst ? "−" : "+"}${Math.abs(vote.score).toFixed(2)}`),
  );
}
