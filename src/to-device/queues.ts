import { type Cache, type CacheRegistry, MiB } from '../kernel/caches/index.ts';
import { type AnyWriter, afterCommit, type Database, writerFor } from '../kernel/database/index.ts';
import { jsonFacts, type Publish, Stream } from '../kernel/streams/index.ts';
import {
  deleteAllButNewest,
  deleteUpTo,
  insertMessages,
  oldestPosition,
  readAddresses,
  readMessages,
  type StoredMessage,
} from './store.ts';
import { syncBatchSize } from './sync-batch.ts';
import type { ToDeviceTables } from './tables.ts';

/** Identifies a device. */
export interface DeviceAddress {
  readonly userId: string;
  readonly deviceId: string;
}

/** A message in the queue of a device. */
export interface QueuedMessage extends DeviceAddress {
  /** `{sender, type, content}` as JSON. */
  readonly message: string;
}

/** The next messages of a device. */
export interface PendingMessages {
  /** Each message as JSON, in the order of arrival. */
  readonly messages: readonly string[];
  /** The queue has no messages between the last of `messages` and this position. Acknowledge at most this position. */
  readonly position: number;
}

/**
 * Maximum number of queued messages of a device. The oldest messages above it are deleted: a client that was away for
 * so long receives room keys from its backup.
 */
const maxQueueLength = 10_000;

/** Number of messages between two checks of the maximum. A queue may exceed the maximum by this number. */
const checkEvery = 256;

/** Capacity of the caches of devices with empty queues and of message counts. */
const cachedDevices = 50_000;

const keyOf = ({ userId, deviceId }: DeviceAddress) => `${userId} ${deviceId}`;

/**
 * Queues messages for each device until the device acknowledges them.
 * Source: client-server API, "Send-to-Device messaging".
 */
export class MessageQueues {
  readonly toDeviceStream = new Stream<DeviceAddress>('to_device', jsonFacts());
  readonly #database: Database;
  /** The devices whose queues are known to be empty, by `keyOf`. */
  readonly #empty: Cache<string, true>;
  /** Number of messages that were added to a queue since its length was last checked. */
  readonly #added: Cache<string, number>;
  /** Counts appends to any queue. When it changes during a query, the result "empty" may be outdated. */
  #appends = 0;
  readonly #bounds: { maxQueueLength: number; checkEvery: number };

  /** @param bounds other than the defaults only in tests */
  constructor(database: Database, caches: CacheRegistry, bounds = { maxQueueLength, checkEvery }) {
    this.#empty = caches.create('empty_to_device_queues', { size: cachedDevices, maxBytes: 6 * MiB });
    // `fixed`: entries do not expire, and cache factors do not shrink the cache, because the cached numbers decide when
    // the length of a queue is checked.
    this.#added = caches.create('to_device_message_counts', {
      size: cachedDevices,
      maxBytes: 4 * MiB,
      fixed: true,
    });
    this.#database = database;
    this.#bounds = bounds;
    // A reader process learns of new messages by their facts.
    this.toDeviceStream.subscribe((device) => this.#appended([device]));
  }

  /** Queues messages inside the caller's transaction, in their order and each at its own position. */
  async appendIn(writer: AnyWriter, publish: Publish, messages: readonly QueuedMessage[]): Promise<void> {
    const rows: StoredMessage[] = messages.map((message) => {
      const { userId, deviceId } = message;
      return { ...message, position: publish(this.toDeviceStream, { userId, deviceId }) };
    });
    const queues = writerFor<ToDeviceTables>(writer);
    await insertMessages(queues, rows);
    const byDevice = Map.groupBy(messages, keyOf);
    const keysToCheck = new Set([...byDevice.keys()].filter((key) => this.#isDue(key, byDevice)));
    for (const key of keysToCheck) {
      const { userId, deviceId } = byDevice.get(key)![0]!;
      await deleteAllButNewest(queues, userId, deviceId, this.#bounds.maxQueueLength);
    }
    // Counted after the commit, because the transaction may be repeated or rolled back.
    afterCommit(writer, () => {
      for (const [key, { length }] of byDevice)
        this.#added.set(key, keysToCheck.has(key) ? 0 : (this.#added.get(key) ?? 0) + length);
      this.#appended(messages);
    });
  }

  /** Records that the queues of devices are not empty. */
  #appended(messages: readonly DeviceAddress[]): void {
    this.#appends++;
    for (const message of messages) this.#empty.delete(keyOf(message));
  }

  /**
   * Returns the oldest messages of a device in `(after, upTo]`. Needs no query when the queue is known to be
   * empty.
   */
  async pending(
    userId: string,
    deviceId: string,
    { after = 0, upTo, limit }: { after?: number; upTo: number; limit: number },
  ): Promise<PendingMessages> {
    const rows = await this.#read({ userId, deviceId }, { after, upTo, limit });
    return { messages: rows.map(({ message }) => message), position: endOf(rows, limit) ?? upTo };
  }

  /**
   * Returns the messages for one sync response: like `pending`, but possibly fewer messages if the queue is short (see
   * `syncBatchSize`).
   */
  async forSync(
    userId: string,
    deviceId: string,
    { after = 0, upTo, limit }: { after?: number; upTo: number; limit: number },
  ): Promise<PendingMessages> {
    const rows = await this.#read({ userId, deviceId }, { after, upTo, limit });
    const messages = rows.map(({ message }) => message);
    const count = syncBatchSize(messages);
    const end = count < rows.length ? rows[count - 1]?.position : endOf(rows, limit);
    return { messages: messages.slice(0, count), position: end ?? upTo };
  }

  /** Returns the addresses and positions of messages that arrived in `(after, upTo]` and are still queued, in order. */
  addressesBetween(after: number, upTo: number): Promise<(DeviceAddress & { readonly position: number })[]> {
    return readAddresses(this.#database.reader<ToDeviceTables>(), after, upTo);
  }

  /** Whether the queue is known to be empty, without a query; false when this is not known. */
  isEmptyNow(device: DeviceAddress): boolean {
    return this.#empty.has(keyOf(device));
  }

  /** Deletes the messages up to `position`, because the device has received them. */
  async acknowledge(userId: string, deviceId: string, position: number): Promise<void> {
    if (await this.#isEmpty({ userId, deviceId })) return;
    const oldest = await oldestPosition(this.#database.reader<ToDeviceTables>(), userId, deviceId);
    if (oldest === undefined || oldest > position) return;
    await this.#database.transaction<ToDeviceTables, void>((writer) =>
      deleteUpTo(writer, userId, deviceId, position),
    );
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
    const appends = this.#appends;
    const reader = this.#database.reader<ToDeviceTables>();
    if ((await oldestPosition(reader, device.userId, device.deviceId)) !== undefined) return false;
    if (appends === this.#appends) this.#empty.set(key, true);
    return true;
  }

  /** Whether the length of a queue must be checked when the messages of its device have been added. */
  #isDue(key: string, byDevice: ReadonlyMap<string, readonly unknown[]>): boolean {
    const added = (this.#added.get(key) ?? 0) + (byDevice.get(key)?.length ?? 0);
    return added >= this.#bounds.checkEvery;
  }
}

/** Returns the position of the last row of a full page; `undefined` for a page that is not full. */
const endOf = (rows: readonly { position: number }[], limit: number) =>
  rows.length < limit ? undefined : rows.at(-1)?.position;
