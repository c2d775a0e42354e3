import type { SentryProject } from '../observability/index.ts';

/** Returns the headers of a request with a report. Source: Sentry's documentation, "Authentication". */
export function headersFor({ publicKey }: SentryProject): Readonly<Record<string, string>> {
  return {
    'content-type': 'application/x-sentry-envelope',
    'x-sentry-auth': `Sentry sentry_version=7, sentry_client=hearth, sentry_key=${publicKey}`,
  };
}
