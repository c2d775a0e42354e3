import type { Reader, Writer } from '../kernel/database/index.ts';
import type { DeviceTables } from './tables.ts';

export interface Device {
  readonly deviceId: string;
  readonly displayName: string | undefined;
  /**
   * Milliseconds since the epoch, up to about a minute too early; `undefined` when the device was never used.
   */
  readonly lastSeenAt: number | undefined;
  readonly lastSeenIp: string | undefined;
  readonly lastSeenUserAgent: string | undefined;
  /** Whether the device has no client: it only receives messages, for the user's next device. */
  readonly isDehydrated: boolean;
}

const columns = [
  'device_id',
  'display_name',
  'last_seen_at',
  'last_seen_ip',
  'last_seen_user_agent',
  'dehydrated',
] as const;

type Row = Pick<DeviceTables['devices'], (typeof columns)[number]>;

function toDevice(row: Row): Device {
  return {
    deviceId: row.device_id,
    displayName: row.display_name ?? undefined,
    lastSeenAt: row.last_seen_at ?? undefined,
    lastSeenIp: row.last_seen_ip ?? undefined,
    lastSeenUserAgent: row.last_seen_user_agent ?? undefined,
    isDehydrated: row.dehydrated === 1,
  };
}

export async function listDevices(reader: Reader<DeviceTables>, userId: string): Promise<Device[]> {
  const rows = await reader
    .selectFrom('devices')
    .select(columns)
    .where('user_id', '=', userId)
    .orderBy('device_id')
    .execute();
  return rows.map(toDevice);
}

/** Names of devices, by user id and then by device id; `undefined` for a device without a name. */
export type DeviceNames = ReadonlyMap<string, ReadonlyMap<string, string | undefined>>;

/** Maximum number of users in one query. */
const usersPerQuery = 500;

/** Returns the display names of all devices of users; users without devices are absent. */
export async function deviceNames(
  reader: Reader<DeviceTables>,
  userIds: readonly string[],
): Promise<DeviceNames> {
  const names = new Map<string, Map<string, string | undefined>>();
  for (let start = 0; start < userIds.length; start += usersPerQuery) {
    const rows = await reader
      .selectFrom('devices')
      .select(['user_id', 'device_id', 'display_name'])
      .where('user_id', 'in', userIds.slice(start, start + usersPerQuery))
      .execute();
    for (const row of rows) {
      const userNames = names.get(row.user_id);
      const name = row.display_name ?? undefined;
      if (userNames) userNames.set(row.device_id, name);
      else names.set(row.user_id, new Map([[row.device_id, name]]));
    }
  }
  return names;
}

export async function readDevice(
  reader: Reader<DeviceTables>,
  userId: string,
  deviceId: string,
): Promise<Device | undefined> {
  const row = await reader
    .selectFrom('devices')
    .select(columns)
    .where('user_id', '=', userId)
    .where('device_id', '=', deviceId)
    .executeTakeFirst();
  return row && toDevice(row);
}

/** Whether one of the ids belongs to a device of another user, and to no device of this user. */
export async function hasDeviceOfOthersOnly(
  reader: Reader<DeviceTables>,
  userId: string,
  deviceIds: readonly string[],
): Promise<boolean> {
  if (deviceIds.length === 0) return false;
  const ownDevices = await reader
    .selectFrom('devices')
    .select('device_id')
    .where('user_id', '=', userId)
    .where('device_id', 'in', deviceIds)
    .execute();
  const ownIds = new Set(ownDevices.map((row) => row.device_id));
  const otherIds = deviceIds.filter((deviceId) => !ownIds.has(deviceId));
  if (otherIds.length === 0) return false;
  // Reads one row: many users may have devices with the same id.
  const deviceOfOther = await reader
    .selectFrom('devices')
    .select('device_id')
    .where('device_id', 'in', otherIds)
    .limit(1)
    .executeTakeFirst();
  return deviceOfOther !== undefined;
}

/** @returns whether the device is new; an existing one keeps its name */
export async function insertDevice(
  writer: Writer<DeviceTables>,
  device: {
    userId: string;
    deviceId: string;
    displayName: string | undefined;
    createdAt: number;
    dehydrated: boolean;
  },
): Promise<boolean> {
  const result = await writer
    .insertInto('devices')
    .values({
      user_id: device.userId,
      device_id: device.deviceId,
      display_name: device.displayName ?? null,
      created_at: device.createdAt,
      dehydrated: device.dehydrated ? 1 : 0,
    })
    .onConflict((conflict) => conflict.doNothing())
    .executeTakeFirst();
  return (result.numInsertedOrUpdatedRows ?? 0n) > 0n;
}

/**
 * Inserts the devices that do not exist yet, without names.
 * @param deviceIds at least one, at most 1,000
 * @returns the ids of the new devices
 */
