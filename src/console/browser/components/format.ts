/** Texts for numbers and times. */

const count = new Intl.NumberFormat('en');
const day = new Intl.DateTimeFormat('en', { dateStyle: 'medium' });
const minute = new Intl.DateTimeFormat('en', { dateStyle: 'medium', timeStyle: 'short' });

export const formatCount = (value: number): string => count.format(value);

/** Returns a time as a date. Times after the latest possible date become that date. @param time milliseconds since the epoch */
export const dateOf = (time: number): Date => new Date(Math.min(time, 8.64e15));

/** @param time milliseconds since the epoch */
export const formatDay = (time: number): string => day.format(dateOf(time));

/** @param time milliseconds since the epoch */
export const formatTime = (time: number): string => minute.format(dateOf(time));

export function formatBytes(bytes: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let value = bytes;
  let unit = 0;
  for (; value >= 1024 && unit < units.length - 1; unit++) value /= 1024;
  return `${unit === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${units[unit]}`;
}

const units = [
  ['d', 86_400],
  ['h', 3_600],
  ['min', 60],
  ['s', 1],
] as const;

/** @param maxUnits maximum number of units, for example 2 for `3 d 4 h` */
export function formatDuration(milliseconds: number, maxUnits = 2): string {
  let seconds = Math.max(0, Math.round(milliseconds / 1000));
  const parts = units.map(([unit, size]) => {
    const amount = Math.floor(seconds / size);
    seconds -= amount * size;
    return { amount, unit };
  });
  const first = parts.findIndex(({ amount }) => amount > 0);
  if (first === -1) return '0 s';
  const shown = parts.slice(first, first + maxUnits).filter(({ amount }) => amount > 0);
  return shown.map(({ amount, unit }) => `${amount} ${unit}`).join(' ');
}

/** Returns how long ago a time was. @param time and now: milliseconds since the epoch */
export const formatAgo = (time: number, now: number): string =>
  now - time < 60_000 ? 'just now' : `${formatDuration(now - time, 1)} ago`;
