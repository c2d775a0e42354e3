import type { Clock } from '../kernel/clock.ts';
import { type AnyWriter, afterCommit, type Database, writerFor } from '../kernel/database/index.ts';
import { type Randomness, randomLetters } from '../kernel/randomness.ts';
import { jsonFacts, type Publish, Stream, type StreamWriter } from '../kernel/streams/index.ts';
import { forbidden, invalidParam, notFound, tooLarge } from '../protocol/index.ts';
import type { LastSeen } from './last-seen.ts';
import {
  type Connection,
  type Device,
  type DeviceNames,
  deleteDevices,
  deleteListChange,
  deleteUserIps,
  deviceNames,
  eraseActivity,
  hasDeviceOfOthersOnly,
  insertDevice,
  insertDevices,
  listConnections,
  listDevices,
  readDevice,
  recordListChange,
  staleDevices,
  updateDisplayName,
  usersWithChange,
  usersWithLastChangeIn,
} from './store.ts';
import type { DeviceTables } from './tables.ts';
import {
  addUnannounced,
  crossSigningKeys,
  deleteUnannounced,
  readUnannounced,
  type UnannouncedChange,
} from './unannounced-changes.ts';

/** The device list of a local or remote user has changed: devices, their names, or keys of the user. */
export interface DeviceListChange {
  readonly userId: string;
}

/** The changes of a local user's device list, for the updates that are sent to other servers. */
export interface ChangedDevices {
  /** Devices that were added or deleted, or whose keys, signatures or names have changed. */
  readonly deviceIds?: readonly string[];
  /** Whether the cross-signing keys have changed. */
  readonly crossSigning?: boolean;
}

/** Deletes data that belongs to devices, in the transaction that deletes the devices. */
export interface DeviceCleanup {
  /** @param deviceIds at least one */
  devicesRemoved(
    writer: AnyWriter,
    publish: Publish,
    userId: string,
    deviceIds: readonly string[],
  ): Promise<void>;
}

/**
 * Refuses ids of new devices, in the transaction that creates the devices.
 * @throws MatrixError when one of the ids is refused
 */
export type DeviceIdCheck = (
  writer: AnyWriter,
  userId: string,
  deviceIds: readonly string[],
) => Promise<void>;

/** The device that a login requests. */
export interface DeviceRequest {
  readonly userId: string;
  /** Generated when absent. */
  readonly deviceId: string | undefined;
  /** Set for a new device only. */
  readonly displayName: string | undefined;
  /** A dehydrated device only receives messages for the user's next device, and never becomes stale. */
  readonly dehydrated?: boolean;
}

export interface DevicesDeps {
  readonly database: Database;
  readonly streams: StreamWriter;
  readonly clock: Clock;
  readonly randomness: Randomness;
  /** Flushed before devices and addresses are read, so that the last activity is current. */
  readonly lastSeen?: Pick<LastSeen, 'flush' | 'forget'>;
  /** Checks ids that this server has not generated. */
  readonly checkNewIds?: DeviceIdCheck | undefined;
}

/** Maximum characters of a device name. */
const maxNameLength = 100;

/** Maximum characters of a device id that a client chooses. */
const maxIdLength = 255;

/** Maximum number of listed addresses of a user. */
const maxConnections = 1000;

/** Number of letters in a device id that this server generates. */
const generatedIdLength = 10;

/** Maximum number of devices that are created in one transaction. */
const createdAtOnce = 1_000;

/** Maximum number of stale devices that are deleted in one transaction. */
const staleBatch = 100;

/** The devices of local users. */
export class Devices {
  readonly deviceListStream = new Stream<DeviceListChange>('device_lists', jsonFacts());
  readonly #deps: DevicesDeps;
  readonly #cleanups: readonly DeviceCleanup[];

  constructor(deps: DevicesDeps, cleanups: readonly DeviceCleanup[]) {
    this.#deps = deps;
    this.#cleanups = cleanups;
  }

