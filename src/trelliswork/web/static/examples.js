// Texts to begin with: those of the server if it has some, otherwise these.

const EXAMPLES = {
  tags: [
    "In May , May Lincoln left Chase for Austin .",
    "Dr Jordan visited Lincoln on Monday.",
    "Anna Berg of Nordlys lives in Paris.",
  ],
  heads: ["She saw the man with a telescope .", "The old dog sleeps ."],
  brackets: ["the dog saw a cat in the garden", "she sleeps"],
  strings: ["night", "letter"],
};

export const examplesFor = (model) => model.examples ?? EXAMPLES[model.kind] ?? [];
