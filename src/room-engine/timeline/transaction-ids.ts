import { hash } from 'node:crypto';
import { type Cache, type CacheRegistry, MiB } from '../../kernel/caches/index.ts';
import type { Reader } from '../../kernel/database/index.ts';
import { LoadOnce } from '../../kernel/load-once.ts';
import type { RoomFact, SentTransaction, StoredEvent } from '../stored-event.ts';
import type { RoomTables } from '../tables.ts';

/** Maximum number of devices whose transaction ids are cached. */
const maxDevices = 10_000;
/** Maximum number of cached transaction ids of a device. */
const maxIdsPerDevice = 1_000;

/** Estimated bytes of a transaction id that is cached in both directions. */
const bytesPerId = 200;

/** The events that a device has sent. A key is the `pathHash` of the request, followed by the transaction id. */
interface DeviceTransactions {
  /** nids of events, or sends that have not ended, by key. */
  readonly byKey: Map<string, number | Promise<StoredEvent>>;
  /** Keys by event nid. */
  readonly byEvent: Map<number, string>;
}

/** The methods that are needed to render events for their senders. */
export type TransactionReader = Pick<TransactionIds, 'peek' | 'prepare' | 'hasAny'>;

/**
 * Deduplicates requests by transaction id, also after a restart, and returns the transaction ids of a
 * device's own events for sync. A `scope` is the number of a user's device (`transactionScope`).
 * Source: client-server API, "Transaction identifiers".
 */
export class TransactionIds {
  readonly #reader: Reader<RoomTables>;
  readonly #devices: Cache<number, DeviceTransactions>;
  readonly #loading = new LoadOnce<number, DeviceTransactions>();

  constructor(reader: Reader<RoomTables>, caches: CacheRegistry) {
    this.#reader = reader;
    this.#devices = caches.create('transaction_ids', {
      size: maxDevices,
      maxBytes: 16 * MiB,
      sizeOf: ({ byEvent }) => 400 + bytesPerId * byEvent.size,
    });
  }

  /**
   * Runs `send` unless this device has sent an event with this transaction id before.
   * @param path the request path without the transaction id: a transaction id is unique only within one path
   * @returns the event, or the nid of the event that was sent before
   */
  async once(
    scope: number,
    path: string,
    txnId: string,
    send: (transaction: SentTransaction) => Promise<StoredEvent>,
  ): Promise<StoredEvent | number> {
    const device = this.#devices.get(scope) ?? (await this.#load(scope));
    const key = pathHash(path) + txnId;
    const earlier = device.byKey.get(key);
    if (earlier !== undefined) return earlier;
    const sending = send({ scope, txnId: key });
    device.byKey.set(key, sending);
    try {
      const stored = await sending;
      this.#remember(device, key, stored.nid);
      this.#devices.remeasure(scope);
      return stored;
    } catch (error) {
      device.byKey.delete(key);
      throw error;
    }
  }

  /** Whether this device has sent, or is sending, an event with the transaction id. Parameters are those of `once`. */
  async has(scope: number, path: string, txnId: string): Promise<boolean> {
    const device = this.#devices.get(scope) ?? (await this.#load(scope));
    return device.byKey.has(pathHash(path) + txnId);
  }

  /** Adds the transaction of a fact of the main process to the cache. */
  follow({ stored, transaction }: RoomFact): void {
    const device = transaction && this.#devices.peek(transaction.scope);
    if (!device) return;
    this.#remember(device, transaction.txnId, stored.nid);
    this.#devices.remeasure(transaction.scope);
  }

  /** Returns the device's transaction id of an event that it sent; call `prepare` before. */
  peek(scope: number, eventNid: number): string | undefined {
    return this.#devices.get(scope)?.byEvent.get(eventNid)?.slice(pathHashLength);
  }

  /** Returns whether transactions of the device are cached; call `prepare` before. */
  hasAny(scope: number): boolean {
    return (this.#devices.get(scope)?.byEvent.size ?? 0) > 0;
  }

  /** Caches the transactions of a device, for `peek`. Returns a promise only if they are not cached yet. */
  prepare(scope: number): unknown | Promise<unknown> {
    return this.#devices.has(scope) ? undefined : this.#load(scope);
  }

  /**
   * Loads the transactions of a device; simultaneous callers, for instance for the rooms of a sync, share one query.
   */
  #load(scope: number): Promise<DeviceTransactions> {
    return this.#loading.run(scope, () => this.#read(scope));
  }

  async #read(scope: number): Promise<DeviceTransactions> {
    const rows = await this.#reader
      .selectFrom('event_transactions')
      .select(['event_nid', 'txn_id'])
      .where('scope', '=', scope)
      .orderBy('event_nid', 'desc')
      .limit(maxIdsPerDevice)
      .execute();
    const loadedMeanwhile = this.#devices.get(scope);
    if (loadedMeanwhile) return loadedMeanwhile;
    const device: DeviceTransactions = { byKey: new Map(), byEvent: new Map() };
    for (const row of rows.reverse()) this.#remember(device, row.txn_id, row.event_nid);
    this.#devices.set(scope, device);
    return device;
  }

  #remember(device: DeviceTransactions, key: string, eventNid: number): void {
    device.byKey.set(key, eventNid);
    device.byEvent.set(eventNid, key);
    if (device.byEvent.size <= maxIdsPerDevice) return;
    const [oldest] = device.byEvent;
    if (!oldest) return;
    device.byEvent.delete(oldest[0]);
    device.byKey.delete(oldest[1]);
  }
}

/** Number of characters of a path hash. */
const pathHashLength = 4;

/** Returns a short hash of a request path. It precedes the transaction id in the database. */
function pathHash(path: string): string {
  return hash('sha256', path, 'base64url').slice(0, pathHashLength);
}

/**
 * The pretended device id that `transactionScope` receives for delayed events, whose transaction id is the delay id.
 * Source: MSC4140.
 */
export const delayedEventsDevice = 'org.matrix.msc4140';

/** Returns a 52-bit number for a user and device, so that a row needs 7 bytes instead of 40. */
export function transactionScope(userId: string, deviceId: string | undefined): number {
  const digest = hash('sha256', `${userId}\0${deviceId ?? ''}`, 'hex');
  return Number.parseInt(digest.slice(0, 13), 16);
}
