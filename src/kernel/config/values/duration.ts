const second = 1000;
const unitMilliseconds: Readonly<Record<string, number>> = {
  ms: 1,
  s: second,
  m: 60 * second,
  h: 3600 * second,
  d: 86_400 * second,
  w: 7 * 86_400 * second,
  y: 365 * 86_400 * second,
};

/** Pattern of a duration; a bare number means milliseconds. */
export const durationPattern = '^(infinity|[0-9]+|[0-9]+(\\.[0-9]+)?(ms|s|m|h|d|w|y))$';

const durationRegExp = /^(?<amount>[0-9]+(?:\.[0-9]+)?)(?<unit>ms|s|m|h|d|w|y)?$/;

/**
 * Parses a duration (`500ms`, `0.5s`, `10m`, `1w`, `infinity`, `250`) into milliseconds. A year has 365 days.
 * @returns undefined for other forms, negative amounts, fractions of a millisecond, and amounts beyond the
 * safe integers
 */
export function parseDuration(text: string): number | undefined {
  if (text === 'infinity') return Number.POSITIVE_INFINITY;
  const { amount, unit } = durationRegExp.exec(text)?.groups ?? {};
  if (amount === undefined) return undefined;
  if (unit === undefined && amount.includes('.')) return undefined;
  const milliseconds = scale(amount, unitMilliseconds[unit ?? 'ms'] ?? 1);
  return Number.isSafeInteger(milliseconds) ? milliseconds : undefined;
}

/** Formats milliseconds in the largest unit that gives a whole number; `parseDuration` reads the result back. */
export function formatDuration(milliseconds: number): string {
  if (milliseconds === Number.POSITIVE_INFINITY) return 'infinity';
  const units = Object.entries(unitMilliseconds).toReversed();
  const [unit, size] = units.find(([, size]) => milliseconds % size === 0) ?? ['ms', 1];
  return milliseconds === 0 ? '0' : `${milliseconds / size}${unit}`;
}

/** Multiplies a decimal text exactly: 0.3 s are 300 ms, not 299.99999999999994. Returns NaN for a fraction. */
function scale(amount: string, factor: number): number {
  const [whole = '0', fraction = ''] = amount.split('.');
  const numerator = BigInt(whole + fraction) * BigInt(factor);
  const denominator = 10n ** BigInt(fraction.length);
  return numerator % denominator === 0n ? Number(numerator / denominator) : Number.NaN;
}
