// @ts-check
// Numbers as words: seconds, tokens, money.

const whole = new Intl.NumberFormat("en");

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

/** @param {number | {amount: number, currency: string}} cost a number is dollars */
export function formatCost(cost) {
  const { amount, currency } = typeof cost === "number" ? { amount: cost, currency: "USD" } : cost;
  const sign = currency === "USD" ? "$" : `${currency} `;
  if (amount === 0) return `${sign}0`;
  if (amount < 0.0001) return `under ${sign}0.0001`;
  return `${sign}${amount.toFixed(amount < 0.01 ? 4 : amount < 1 ? 3 : 2)}`;
}

/** The share of a number in another, "61 %"; "": there is none. @param {number} part @param {number} all */
export function formatShare(part, all) {
  return all > 0 ? `${Math.round((100 * part) / all)} %` : "";
}
