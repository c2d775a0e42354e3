import type { Devices } from '../../devices/index.ts';
import type { E2ee } from '../../e2ee/index.ts';
import type { JsonObject } from '../../protocol/index.ts';

export interface LocalDevicesDeps {
  readonly devices: Devices;
  readonly query: E2ee['query'];
  /** Whether the operator allows display names (`allow_device_name_lookup_over_federation`). */
  readonly sendDisplayNames: boolean;
}

/** The part of a local user's devices and keys that other servers may see. */
export interface LocalDevices {
  /** Identity keys by device id; devices without keys are absent. */
  readonly keys: Readonly<Record<string, JsonObject>>;
  /** Display names by device id, for all devices; `undefined` for a name that is unset or not sent. */
  readonly names: ReadonlyMap<string, string | undefined>;
  readonly masterKey: JsonObject | undefined;
  readonly selfSigningKey: JsonObject | undefined;
}

/** Reads the part of a local user's devices and keys that other servers may see. */
export async function readLocalDevices(
  { devices, query, sendDisplayNames }: LocalDevicesDeps,
  userId: string,
): Promise<LocalDevices> {
  const names = (await devices.names([userId])).get(userId) ?? new Map<string, string | undefined>();
  const { device_keys, master_keys, self_signing_keys } = await query.queryLocal(
    new Map([[userId, []]]),
    false,
  );
  return {
    keys: device_keys[userId] ?? {},
    names: sendDisplayNames ? names : new Map([...names.keys()].map((deviceId) => [deviceId, undefined])),
    masterKey: master_keys[userId],
    selfSigningKey: self_signing_keys[userId],
  };
}

/**
 * Returns the content of `m.device_list_update` for the current state of a device.
 * @param update its `stream_id`, and the `stream_id` of the update before it; `undefined` for the first update
 */
export function deviceListUpdate(
  userId: string,
  deviceId: string,
  { keys, names }: LocalDevices,
  update: { readonly streamId: number; readonly previous: number | undefined },
): JsonObject {
  const name = names.get(deviceId);
  const deviceKeys = Object.hasOwn(keys, deviceId) ? keys[deviceId] : undefined;
  return {
    user_id: userId,
    device_id: deviceId,
    stream_id: update.streamId,
    prev_id: update.previous === undefined ? [] : [update.previous],
    ...(names.has(deviceId) ? {} : { deleted: true }),
    ...(name !== undefined && { device_display_name: name }),
    ...(deviceKeys && { keys: deviceKeys }),
  };
}

/** Returns the content of `m.signing_key_update` for the current cross-signing keys. */
export function signingKeyUpdate(userId: string, { masterKey, selfSigningKey }: LocalDevices): JsonObject {
  return {
    user_id: userId,
    ...(masterKey && { master_key: masterKey }),
    ...(selfSigningKey && { self_signing_key: selfSigningKey }),
  };
}