  /** Returns all devices of a user with their last activity. */
  async list(userId: string): Promise<Device[]> {
    await this.#deps.lastSeen?.flush();
    return listDevices(this.#deps.database.reader<DeviceTables>(), userId);
  }

  /**
   * Returns the device names of several local users, by user id and then by device id. Users without devices are absent.
   * @param writer to read inside a transaction
   */
  names(userIds: readonly string[], writer?: AnyWriter): Promise<DeviceNames> {
    const reader = writer ? writerFor<DeviceTables>(writer) : this.#deps.database.reader<DeviceTables>();
    return deviceNames(reader, userIds);
  }

  /** @throws MatrixError M_NOT_FOUND */
  async get(userId: string, deviceId: string): Promise<Device> {
    if (!isStorable(deviceId)) throw noSuchDevice();
    await this.#deps.lastSeen?.flush();
    const device = await readDevice(this.#deps.database.reader<DeviceTables>(), userId, deviceId);
    if (!device) throw noSuchDevice();
    return device;
  }

  /** Whether the user has a device with this id. */
  async exists(userId: string, deviceId: string): Promise<boolean> {
    if (!isStorable(deviceId)) return false;
    return (await readDevice(this.#deps.database.reader<DeviceTables>(), userId, deviceId)) !== undefined;
  }

  /**
   * Validates the device id and name from a client, before a transaction.
   * @throws MatrixError M_INVALID_PARAM, M_TOO_LARGE
   */
  check(device: { deviceId?: string | undefined; displayName?: string | undefined }): void {
    const { deviceId, displayName } = device;
    if (deviceId !== undefined) checkId(deviceId);
    if (displayName !== undefined) checkName(displayName);
  }

  /**
   * Creates a device unless it exists, inside the caller's transaction.
   * @throws MatrixError M_FORBIDDEN for an id that no new device may have
   */
  async ensure(
    writer: AnyWriter,
    publish: Publish,
    request: DeviceRequest,
  ): Promise<{ deviceId: string; created: boolean }> {
    const { userId, displayName, dehydrated = false } = request;
    const deviceId =
      request.deviceId ?? randomLetters(this.#deps.randomness, generatedIdLength).toUpperCase();
    const devices = writerFor<DeviceTables>(writer);
    const createdAt = this.#deps.clock.now();
    const created = await insertDevice(devices, { userId, deviceId, displayName, createdAt, dehydrated });
    if (created && request.deviceId !== undefined) await this.#deps.checkNewIds?.(writer, userId, [deviceId]);
    if (created) await this.recordListChange(devices, publish, userId, { deviceIds: [deviceId] });
    return { deviceId, created };
  }

  /**
   * Creates a device without logging in, for application services.
   * @returns whether it is new
   * @throws MatrixError M_INVALID_PARAM, M_TOO_LARGE, M_FORBIDDEN
   */
  async create(request: DeviceRequest): Promise<boolean> {
    this.check(request);
    const { created } = await this.#deps.streams.write<DeviceTables, { created: boolean }>(
      (writer, publish) => this.ensure(writer, publish, request),
    );
    return created;
  }

  /**
   * Creates the devices that do not exist yet, without logging in. One transaction creates at most 1,000 devices.
   * @throws MatrixError M_INVALID_PARAM, M_FORBIDDEN
   */
  async createAll(userId: string, deviceIds: readonly string[]): Promise<void> {
    for (const deviceId of deviceIds) this.check({ deviceId });
    const createdAt = this.#deps.clock.now();
    for (let start = 0; start < deviceIds.length; start += createdAtOnce) {
      const ids = deviceIds.slice(start, start + createdAtOnce);
      await this.#deps.streams.write<DeviceTables, void>(async (writer, publish) => {
        const created = await insertDevices(writer, userId, ids, createdAt);
        if (created.length === 0) return;
        await this.#deps.checkNewIds?.(writer, userId, created);
        await this.recordListChange(writer, publish, userId, { deviceIds: created });
      });
    }
  }

  /** @throws MatrixError M_NOT_FOUND, M_TOO_LARGE, M_INVALID_PARAM */
  async rename(userId: string, deviceId: string, displayName: string): Promise<void> {
    this.check({ displayName });
    if (!isStorable(deviceId)) throw noSuchDevice();
    await this.#deps.streams.write<DeviceTables, void>(async (writer, publish) => {
      if (!(await updateDisplayName(writer, userId, deviceId, displayName))) throw noSuchDevice();
      await this.recordListChange(writer, publish, userId, { deviceIds: [deviceId] });
    });
  }

  /**
   * Refuses device ids that only other users have. Ids that no user has are accepted: their devices may have been
   * deleted.
   * @throws MatrixError M_FORBIDDEN
   */
  async checkOwner(userId: string, deviceIds: readonly string[]): Promise<void> {
    const reader = this.#deps.database.reader<DeviceTables>();
    if (await hasDeviceOfOthersOnly(reader, userId, deviceIds.filter(isStorable))) {
      throw forbidden('A device belongs to another user');
    }
  }

