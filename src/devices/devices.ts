import type { Clock } from '../kernel/clock.ts';
import type { Database } from '../kernel/database/index.ts';
import { type AnyWriter, writerFor } from '../kernel/database/index.ts';
import { type Randomness, randomLetters } from '../kernel/randomness.ts';
import { jsonFacts, type Publish, Stream, type StreamWriter } from '../kernel/streams/index.ts';
import { invalidParam, notFound, tooLarge } from '../protocol/index.ts';
import {
  type Connection,
  changedLists,
  type Device,
  type DeviceNames,
  deleteDevices,
  deleteListChange,
  deleteUserIps,
  deviceNames,
  insertDevice,
  listConnections,
  listDevices,
  readDevice,
  recordListChange,
  staleDevices,
  updateDisplayName,
  usersWithChange,
} from './store.ts';
import type { DeviceTables } from './tables.ts';
import {
  addUnannounced,
  crossSigningKeys,
  deleteUnannounced,
  readUnannounced,
  type UnannouncedChange,
} from './unannounced-changes.ts';

/** A user has got, renamed or lost a device, or has other keys. Users of other servers are among them. */
export interface DeviceListChange {
  readonly userId: string;
}

/** What has changed of a local user, as far as other servers have to be told. */
export interface ChangedDevices {
  /** Devices that are new or gone, or have other keys, signatures or names. */
  readonly deviceIds?: readonly string[];
  /** Whether the user has other cross-signing keys. */
  readonly crossSigning?: boolean;
}

/** Somebody who keeps things for a device, and drops them in the transaction that deletes it. */
export interface DeviceCleanup {
  /** @param deviceIds at least one */
  devicesRemoved(
    writer: AnyWriter,
    publish: Publish,
    userId: string,
    deviceIds: readonly string[],
  ): Promise<void>;
}

/** What a login asks for. */
export interface DeviceRequest {
  readonly userId: string;
  /** Made up when absent. */
  readonly deviceId: string | undefined;
  /** Given to a new device only. */
  readonly displayName: string | undefined;
  /** Nobody uses the device: it only gathers messages for the user's next one, and never becomes stale. */
  readonly dehydrated?: boolean;
}

export interface DevicesDeps {
  readonly database: Database;
  readonly streams: StreamWriter;
  readonly clock: Clock;
  readonly randomness: Randomness;
  /** What was noted of the use of devices goes to disk before they are listed. */
  readonly lastSeen?: { flush(): Promise<void> };
}

/** Characters of a name, and of an id that a client chose. */
const [longestName, longestId] = [100, 255];

/** How many addresses of a user are listed. */
const maxConnections = 1000;

