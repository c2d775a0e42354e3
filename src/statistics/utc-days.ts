/** Milliseconds of an hour. */
export const hour = 3_600_000;

/** Milliseconds of a day. */
export const day = 24 * hour;

/** Returns the UTC day of a time as a number of days since the epoch. @param time milliseconds since the epoch */
export const dayOf = (time: number): number => Math.floor(time / day);

/** Returns the hour of a time as a number of hours since the epoch. @param time milliseconds since the epoch */
export const hourOf = (time: number): number => Math.floor(time / hour);

/** Returns a day as `YYYY-MM-DD`. @param number days since the epoch */
export const textOfDay = (number: number): string => new Date(number * day).toISOString().slice(0, 10);
