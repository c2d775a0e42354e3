import { parseDuration } from '../../kernel/config/index.ts';
import { CommandFailure } from '../failure.ts';

/** A date with or without a time of day and a time zone. The groups are the time of day and the time zone. */
const dateForm = /^\d{4}-\d\d-\d\d(?:(T\d\d:\d\d(?::\d\d(?:\.\d+)?)?)(Z|[+-]\d\d:\d\d)?)?$/;

/**
 * Reads a time that is given as a date (`2026-11-23`, `2026-11-23T18:00`; UTC unless it names a time zone), or as a
 * duration (`30d`), which is counted back or forward from now.
 * @returns milliseconds since the epoch
 * @throws CommandFailure for anything else
 */
export function timeIn(text: string, direction: 'past' | 'future', now: number): number {
  const duration = /[a-z]$/.test(text) ? parseDuration(text) : undefined;
  if (duration !== undefined && Number.isFinite(duration))
    return direction === 'past' ? now - duration : now + duration;
  const found = dateForm.exec(text);
  if (found) {
    const [, timeOfDay, zone] = found;
    // Without a zone, Date.parse would take a time of day as local time.
    const date = Date.parse(timeOfDay !== undefined && zone === undefined ? `${text}Z` : text);
    if (!Number.isNaN(date)) return date;
  }
  throw new CommandFailure(`${text} is not a time: expected a date (2026-11-23) or a duration (30d, 12h)`);
}
