/** The destination of error reports: the parts of a Sentry DSN. */
export interface SentryProject {
  /** The endpoint that takes envelopes. */
  readonly url: URL;
  readonly publicKey: string;
}

/**
 * Reads a DSN: `https://PUBLIC_KEY@HOST/PATH/PROJECT`.
 * @returns `undefined` when the text is not a DSN
 */
export function parseDsn(dsn: string): SentryProject | undefined {
  const url = URL.parse(dsn);
  const path = /^(\/.*?)([^/]+)$/.exec(url?.pathname ?? '');
  if (!url || !path || url.username === '' || !/^https?:$/.test(url.protocol)) return undefined;
  const [, prefix, project] = path;
  const publicKey = decodeURIComponent(url.username);
  return { url: new URL(`${url.origin}${prefix}api/${project}/envelope/`), publicKey };
}
