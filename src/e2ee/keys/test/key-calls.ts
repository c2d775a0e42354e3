import type { E2eeServer, UserWithKeys } from '../../../../test/support/servers/e2ee-server.ts';
import type { JsonObject } from '../../../protocol/index.ts';

/** The algorithm of the one-time keys in tests. */
export const oneTimeKeyAlgorithm = 'signed_curve25519';

/**
 * Returns functions that send requests for keys.
 * @param server returns the server of the running test
 */
export function keyCalls(server: () => E2eeServer) {
  return {
    upload: (user: { token: string }, body: unknown) => server().call(user, 'POST', '/keys/upload', body),

    query: (user: { token: string }, device_keys: unknown) =>
      server().call(user, 'POST', '/keys/query', { device_keys }),

    /** Claims one key of the device of `target`. */
    claim: async (user: { token: string }, target: UserWithKeys, algorithm = oneTimeKeyAlgorithm) => {
      const one_time_keys = { [target.userId]: { [target.deviceId]: algorithm } };
      const { body } = await server().call(user, 'POST', '/keys/claim', { one_time_keys });
      const claimed = body['one_time_keys'] as Record<string, Record<string, JsonObject>>;
      return claimed[target.userId]?.[target.deviceId];
    },

    /** The key counts that the device receives in /sync. */
    keyCounts: async ({ userId, deviceId }: UserWithKeys) => {
      const { counts } = server().e2ee;
      const { oneTimeKeyCounts, unusedFallbackKeyTypes } = await counts.get(userId, deviceId);
      return { counts: oneTimeKeyCounts, unused: unusedFallbackKeyTypes };
    },
  };
}
