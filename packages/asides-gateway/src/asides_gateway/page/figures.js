// @ts-check
// Numbers as words: seconds, tokens, money.

/** Writes whole numbers. */
export const whole = new Intl.NumberFormat("en");

/** @param {number} count @param {string} one @param {string} [many] */
export function count(count, one, many = `${one}s`) {
  return `${whole.format(count)} ${count === 1 ? one : many}`;
}

/** @param {number} seconds */
export function formatSeconds(seconds) {
  if (seconds < 0.95) return "under 1 s";
  const rounded = Math.round(seconds);
  if (rounded < 60) return `${rounded} s`;
  return `${Math.floor(rounded / 60)} min ${rounded % 60} s`;
}

/** @param {number} seconds */
export function formatExactly(seconds) {
  return seconds < 60 ? `${seconds.toFixed(seconds < 10 ? 1 : 0)} s` : formatSeconds(seconds);
}

/** @param {number} cost in US dollars */
export function formatCost(cost) {
  if (cost === 0) return "$0";
  if (cost < 0.0001) return "under $0.0001";
  return `$${cost.toFixed(cost < 0.01 ? 4 : cost < 1 ? 3 : 2)}`;
}

/** The share of a number in another, "61 %"; "": there is none. @param {number} part @param {number} all */
export function formatShare(part, all) {
  return all > 0 ? `${Math.round((100 * part) / all)} %` : "";
}