export async function insertDevices(
  writer: Writer<DeviceTables>,
  userId: string,
  deviceIds: readonly string[],
  createdAt: number,
): Promise<string[]> {
  const rows = await writer
    .insertInto('devices')
    .values(
      deviceIds.map((deviceId) => ({
        user_id: userId,
        device_id: deviceId,
        display_name: null,
        created_at: createdAt,
        dehydrated: 0,
      })),
    )
    .onConflict((conflict) => conflict.doNothing())
    .returning('device_id')
    .execute();
  return rows.map((row) => row.device_id);
}

/** @returns whether the device exists */
export async function updateDisplayName(
  writer: Writer<DeviceTables>,
  userId: string,
  deviceId: string,
  displayName: string,
): Promise<boolean> {
  const result = await writer
    .updateTable('devices')
    .set({ display_name: displayName })
    .where('user_id', '=', userId)
    .where('device_id', '=', deviceId)
    .executeTakeFirst();
  return result.numUpdatedRows > 0n;
}

/** @returns the ids of the deleted devices */
export async function deleteDevices(
  writer: Writer<DeviceTables>,
  userId: string,
  deviceIds: readonly string[],
): Promise<string[]> {
  if (deviceIds.length === 0) return [];
  const rows = await writer
    .deleteFrom('devices')
    .where('user_id', '=', userId)
    .where('device_id', 'in', deviceIds)
    .returning('device_id')
    .execute();
  return rows.map((row) => row.device_id);
}

/** An address that a device was used from. */
export interface Connection {
  /** Empty for application services that act without a device. */
  readonly deviceId: string;
  readonly ip: string;
  readonly userAgent: string;
  /** Milliseconds since the epoch. */
  readonly lastSeenAt: number;
}

/** Returns the addresses that a user was active from, the latest first. */
export async function listConnections(
  reader: Reader<DeviceTables>,
  userId: string,
  limit: number,
): Promise<Connection[]> {
  const rows = await reader
    .selectFrom('user_ips')
    .select(['device_id', 'ip', 'user_agent', 'last_seen_at'])
    .where('user_id', '=', userId)
    .orderBy('last_seen_at', 'desc')
    .orderBy('ip')
    .limit(limit)
    .execute();
  return rows.map((row) => ({
    deviceId: row.device_id,
    ip: row.ip,
    userAgent: row.user_agent,
    lastSeenAt: row.last_seen_at,
  }));
}

export async function deleteUserIps(writer: Writer<DeviceTables>, userId: string): Promise<void> {
  await writer.deleteFrom('user_ips').where('user_id', '=', userId).execute();
}

/** Sets the time when a user last used a device to 0. The row stays, because the admin API lists users by it. */
export async function eraseActivity(writer: Writer<DeviceTables>, userId: string): Promise<void> {
  await writer.updateTable('user_activity').set({ last_seen_at: 0 }).where('user_id', '=', userId).execute();
}

/** Stores the position of the last change of a user's device list. */
export async function recordListChange(
  writer: Writer<DeviceTables>,
  userId: string,
  position: number,
): Promise<void> {
  await writer
    .insertInto('device_list_changes')
    .values({ user_id: userId, position })
    .onConflict((conflict) => conflict.column('user_id').doUpdateSet({ position }))
    .execute();
}

/**
 * Returns at most `limit` users whose device list has ever changed and whose ids follow `after`, in the order of the
 * ids.
 */
export async function usersWithChange(
  reader: Reader<DeviceTables>,
  after: string,
  limit: number,
): Promise<string[]> {
  const rows = await reader
    .selectFrom('device_list_changes')
    .select('user_id')
    .where('user_id', '>', after)
    .orderBy('user_id')
    .limit(limit)
    .execute();
  return rows.map((row) => row.user_id);
}

export async function deleteListChange(writer: Writer<DeviceTables>, userId: string): Promise<void> {
  await writer.deleteFrom('device_list_changes').where('user_id', '=', userId).execute();
}

/** Returns users whose device list has its last change at a position in `(after, upTo]`. */
export async function usersWithLastChangeIn(
  reader: Reader<DeviceTables>,
  after: number,
  upTo: number,
): Promise<string[]> {
  const rows = await reader
    .selectFrom('device_list_changes')
    .select('user_id')
    .where('position', '>', after)
    .where('position', '<=', upTo)
    .execute();
  return rows.map((row) => row.user_id);
}

/**
 * Returns devices that were last used before `before`, and devices that were never used and were created before
 * `before`. Dehydrated devices are omitted.
 */
export async function staleDevices(
  reader: Reader<DeviceTables>,
  before: number,
  limit: number,
): Promise<{ userId: string; deviceId: string }[]> {
  const rows = await reader
    .selectFrom('devices')
    .select(['user_id', 'device_id'])
    .where('dehydrated', '=', 0)
    .where((where) => where(where.fn.coalesce('last_seen_at', 'created_at'), '<', before))
    .limit(limit)
    .execute();
  return rows.map((row) => ({ userId: row.user_id, deviceId: row.device_id }));
}
