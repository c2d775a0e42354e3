import type { LevelWithSilent } from 'pino';

const levels: ReadonlyMap<string, LevelWithSilent> = new Map([
  ['notset', 'trace'],
  ['trace', 'trace'],
  ['debug', 'debug'],
  ['info', 'info'],
  ['warn', 'warn'],
  ['warning', 'warn'],
  ['error', 'error'],
  ['critical', 'fatal'],
  ['fatal', 'fatal'],
  ['silent', 'silent'],
]);

/** From the most talkative to the most silent. */
const order = [...new Set(levels.values())];

/** The level of that name, whatever its case; Python's names are known, too. */
export function parseLevel(name: unknown): LevelWithSilent | undefined {
  return typeof name === 'string' ? levels.get(name.toLowerCase()) : undefined;
}

/** The one of two levels at which more is logged. */
export function moreTalkative(one: LevelWithSilent, other: LevelWithSilent): LevelWithSilent {
  return order.indexOf(one) < order.indexOf(other) ? one : other;
}
