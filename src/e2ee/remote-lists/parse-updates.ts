import { isCompliantUserId, isJsonObject, type JsonObject, serverOfUser } from '../../protocol/index.ts';
import {
  isDeviceId,
  maxDevices,
  objectProperty,
  validCrossSigningKey,
  validDeviceKeys,
} from '../remote-keys/remote-keys.ts';
import type { RemoteList, RemoteSnapshot } from './remote-list.ts';

/** A change of one device of a remote user. Source: server-server API, `m.device_list_update`. */
export interface DeviceListUpdate {
  readonly userId: string;
  readonly deviceId: string;
  /** `undefined` when it is not a safe integer. */
  readonly streamId: number | undefined;
  /** Ids of the previous updates (`prev_id`); `undefined` when malformed. */
  readonly previous: readonly number[] | undefined;
  /** `undefined` when the device was deleted or has no valid keys. */
  readonly keys: JsonObject | undefined;
}

/**
 * New cross-signing keys of a remote user. A key that is absent or invalid is `undefined`; the stored key then stays.
 * Source: server-server API, `m.signing_key_update`.
 */
export interface SigningKeyUpdate {
  readonly userId: string;
  readonly masterKey: JsonObject | undefined;
  readonly selfSigningKey: JsonObject | undefined;
}

/** Maximum number of stored update ids of a list. */
const maxStreamIds = 32;

/** Maximum number of previous ids of an update. */
const maxPreviousIds = 32;

/** @returns `undefined` when the device id is invalid, or the user id is not one of `origin` */
export function parseDeviceListUpdate(origin: string, content: JsonObject): DeviceListUpdate | undefined {
  const { user_id: userId, device_id: deviceId, stream_id: streamId } = content;
  if (!isUserOf(origin, userId) || !isDeviceId(deviceId)) return undefined;
  const keys = objectProperty(content, 'keys');
  const unsigned = { device_display_name: content['device_display_name'] };
  return {
    userId,
    deviceId,
    streamId: isStreamId(streamId) ? streamId : undefined,
    previous: parsePrevious(content['prev_id']),
    keys:
      keys === undefined || content['deleted'] === true
        ? undefined
        : validDeviceKeys({ ...keys, unsigned } as JsonObject, userId, deviceId),
  };
}

/** @returns `undefined` when the user id is not one of `origin` */
export function parseSigningKeyUpdate(origin: string, content: JsonObject): SigningKeyUpdate | undefined {
  const { user_id: userId } = content;
  if (!isUserOf(origin, userId)) return undefined;
  return { userId, ...signingKeys(content, userId) };
}

/**
 * Parses the response to `GET /user/devices/{userId}`. Leaves out invalid devices and keys, and the devices after the
 * first `maxDevices`. Returns `undefined` for a malformed response.
 */
export function parseUserDevices(answer: JsonObject, userId: string): RemoteSnapshot | undefined {
  const { user_id: answeredUserId, stream_id: streamId, devices } = answer;
  if (answeredUserId !== userId || !Array.isArray(devices)) return undefined;
  const validDevices = new Map<string, JsonObject>();
  for (const device of devices as unknown[]) {
    if (validDevices.size >= maxDevices) break;
    const keys = objectProperty(device, 'keys');
    if (!isJsonObject(device) || !keys || !isDeviceId(device['device_id'])) continue;
    const unsigned = { device_display_name: device['device_display_name'] };
    const validKeys = validDeviceKeys({ ...keys, unsigned } as JsonObject, userId, device['device_id']);
    if (validKeys) validDevices.set(device['device_id'], validKeys);
  }
  const streamIds = isStreamId(streamId) ? [streamId] : [];
  return { streamIds, ...signingKeys(answer, userId), devices: validDevices };
}

/**
 * Classifies an update of a list. `known`: the list contains the update. `next`: the list lacks only this update.
 * `gap`: the list lacks earlier updates, or must be fetched again for another reason.
 * Source: server-server API, "Device Management".
 */
export function classifyUpdate(
  { stale, streamIds }: RemoteList,
  { streamId, previous }: DeviceListUpdate,
): 'known' | 'next' | 'gap' {
  // Servers that do not number their updates send them without previous ids.
  if (stale || streamId === undefined || !previous?.length) return 'gap';
  if (streamIds.includes(streamId)) return 'known';
  if (!previous.every((id) => streamIds.includes(id))) return 'gap';
  // A late update could replace newer keys by older keys.
  return streamId > Math.max(...streamIds) ? 'next' : 'gap';
}

export const appendStreamId = (streamIds: readonly number[], next: number) =>
  [...streamIds, next].slice(-maxStreamIds);

function signingKeys(content: JsonObject, userId: string) {
  return {
    masterKey: validCrossSigningKey(objectProperty(content, 'master_key'), userId, 'master'),
    selfSigningKey: validCrossSigningKey(objectProperty(content, 'self_signing_key'), userId, 'self_signing'),
  };
}

function parsePrevious(value: unknown): readonly number[] | undefined {
  if (value === undefined) return [];
  if (!Array.isArray(value) || value.length > maxPreviousIds || !value.every(isStreamId)) return undefined;
  return value;
}

/**
 * Whether an update of `server` may be about this user. Updates about non-compliant user ids are dropped, because clients
 * should see such ids only in events.
 * Source: appendices, "Historical User IDs".
 */
const isUserOf = (server: string, userId: unknown): userId is string =>
  isCompliantUserId(userId) && serverOfUser(userId) === server;

const isStreamId = (id: unknown): id is number => Number.isSafeInteger(id);
