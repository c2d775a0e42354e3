import type { IntrospectedToken } from '../../accounts/index.ts';
import { type JsonObject, MatrixError } from '../../protocol/index.ts';
import { apiScopes, deviceIdsIn } from '../scopes.ts';

/** The scope of server administrators, as the Matrix Authentication Service spells it. */
const adminScope = 'urn:synapse:admin:*';

/** The localparts of user ids, historical ones included (specification, "User identifiers"). */
const localpart = /^[\x21-\x39\x3b-\x7e]{1,255}$/;

/**
 * Reads the answer of an authentication service about a token. Source: RFC 7662, section 2.2.
 * @param maxAge milliseconds for which the answer may be used
 * @returns `undefined` for a token that is not valid, or that is for another API than the client-server API
 * @throws MatrixError 500 for an answer that names no user, several devices or an invalid device
 */
export function readIntrospection(
  answer: JsonObject,
  { now, serverName, maxAge }: { readonly now: number; readonly serverName: string; readonly maxAge: number },
): IntrospectedToken | undefined {
  if (answer['active'] !== true) return undefined;
  const scope = typeof answer['scope'] === 'string' ? answer['scope'].split(' ') : [];
  if (!scope.some((token) => apiScopes.includes(token))) return undefined;
  const { username, device_id: device, expires_in: expiresIn } = answer;
  const expiresAt = typeof expiresIn === 'number' ? now + expiresIn * 1_000 : Number.POSITIVE_INFINITY;
  if (expiresAt <= now) return undefined;
  if (typeof username !== 'string' || !localpart.test(username)) throw faulty('names no valid user');
  const devices = typeof device === 'string' ? [device] : deviceIdsIn(scope);
  const [deviceId] = devices;
  if (devices.length > 1) throw faulty('names several devices');
  if (deviceId !== undefined && !/^[^\0]{1,255}$/.test(deviceId)) throw faulty('names an invalid device');
  return {
    userId: `@${username}:${serverName}`,
    deviceId,
    isAdmin: scope.includes(adminScope),
    usableUntil: Math.min(expiresAt, now + maxAge),
  };
}

const faulty = (problem: string) =>
  new MatrixError(500, 'M_UNKNOWN', `The answer of the authentication service ${problem}`);
