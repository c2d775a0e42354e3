import type { E2eeServer, UserWithKeys } from '../../../../test/support/servers/e2ee-server.ts';
import type { JsonObject } from '../../../protocol/index.ts';

/** The algorithm of the one-time keys that clients upload. */
export const curve = 'signed_curve25519';

/** What people do with keys on a server. @param server the one of the running test */
export function keyCalls(server: () => E2eeServer) {
  return {
    upload: (person: { token: string }, body: unknown) => server().call(person, 'POST', '/keys/upload', body),

    query: (person: { token: string }, device_keys: unknown) =>
      server().call(person, 'POST', '/keys/query', { device_keys }),

    /** One key of the device of `target`. */
    claim: async (person: { token: string }, target: UserWithKeys, algorithm = curve) => {
      const one_time_keys = { [target.userId]: { [target.deviceId]: algorithm } };
      const { body } = await server().call(person, 'POST', '/keys/claim', { one_time_keys });
      const claimed = body['one_time_keys'] as Record<string, Record<string, JsonObject>>;
      return claimed[target.userId]?.[target.deviceId];
    },

    /** What the device is told of its own keys. */
    keyCounts: async ({ userId, deviceId }: UserWithKeys) => {
      const { counts } = server().e2ee;
      const { oneTimeKeyCounts, unusedFallbackKeyTypes } = await counts.get(userId, deviceId);
      return { counts: oneTimeKeyCounts, unused: unusedFallbackKeyTypes };
    },
  };
}
