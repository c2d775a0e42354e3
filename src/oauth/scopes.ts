import { OAuthError } from './oauth-error.ts';

/** Scopes with full access to the client-server API; the second is the spelling of MSC2967. */
export const apiScopes: readonly string[] = [
  'urn:matrix:client:api:*',
  'urn:matrix:org.matrix.msc2967.client:api:*',
];

/** Beginnings of the scopes with a device id. */
const devicePrefixes = ['urn:matrix:client:device:', 'urn:matrix:org.matrix.msc2967.client:device:'] as const;

/** A device id in a scope: at most 255 of the characters that RFC 6749, section 3.3, allows in scopes. */
const devicePattern = /^[\x21\x23-\x5b\x5d-\x7e]{1,255}$/;

/** The scope that is granted to a client. */
export interface GrantedScope {
  readonly deviceId: string;
  /** The granted part of the requested scope, in the client's spelling. */
  readonly text: string;
}

/**
 * Reads the scope that a client requests. Unknown scopes are not granted.
 * Source: client-server API, "Allocated scope tokens".
 * @throws OAuthError invalid_scope without access to the API, or without exactly one valid device id
 */
export function grantScope(requested: string): GrantedScope {
  const tokens = [...new Set(requested.split(' ').filter((token) => token !== ''))];
  const devices = deviceIdsIn(tokens);
  const [deviceId = ''] = devices;
  if (!tokens.some((token) => apiScopes.includes(token))) {
    throw new OAuthError('invalid_scope', 'The scope must contain urn:matrix:client:api:*');
  }
  if (devices.length !== 1 || !devicePattern.test(deviceId)) {
    throw new OAuthError(
      'invalid_scope',
      'The scope must contain exactly one urn:matrix:client:device:<device_id>, with a valid device id',
    );
  }
  const granted = tokens.filter(
    (token) =>
      token === 'openid' ||
      apiScopes.includes(token) ||
      devicePrefixes.some((prefix) => token.startsWith(prefix)),
  );
  return { deviceId, text: granted.join(' ') };
}

/** Returns the device ids that a scope contains, each once. */
export function deviceIdsIn(tokens: readonly string[]): string[] {
  const devices = new Set<string>();
  for (const token of tokens) {
    const prefix = devicePrefixes.find((start) => token.startsWith(start));
    if (prefix !== undefined) devices.add(token.slice(prefix.length));
  }
  return [...devices];
}
