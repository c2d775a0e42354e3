import { isCompliantUserId, isJsonObject, type JsonObject, serverOfUser } from '../../protocol/index.ts';
import {
  isDeviceId,
  maxDevices,
  objectProperty,
  validCrossSigningKey,
  validDeviceKeys,
} from '../keys/remote-keys.ts';
import type { RemoteList, RemoteSnapshot } from './remote-list.ts';

/** One device of a user of another server has changed. Source: server-server API, `m.device_list_update`. */
export interface DeviceListUpdate {
  readonly userId: string;
  readonly deviceId: string;
  /** `undefined` when it is no number that can be compared. */
  readonly streamId: number | undefined;
  /** The updates that this one follows; `undefined` when that is not said in a way that can be understood. */
  readonly previous: readonly number[] | undefined;
  /** `undefined` when the device is gone, or has no sound keys. */
  readonly keys: JsonObject | undefined;
}

/** A user of another server has other cross-signing keys. Source: server-server API, `m.signing_key_update`. */
export interface SigningKeyUpdate {
  readonly userId: string;
  /** `undefined` when nothing is said about it. */
  readonly masterKey: JsonObject | undefined;
  readonly selfSigningKey: JsonObject | undefined;
}

/** How many updates are remembered of a list, and how many one update may follow. */
const [maxRemembered, maxPrevious] = [32, 32];

/** @returns `undefined` when it is not about a user of that server */
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

/** @returns `undefined` when it is not about a user of that server */
export function parseSigningKeyUpdate(origin: string, content: JsonObject): SigningKeyUpdate | undefined {
  const { user_id: userId } = content;
  if (!isUserOf(origin, userId)) return undefined;
  return { userId, ...signingKeys(content, userId) };
}

/** The answer to `GET /user/devices/{userId}`; what is unsound of it is left out. `undefined` when nothing is right. */
export function parseUserDevices(answer: JsonObject, userId: string): RemoteSnapshot | undefined {
  const { user_id: named, stream_id: streamId, devices } = answer;
  if (named !== userId || !Array.isArray(devices)) return undefined;
  const sound = new Map<string, JsonObject>();
  for (const device of devices as unknown[]) {
    if (sound.size >= maxDevices) break;
    const keys = objectProperty(device, 'keys');
    if (!isJsonObject(device) || !keys || !isDeviceId(device['device_id'])) continue;
    const unsigned = { device_display_name: device['device_display_name'] };
    const kept = validDeviceKeys({ ...keys, unsigned } as JsonObject, userId, device['device_id']);
    if (kept) sound.set(device['device_id'], kept);
  }
  const streamIds = isStreamId(streamId) ? [streamId] : [];
  return { streamIds, ...signingKeys(answer, userId), devices: sound };
}

/**
 * What an update means for a list: it is contained already, it is the next one, or others are missing in between.
 * Source: server-server API, "Device Management".
 */
export function classifyUpdate(
  { stale, streamIds }: RemoteList,
  { streamId, previous }: DeviceListUpdate,
): 'known' | 'next' | 'gap' {
  // Servers that do not count their updates send them without any to follow.
  if (stale || streamId === undefined || !previous?.length) return 'gap';
  if (streamIds.includes(streamId)) return 'known';
  if (!previous.every((id) => streamIds.includes(id))) return 'gap';
  // What comes late could put older keys in the place of newer ones.
  return streamId > Math.max(...streamIds) ? 'next' : 'gap';
}

export const appendStreamId = (streamIds: readonly number[], next: number) =>
  [...streamIds, next].slice(-maxRemembered);

function signingKeys(content: JsonObject, userId: string) {
  return {
    masterKey: validCrossSigningKey(objectProperty(content, 'master_key'), userId, 'master'),
    selfSigningKey: validCrossSigningKey(objectProperty(content, 'self_signing_key'), userId, 'self_signing'),
  };
}

function parsePrevious(value: unknown): readonly number[] | undefined {
  if (value === undefined) return [];
  if (!Array.isArray(value) || value.length > maxPrevious || !value.every(isStreamId)) return undefined;
  return value;
}

/**
 * Updates about user ids that are not compliant are dropped, as clients are not to hear of those outside of events.
 * Source: appendices, "Historical User IDs".
 */
const isUserOf = (server: string, userId: unknown): userId is string =>
  isCompliantUserId(userId) && serverOfUser(userId) === server;

const isStreamId = (id: unknown): id is number => Number.isSafeInteger(id);
