import type { RemoteUser } from './browser-logins/identity-provider.ts';

/** Maximum UTF-16 code units of a name or of a mail address. */
const maxLength = 255;

/** Maximum number of mail addresses of a user. */
export const maxEmails = 50;

/**
 * Bounds a profile that an identity provider or a module reports: shortens the display name, and leaves out
 * addresses that are too long or too many.
 */
export const boundedProfile = (
  displayName: string | undefined,
  emails: readonly string[] = [],
): Pick<RemoteUser, 'displayName' | 'emails'> => ({
  displayName: displayName === undefined ? undefined : boundedName(displayName),
  emails: emails.filter(({ length }) => length <= maxLength).slice(0, maxEmails),
});

/** Returns the beginning of a name, without half of a surrogate pair. */
export const boundedName = (name: string): string =>
  name
    .toWellFormed()
    .slice(0, maxLength)
    .replace(/[\ud800-\udbff]$/, '');
