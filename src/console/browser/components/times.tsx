/** Times, with the whole date for screen readers and in a tooltip. */
import { dateOf, formatAgo, formatDay, formatTime } from './format.ts';

/** A point in time. @param at milliseconds since the epoch */
export function Time({ at }: { readonly at: number }) {
  return <time dateTime={dateOf(at).toISOString()}>{formatTime(at)}</time>;
}

export function Day({ at }: { readonly at: number }) {
  return (
    <time dateTime={dateOf(at).toISOString()} title={formatTime(at)}>
      {formatDay(at)}
    </time>
  );
}

/** How long ago a time was; "never" for `null` and 0. */
export function Ago({ at }: { readonly at: number | null }) {
  if (at === null || at === 0) return <span class="soft">never</span>;
  return (
    <time dateTime={dateOf(at).toISOString()} title={formatTime(at)}>
      {formatAgo(at, Date.now())}
    </time>
  );
}
