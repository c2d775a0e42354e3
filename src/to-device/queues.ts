import type { DeviceCleanup } from '../devices/index.ts';
import { RecentlyUsed } from '../kernel/caches/index.ts';
import { type AnyWriter, afterCommit, type Database, writerFor } from '../kernel/database/index.ts';
import { jsonFacts, type Publish, Stream } from '../kernel/streams/index.ts';
import {
  deleteAllButNewest,
  deleteDevices,
  deleteUpTo,
  insertMessages,
  oldestPosition,
  readMessages,
  type StoredMessage,
} from './store.ts';
import { syncBatchSize } from './sync-batch.ts';
import type { ToDeviceTables } from './tables.ts';

/** A device whose queue has grown. */
export interface DeviceAddress {
  readonly userId: string;
  readonly deviceId: string;
}

/** A message for one device. */
export interface QueuedMessage extends DeviceAddress {
  /** `{sender, type, content}` as JSON. */
  readonly message: string;
}

/** The next messages of a device. */
export interface PendingMessages {
  /** Each as JSON, in the order of arrival. */
  readonly messages: readonly string[];
  /** There are no others up to this position. Acknowledge nothing beyond it. */
  readonly position: number;
}

/**
 * Messages that a device may leave waiting. With more, the oldest go: a client that was away for so long gets its
 * keys from the backup. Checked once in `checkEvery` messages, so that a queue may be longer by that many.
 */
const [longestQueue, checkEvery] = [10_000, 256];

/** Of how many devices it is known that they have no messages, or how many they got lately. */
const devicesInMemory = 100_000;

const keyOf = ({ userId, deviceId }: DeviceAddress) => `${userId} ${deviceId}`;

/**
 * The messages that wait for each device until it has acknowledged them.
 * Source: client-server API, "Send-to-Device messaging".
 */
export class MessageQueues implements DeviceCleanup {
  readonly toDeviceStream = new Stream<DeviceAddress>('to_device', jsonFacts());
  readonly #database: Database;
  readonly #empty = new RecentlyUsed<string, true>({ max: devicesInMemory });
  /** Messages since the length of the queue was checked. */
  readonly #added = new RecentlyUsed<string, number>({ max: devicesInMemory });
  /** How often any queue has grown: who looked before must not conclude anything after. */
  #growth = 0;
  readonly #bounds: { longestQueue: number; checkEvery: number };

  /** @param bounds for tests */
  constructor(database: Database, bounds = { longestQueue, checkEvery }) {
    this.#database = database;
    this.#bounds = bounds;
  }

  /** Queues messages inside the caller's transaction, each at a position of its own, in their order. */
  async appendIn(writer: AnyWriter, publish: Publish, messages: readonly QueuedMessage[]): Promise<void> {
    const rows: StoredMessage[] = messages.map((message) => {
      const { userId, deviceId } = message;
      return { ...message, position: publish(this.toDeviceStream, { userId, deviceId }) };
    });
    const queues = writerFor<ToDeviceTables>(writer);
    await insertMessages(queues, rows);
    for (const { userId, deviceId } of messages.filter((message) => this.#isDue(message))) {
      await deleteAllButNewest(queues, userId, deviceId, this.#bounds.longestQueue);
    }
    afterCommit(writer, () => {
      this.#growth++;
      for (const message of messages) this.#empty.delete(keyOf(message));
    });
  }

  /** The oldest messages of a device in `(after, upTo]`. Costs no query when the device is known to have none. */
  async pending(
    userId: string,
    deviceId: string,
    { after = 0, upTo, limit }: { after?: number; upTo: number; limit: number },
  ): Promise<PendingMessages> {
    const rows = await this.#read({ userId, deviceId }, { after, upTo, limit });
    return { messages: rows.map(({ message }) => message), position: endOf(rows, limit) ?? upTo };
  }

  /**
   * `pending` as a sync hands it out: of a few messages it may hold back some, which the next sync gets. See
   * `goTogether`.
   */
  async forSync(
    userId: string,
    deviceId: string,
    { after = 0, upTo, limit }: { after?: number; upTo: number; limit: number },
  ): Promise<PendingMessages> {
    const rows = await this.#read({ userId, deviceId }, { after, upTo, limit });
    const messages = rows.map(({ message }) => message);
    const together = syncBatchSize(messages);
    const end = together < rows.length ? rows[together - 1]?.position : endOf(rows, limit);
    return { messages: messages.slice(0, together), position: end ?? upTo };
  }

  /** Whether it is known, without a query, that the device has no messages. */
  isEmptyNow(device: DeviceAddress): boolean {
    return this.#empty.has(keyOf(device));
  }

  /** The device has got everything up to `position`: those messages go. */
  async acknowledge(userId: string, deviceId: string, position: number): Promise<void> {
    if (await this.#isEmpty({ userId, deviceId })) return;
    const oldest = await oldestPosition(this.#database.reader<ToDeviceTables>(), userId, deviceId);
    if (oldest === undefined || oldest > position) return;
    await this.#database.transaction<ToDeviceTables, void>((writer) =>
      deleteUpTo(writer, userId, deviceId, position),
    );
  }

  async devicesRemoved(
    writer: AnyWriter,
    _publish: Publish,
    userId: string,
    deviceIds: readonly string[],
  ): Promise<void> {
    await deleteDevices(writerFor<ToDeviceTables>(writer), userId, deviceIds);
  }

  async #read(
    device: DeviceAddress,
    range: { after: number; upTo: number; limit: number },
  ): Promise<{ position: number; message: string }[]> {
    if (await this.#isEmpty(device)) return [];
    const { userId, deviceId } = device;
    return readMessages(this.#database.reader<ToDeviceTables>(), userId, deviceId, range);
  }

  async #isEmpty(device: DeviceAddress): Promise<boolean> {
    const key = keyOf(device);
    if (this.#empty.has(key)) return true;
    const growth = this.#growth;
    const reader = this.#database.reader<ToDeviceTables>();
    if ((await oldestPosition(reader, device.userId, device.deviceId)) !== undefined) return false;
    if (growth === this.#growth) this.#empty.set(key, true);
    return true;
  }

  #isDue(device: DeviceAddress): boolean {
    const key = keyOf(device);
    const added = (this.#added.get(key) ?? 0) + 1;
    const due = added >= this.#bounds.checkEvery;
    this.#added.set(key, due ? 0 : added);
    return due;
  }
}

/** Where the last row of a full page is; `undefined` when there are no more rows. */
const endOf = (rows: readonly { position: number }[], limit: number) =>
  rows.length < limit ? undefined : rows.at(-1)?.position;
