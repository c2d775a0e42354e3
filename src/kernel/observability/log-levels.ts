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

/** Levels from the most to the least verbose. */
const order = [...new Set(levels.values())];

/** Returns the level of this name, in upper or lower case. Names of Python's levels are accepted too; `undefined` for other names. */
export function parseLevel(name: unknown): LevelWithSilent | undefined {
  return typeof name === 'string' ? levels.get(name.toLowerCase()) : undefined;
}

/** Returns the more verbose of two levels. */
export function moreVerbose(first: LevelWithSilent, second: LevelWithSilent): LevelWithSilent {
  return order.indexOf(first) < order.indexOf(second) ? first : second;
}
