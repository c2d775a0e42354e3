import { fitsBytes } from './length.ts';
import { isServerName, type ServerName } from './server-names.ts';

export type DeviceId = string & { readonly __brand: 'DeviceId' };

/** `mxc://server/media`. */
export type MxcUri = string & { readonly __brand: 'MxcUri' };

const algorithm = /^[a-z0-9_.-]+$/;
const signingKeyName = /^[A-Za-z0-9_]+$/;
const mediaId = /^[A-Za-z0-9_-]{1,255}$/;

/**
 * Whether text may be a device id. Clients choose device ids freely; only their size is bounded, and they
 * must not hold NUL or lone surrogates.
 */
export function isDeviceId(text: unknown): text is DeviceId {
  return (
    typeof text === 'string' && text !== '' && fitsBytes(text) && !text.includes('\0') && text.isWellFormed()
  );
}

/**
 * Splits a key id, for instance `ed25519:a_AbCd`, at its first colon; `undefined` if it is malformed. The
 * name may be a device id, so it may hold colons.
 */
export function parseKeyId(text: string): { readonly algorithm: string; readonly name: string } | undefined {
  const colon = text.indexOf(':');
  if (colon < 1 || colon === text.length - 1 || !fitsBytes(text)) return undefined;
  const parts = { algorithm: text.slice(0, colon), name: text.slice(colon + 1) };
  return algorithm.test(parts.algorithm) ? parts : undefined;
}

/** Whether text may be the name of a server's signing key: `a_AbCd` in `ed25519:a_AbCd`. */
export function isSigningKeyName(text: unknown): text is string {
  return typeof text === 'string' && signingKeyName.test(text) && fitsBytes(text);
}

/**
 * Splits a content URI; `undefined` if it is malformed. The grammar of the media id makes it safe as a file
 * name.
 * Source: client-server API, "Matrix Content (`mxc://`) URIs".
 */
export function parseMxcUri(
  text: string,
): { readonly serverName: ServerName; readonly mediaId: string } | undefined {
  if (!text.startsWith('mxc://')) return undefined;
  const slash = text.indexOf('/', 6);
  if (slash === -1) return undefined;
  const serverName = text.slice(6, slash);
  const media = text.slice(slash + 1);
  return isServerName(serverName) && mediaId.test(media) ? { serverName, mediaId: media } : undefined;
}

/** Whether text is a content URI. */
export function isMxcUri(text: unknown): text is MxcUri {
  return typeof text === 'string' && parseMxcUri(text) !== undefined;
}