  /** Logs the devices out and deletes them with all their data. Unknown devices are ignored. */
  async remove(userId: string, deviceIds: readonly string[]): Promise<void> {
    await this.#deps.streams.write<DeviceTables, void>((writer, publish) =>
      this.removeIn(writer, publish, userId, deviceIds),
    );
  }

  /** `remove` inside the caller's transaction. */
  async removeIn(
    writer: AnyWriter,
    publish: Publish,
    userId: string,
    deviceIds: readonly string[],
  ): Promise<void> {
    const devices = writerFor<DeviceTables>(writer);
    const removed = await deleteDevices(devices, userId, deviceIds.filter(isStorable));
    if (removed.length === 0) return;
    for (const cleanup of this.#cleanups) await cleanup.devicesRemoved(writer, publish, userId, removed);
    await this.recordListChange(devices, publish, userId, { deviceIds: removed });
  }

  /** Deletes all devices of a user except `kept`, inside the caller's transaction. */
  async removeAllIn(
    writer: AnyWriter,
    publish: Publish,
    userId: string,
    kept?: string | undefined,
  ): Promise<void> {
    const devices = await listDevices(writerFor<DeviceTables>(writer), userId);
    const ids = devices.map((device) => device.deviceId).filter((id) => id !== kept);
    await this.removeIn(writer, publish, userId, ids);
  }

  /** The addresses that a user was active from, latest first, at most 1000. */
  async connections(userId: string): Promise<Connection[]> {
    await this.#deps.lastSeen?.flush();
    return listConnections(this.#deps.database.reader<DeviceTables>(), userId, maxConnections);
  }

  /**
   * Deletes the addresses that a user was active from, inside the caller's transaction. Also drops addresses that are
   * not on disk yet.
   * @param isErased whether the time of the last activity is deleted as well
   */
  async forgetAddresses(writer: AnyWriter, userId: string, isErased: boolean): Promise<void> {
    afterCommit(writer, () => this.#deps.lastSeen?.forget(userId, isErased));
    await deleteUserIps(writerFor<DeviceTables>(writer), userId);
    if (isErased) await eraseActivity(writerFor<DeviceTables>(writer), userId);
  }

  /**
   * Deletes devices that were not used since `before` (milliseconds since the epoch), for
   * `delete_stale_devices_after`.
   * @returns how many were deleted
   */
  async removeStale(before: number): Promise<number> {
    const { database } = this.#deps;
    for (let count = 0; ; ) {
      const stale = await staleDevices(database.reader<DeviceTables>(), before, staleBatch);
      for (const { userId, deviceId } of stale) await this.remove(userId, [deviceId]);
      count += stale.length;
      if (stale.length < staleBatch) return count;
    }
  }

  /** Returns the users whose device list was last changed at a position in `(after, upTo]`. */
  changedSince(after: number, upTo: number): Promise<string[]> {
    return usersWithLastChangeIn(this.#deps.database.reader<DeviceTables>(), after, upTo);
  }

  /**
   * Records a change of the devices or keys of a local or remote user, inside the caller's transaction, and notifies
   * clients of it. `ChangedDevices` is given for local users only: it is sent to other servers.
   */
  async recordListChange(
    anyWriter: AnyWriter,
    publish: Publish,
    userId: string,
    { deviceIds = [], crossSigning = false }: ChangedDevices = {},
  ): Promise<void> {
    const writer = writerFor<DeviceTables>(anyWriter);
    const position = publish(this.deviceListStream, { userId });
    await recordListChange(writer, userId, position);
    await addUnannounced(
      writer,
      [...deviceIds, ...(crossSigning ? [crossSigningKeys] : [])].map((deviceId) => ({
        userId,
        deviceId,
        position,
      })),
    );
  }

  /**
   * Returns users with a recorded change of their device list, in the order of their ids.
   * @param after the last user of the previous page
   */
  usersWithListChange(after: string, limit: number): Promise<string[]> {
    return usersWithChange(this.#deps.database.reader<DeviceTables>(), after, limit);
  }

  /**
   * Deletes the record of the last change of a remote user's device list, inside the caller's transaction.
   */
  deleteListChange(writer: AnyWriter, userId: string): Promise<void> {
    return deleteListChange(writerFor<DeviceTables>(writer), userId);
  }

  /** Returns the changes that must still be queued for other servers, oldest first; a device has at most one. */
  unannouncedChanges(limit: number): Promise<UnannouncedChange[]> {
    return readUnannounced(this.#deps.database.reader<DeviceTables>(), limit);
  }

  /** Deletes pending changes that have been queued for other servers, inside the caller's transaction. */
  markAnnounced(writer: AnyWriter, changes: readonly UnannouncedChange[]): Promise<void> {
    return deleteUnannounced(writerFor<DeviceTables>(writer), changes);
  }
}

function checkId(deviceId: string): void {
  if (deviceId === '' || deviceId.length > maxIdLength) {
    throw invalidParam(`A device id has between 1 and ${maxIdLength} characters`);
  }
  if (!isStorable(deviceId)) throw invalidParam('A device id must not contain U+0000');
}

/** Databases do not store U+0000, so no device has an id that contains it. */
const isStorable = (deviceId: string): boolean => !deviceId.includes('\0');

function checkName(name: string): void {
  if (name.length > maxNameLength) throw tooLarge(`A device's name has at most ${maxNameLength} characters`);
  if (name.includes('\0')) throw invalidParam("A device's name must not contain U+0000");
}

const noSuchDevice = () => notFound('No such device');