/** How many stale devices are removed in one transaction. */
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

  /** All devices of a user, with when and where they were last seen. */
  async list(userId: string): Promise<Device[]> {
    await this.#deps.lastSeen?.flush();
    return listDevices(this.#deps.database.reader<DeviceTables>(), userId);
  }

  /**
   * The names of all devices of several local users: user id to device id to name. Users without devices are absent.
   * @param writer to read inside a transaction
   */
  names(userIds: readonly string[], writer?: AnyWriter): Promise<DeviceNames> {
    const reader = writer ? writerFor<DeviceTables>(writer) : this.#deps.database.reader<DeviceTables>();
    return deviceNames(reader, userIds);
  }

  /** @throws MatrixError M_NOT_FOUND */
  async get(userId: string, deviceId: string): Promise<Device> {
    if (!isPossible(deviceId)) throw noSuchDevice();
    await this.#deps.lastSeen?.flush();
    const device = await readDevice(this.#deps.database.reader<DeviceTables>(), userId, deviceId);
    if (!device) throw noSuchDevice();
    return device;
  }

  /** Checks what a client says about a device, before a transaction. Throws MatrixError M_INVALID_PARAM, M_TOO_LARGE. */
  check(device: { deviceId?: string | undefined; displayName?: string | undefined }): void {
    const { deviceId, displayName } = device;
    if (deviceId !== undefined) checkId(deviceId);
    if (displayName !== undefined) checkName(displayName);
  }

  /** Makes a device unless it is there already, inside the caller's transaction. */
  async ensure(
    writer: AnyWriter,
    publish: Publish,
    request: DeviceRequest,
  ): Promise<{ deviceId: string; created: boolean }> {
    const { userId, displayName, dehydrated = false } = request;
    const deviceId = request.deviceId ?? randomLetters(this.#deps.randomness, 10).toUpperCase();
    const devices = writerFor<DeviceTables>(writer);
    const createdAt = this.#deps.clock.now();
    const created = await insertDevice(devices, { userId, deviceId, displayName, createdAt, dehydrated });
    if (created) await this.recordListChange(devices, publish, userId, { deviceIds: [deviceId] });
    return { deviceId, created };
  }

  /** Makes a device without logging in: for application services. @returns whether it is new */
  async create(request: DeviceRequest): Promise<boolean> {
    this.check(request);
    const { created } = await this.#deps.streams.write<DeviceTables, { created: boolean }>(
      (writer, publish) => this.ensure(writer, publish, request),
    );
    return created;
  }

  /** @throws MatrixError M_NOT_FOUND, M_TOO_LARGE, M_INVALID_PARAM */
  async rename(userId: string, deviceId: string, displayName: string): Promise<void> {
    this.check({ displayName });
    if (!isPossible(deviceId)) throw noSuchDevice();
    await this.#deps.streams.write<DeviceTables, void>(async (writer, publish) => {
      if (!(await updateDisplayName(writer, userId, deviceId, displayName))) throw noSuchDevice();
      await this.recordListChange(writer, publish, userId, { deviceIds: [deviceId] });
    });
  }

  /** Logs the devices out and deletes them with everything that is kept for them. Unknown ones are passed over. */
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
    const removed = await deleteDevices(devices, userId, deviceIds.filter(isPossible));
    if (removed.length === 0) return;
    for (const cleanup of this.#cleanups) await cleanup.devicesRemoved(writer, publish, userId, removed);
    await this.recordListChange(devices, publish, userId, { deviceIds: removed });
  }

  /** Removes all of a user's devices but `kept`, inside the caller's transaction. */
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

  /** Where a user was seen, the latest 1000 at most, the latest first. */
  connections(userId: string): Promise<Connection[]> {
    return listConnections(this.#deps.database.reader<DeviceTables>(), userId, maxConnections);
  }

  /** Forgets the addresses that a user was seen at, inside the caller's transaction. */
  forgetAddresses(writer: AnyWriter, userId: string): Promise<void> {
    return deleteUserIps(writerFor<DeviceTables>(writer), userId);
  }

  /**
   * Removes devices that were not used since `before` (milliseconds since the epoch); for
   * `delete_stale_devices_after`.
   * @returns how many there were
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

  /** Users whose device list changed last in `(after, upTo]`. */
  changedSince(after: number, upTo: number): Promise<string[]> {
    return changedLists(this.#deps.database.reader<DeviceTables>(), after, upTo);
  }

  /**
   * Notes that the devices of a user or the keys that belong to them have changed, inside the caller's transaction.
   * Clients are told of users of this and other servers; what is said of the change is for other servers.
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

  /** Users of whom it is known when their list changed last, by id. @param after the last one of the page before */
  usersWithListChange(after: string, limit: number): Promise<string[]> {
    return usersWithChange(this.#deps.database.reader<DeviceTables>(), after, limit);
  }

  /** Forgets when the list of a user of another server changed last, inside the caller's transaction. */
  deleteListChange(writer: AnyWriter, userId: string): Promise<void> {
    return deleteListChange(writerFor<DeviceTables>(writer), userId);
  }

  /** The changes that other servers have not been told of, the oldest first; several of a device are one. */
  unannouncedChanges(limit: number): Promise<UnannouncedChange[]> {
    return readUnannounced(this.#deps.database.reader<DeviceTables>(), limit);
  }

  /** Other servers have been told, or will be: those changes go, inside the caller's transaction. */
  markAnnounced(writer: AnyWriter, changes: readonly UnannouncedChange[]): Promise<void> {
    return deleteUnannounced(writerFor<DeviceTables>(writer), changes);
  }
}

function checkId(deviceId: string): void {
  if (deviceId === '' || deviceId.length > longestId) {
    throw invalidParam(`A device id has between 1 and ${longestId} characters`);
  }
  if (!isPossible(deviceId)) throw invalidParam('A device id must not hold U+0000');
}

/** Databases do not take U+0000, so no device has an id that holds it. */
const isPossible = (deviceId: string): boolean => !deviceId.includes('\0');

function checkName(name: string): void {
  if (name.length > longestName) throw tooLarge(`A device's name has at most ${longestName} characters`);
  if (name.includes('\0')) throw invalidParam("A device's name must not hold U+0000");
}

const noSuchDevice = () => notFound('No such device');
