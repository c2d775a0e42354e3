import { hash } from 'node:crypto';
import { RecentlyUsed } from '../../kernel/caches/index.ts';
import type { Reader } from '../../kernel/database/index.ts';
import type { RoomFact, SentTransaction, StoredEvent } from '../stored-event.ts';
import type { RoomTables } from '../tables.ts';

/** How many devices' transaction ids are kept in memory, and how many of each. */
const [devicesInMemory, idsPerDevice] = [10_000, 1_000];

/** What a device has sent: by transaction id, and back. */
interface DeviceTransactions {
  readonly byTxnId: Map<string, number | Promise<StoredEvent>>;
  readonly byEvent: Map<number, string>;
}

/** What rendering events for their senders takes. */
export type TransactionReader = Pick<TransactionIds, 'peek' | 'prepare'>;

/**
 * Which event came of which transaction, so that a repeated request does not send again, also after a restart, and
 * so that a device recognises its own events in sync.
 * Source: client-server API, "Transaction identifiers".
 */
export class TransactionIds {
  readonly #reader: Reader<RoomTables>;
  readonly #devices = new RecentlyUsed<number, DeviceTransactions>({ max: devicesInMemory });

  constructor(reader: Reader<RoomTables>) {
    this.#reader = reader;
  }

  /**
   * Runs `send` unless this device has sent with this id before.
   * @param path what the request addresses besides the transaction: ids are unique within it only
   * @returns the event, or the nid of the one that was sent before
   */
  async once(
    scope: number,
    path: string,
    txnId: string,
    send: (transaction: SentTransaction) => Promise<StoredEvent>,
  ): Promise<StoredEvent | number> {
    const device = this.#devices.get(scope) ?? (await this.#load(scope));
    const key = pathPrefix(path) + txnId;
    const earlier = device.byTxnId.get(key);
    if (earlier !== undefined) return earlier;
    const sending = send({ scope, txnId: key });
    device.byTxnId.set(key, sending);
    try {
      const stored = await sending;
      this.#remember(device, key, stored.nid);
      return stored;
    } catch (error) {
      device.byTxnId.delete(key);
      throw error;
    }
  }

  /** Takes a fact of the process that writes. */
  follow({ stored, transaction }: RoomFact): void {
    const device = transaction && this.#devices.peek(transaction.scope);
    if (device) this.#remember(device, transaction.txnId, stored.nid);
  }

  /** The transaction id with which the device sent an event; call `prepare` before. */
  peek(scope: number, eventNid: number): string | undefined {
    return this.#devices.get(scope)?.byEvent.get(eventNid)?.slice(pathPrefixLength);
  }

  /** Brings the transactions of a device into memory, for `peek`. */
  async prepare(scope: number): Promise<void> {
    if (!this.#devices.has(scope)) await this.#load(scope);
  }

  async #load(scope: number): Promise<DeviceTransactions> {
    const rows = await this.#reader
      .selectFrom('event_transactions')
      .select(['event_nid', 'txn_id'])
      .where('scope', '=', scope)
      .orderBy('event_nid', 'desc')
      .limit(idsPerDevice)
      .execute();
    const raced = this.#devices.get(scope);
    if (raced) return raced;
    const device: DeviceTransactions = { byTxnId: new Map(), byEvent: new Map() };
    for (const row of rows.reverse()) this.#remember(device, row.txn_id, row.event_nid);
    this.#devices.set(scope, device);
    return device;
  }

  #remember(device: DeviceTransactions, txnId: string, eventNid: number): void {
    device.byTxnId.set(txnId, eventNid);
    device.byEvent.set(eventNid, txnId);
    if (device.byEvent.size <= idsPerDevice) return;
    const [oldest] = device.byEvent;
    if (!oldest) return;
    device.byEvent.delete(oldest[0]);
    device.byTxnId.delete(oldest[1]);
  }
}

/** Characters of a `pathMark`. */
const pathPrefixLength = 4;

/** Tells the paths of requests apart in few bytes; it stands in front of the transaction id. */
function pathPrefix(path: string): string {
  return hash('sha256', path, 'base64url').slice(0, pathPrefixLength);
}

/**
 * Stands for a device in the transactions of events that were delayed; the id of a transaction is then that of the
 * delay. Source: MSC4140.
 */
export const delayedEventsDevice = 'org.matrix.msc4140';

/** A 52-bit number for a user and device, so that a row needs 7 bytes for them instead of 40. */
export function transactionScope(userId: string, deviceId: string | undefined): number {
  const digest = hash('sha256', `${userId}\0${deviceId ?? ''}`, 'hex');
  return Number.parseInt(digest.slice(0, 13), 16);
}
