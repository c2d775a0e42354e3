const minute = 60_000;
const hour = 60 * minute;

/**
 * Milliseconds for which a delegation is cached: `default` without a caching header, between `min` and `max` with a
 * caching header, and `error` after a failed look-up.
 * Source: server-server API, "Resolving server names", step 3.
 */
export const periods = { default: 24 * hour, max: 48 * hour, min: 5 * minute, error: hour } as const;

type Headers = Readonly<Record<string, string | string[] | undefined>>;

/**
 * Returns for how many milliseconds a response may be cached. Source: RFC 9111, section 5.
 * @param now milliseconds since the epoch
 */
export function cachePeriod(headers: Headers, now: number): number {
  const period =
    fromCacheControl(headers['cache-control']) ?? fromExpires(headers['expires'], now) ?? periods.default;
  return Math.min(Math.max(period, periods.min), periods.max);
}

function fromCacheControl(value: string | string[] | undefined): number | undefined {
  const directives = String(value ?? '')
    .toLowerCase()
    .split(',')
    .map((directive) => directive.trim());
  if (directives.some((directive) => /^no-(store|cache)\b/.test(directive))) return 0;
  const age = directives.map((directive) => /^max-age="?(\d{1,10})"?$/.exec(directive)?.[1]).find(Boolean);
  return age === undefined ? undefined : Number(age) * 1000;
}

/** An invalid date counts as past. */
function fromExpires(value: string | string[] | undefined, now: number): number | undefined {
  if (value === undefined) return undefined;
  const date = Date.parse(String(value));
  return Number.isNaN(date) ? 0 : Math.max(0, date - now);
}
