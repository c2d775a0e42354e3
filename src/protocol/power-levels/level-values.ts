import { numberOf } from '../json/index.ts';
import type { JsonValue } from '../json.ts';
import type { PowerLevelNumbers } from '../room-versions.ts';

/**
 * What a room version reads out of one value in `m.room.power_levels`: the level, or `NaN` for a value that is no
 * level. `NaN` fails every comparison, so a check that is written as "allow if `level >= required`" rejects
 * wherever a level in it can not be understood.
 * Source: "`m.room.power_levels` events accept values as strings" and "... as floats" of each room version.
 */
export type ReadLevel = (value: JsonValue) => number;

/** Since v10: integers as canonical JSON has them. */
const readInteger: ReadLevel = (value) => (Number.isSafeInteger(value) ? Number(value) : Number.NaN);

/** Up to v9: a base 10 integer in a string, with leading zeroes, a sign and white space around it. */
const integerInString = /^\s*[+-]?[0-9]+\s*$/;

const readString: ReadLevel = (value) =>
  typeof value === 'string' && integerInString.test(value) ? finiteOrNaN(Number(value)) : Number.NaN;

/** Up to v5: floats are truncated at the decimal point; what a double can not hold is no level. */
const readFloat: ReadLevel = (value) => finiteOrNaN(Math.trunc(numberOf(value) ?? Number.NaN));

function finiteOrNaN(level: number): number {
  // Adding zero turns a negative zero, which -0.5 truncates to, into the usual one.
  return Number.isFinite(level) ? level + 0 : Number.NaN;
}

const readers: Readonly<Record<PowerLevelNumbers, ReadLevel>> = {
  'floats and strings': (value) => (typeof value === 'string' ? readString(value) : readFloat(value)),
  'integers and strings': (value) => (typeof value === 'string' ? readString(value) : readInteger(value)),
  integers: readInteger,
};

/** How a room version reads the values of its power levels. */
export function levelReader(numbers: PowerLevelNumbers): ReadLevel {
  return readers[numbers];
}
