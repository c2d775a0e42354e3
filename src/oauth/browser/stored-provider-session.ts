import type { ProviderSession } from '../../sso/index.ts';

/** Returns the session at an identity provider as JSON for a row; null without one. */
export const providerSessionColumn = (session: ProviderSession | undefined): string | null =>
  session === undefined ? null : JSON.stringify(session);

/** Reads the session at an identity provider from the column of a row; `undefined` for null. */
export function readProviderSession(stored: string | null): ProviderSession | undefined {
  if (stored === null) return undefined;
  const { provider, externalId, sessionId } = JSON.parse(stored) as ProviderSession;
  return { provider, externalId, sessionId };
}
