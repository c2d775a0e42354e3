import { numberOf } from '../json/index.ts';
import type { JsonValue } from '../json.ts';
import type { PowerLevelNumbers } from '../room-versions.ts';

/**
 * Reads one value in `m.room.power_levels` by the rules of a room version: the level, or `NaN` for a value
 * that is not a level. `NaN` fails every comparison, so a check written as "allow if `level >= required`"
 * rejects if a level in it cannot be read.
 * Source: "`m.room.power_levels` events accept values as strings" and "... as floats" of each room version.
 */
export type ReadLevel = (value: JsonValue) => number;

/** Since v10: integers as in canonical JSON. */
const readInteger: ReadLevel = (value) => (Number.isSafeInteger(value) ? Number(value) : Number.NaN);

/**
 * Up to v9: a decimal integer in a string, with optional leading zeroes, sign and surrounding white space.
 */
const integerInString = /^\s*[+-]?[0-9]+\s*$/;

const readString: ReadLevel = (value) =>
  typeof value === 'string' && integerInString.test(value) ? finiteOrNaN(Number(value)) : Number.NaN;

/** Up to v5: floats are truncated at the decimal point; values beyond the range of doubles are not levels. */
const readFloat: ReadLevel = (value) => finiteOrNaN(Math.trunc(numberOf(value) ?? Number.NaN));

function finiteOrNaN(level: number): number {
  // -0.5 is truncated to negative zero. Adding zero makes it zero.
  return Number.isFinite(level) ? level + 0 : Number.NaN;
}

const readers: Readonly<Record<PowerLevelNumbers, ReadLevel>> = {
  'floats and strings': (value) => (typeof value === 'string' ? readString(value) : readFloat(value)),
  'integers and strings': (value) => (typeof value === 'string' ? readString(value) : readInteger(value)),
  integers: readInteger,
};

/** Returns how a room version reads the values of its power levels. */
export function levelReader(numbers: PowerLevelNumbers): ReadLevel {
  return readers[numbers];
}
