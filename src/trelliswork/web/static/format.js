// Numbers as the page shows them.

/** A probability in per cent with one decimal; only what is certain reads as 100 or 0. */
export function percent(probability) {
  const rounded = (100 * probability).toFixed(1);
  if (rounded === "100.0") return probability >= 0.999995 ? "100%" : ">99.9%";
  if (rounded === "0.0") return probability <= 0.000005 ? "0%" : "<0.1%";
  return `${rounded}%`;
}

/** The same in whole per cent, for labels next to words. */
export function shortPercent(probability) {
  const rounded = Math.round(100 * probability);
  if (rounded === 100) return probability >= 0.99995 ? "100%" : ">99%";
  if (rounded === 0) return probability <= 0.00005 ? "0%" : "<1%";
  return `${rounded}%`;
}

/** A mean with its standard deviation, in as many digits as that bears: 12.3 ± 1.1. */
export function withDeviation(mean, deviation) {
  const digits = deviation < 1e-6 ? 0 : Math.min(Math.max(0, 1 - Math.floor(Math.log10(deviation))), 6);
  return `${mean.toFixed(digits)} ± ${deviation.toFixed(digits)}`;
}

export const bits = (value) => `${value.toFixed(2)} bits`;

export const count = (n, noun, many = `${noun}s`) => `${n.toLocaleString("en")} ${n === 1 ? noun : many}`;

export const entropyOf = (probabilities) => probabilities.reduce((sum, p) => (p > 0 ? sum - p * Math.log2(p) : sum), 0);
