const unitBytes: Readonly<Record<string, number>> = { K: 2 ** 10, M: 2 ** 20, G: 2 ** 30, T: 2 ** 40 };

/** Pattern of a size; letters are powers of 1024, with or without `iB`. */
export const sizePattern = '^[0-9]+([KMGT](iB)?)?$';

const sizeRegExp = /^(?<amount>[0-9]+)(?:(?<unit>[KMGT])(?:iB)?)?$/;

/**
 * Parses a size (`10K`, `50M`, `500MiB`, `1024`) into a number of bytes or entries.
 * @returns undefined for other forms and for amounts beyond the safe integers
 */
export function parseSize(text: string): number | undefined {
  const { amount, unit } = sizeRegExp.exec(text)?.groups ?? {};
  if (amount === undefined) return undefined;
  const size = Number(amount) * (unit === undefined ? 1 : (unitBytes[unit] ?? 1));
  return Number.isSafeInteger(size) ? size : undefined;
}

/** Formats a size in the largest unit that gives a whole number; `parseSize` reads the result back. */
export function formatSize(size: number): string {
  const [letter, unit] = Object.entries(unitBytes)
    .toReversed()
    .find(([, unit]) => size >= unit && size % unit === 0) ?? ['', 1];
  return `${size / unit}${letter}`;
}
