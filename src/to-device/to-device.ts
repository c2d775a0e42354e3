import { createHash } from 'node:crypto';
import type { Devices } from '../devices/index.ts';
import type { Cache, CacheRegistry } from '../kernel/caches/index.ts';
import type { Clock } from '../kernel/clock.ts';
import { type AnyWriter, afterCommit, type Writer } from '../kernel/database/index.ts';
import type { Publish, StreamWriter } from '../kernel/streams/index.ts';
import { serverOfUser, tooLarge } from '../protocol/index.ts';
import { allDevices, checkNameLength, type MessageMap, messageText } from './message-map.ts';
import type { MessageQueues, QueuedMessage } from './queues.ts';
import { deleteAllButNewestTransactions, deleteTransactionsBefore, insertTransaction } from './store.ts';
import type { ToDeviceTables } from './tables.ts';

/** Messages of one type from one sender. */
export interface OutgoingMessages {
  readonly sender: string;
  /**
   * The scope of the transaction id: a device of a local user, or without a device id, another server or a user of an
   * application service.
   */
  readonly origin: { readonly name: string; readonly deviceId: string | undefined };
  /** A repeated request with this id sends nothing. */
  readonly txnId: string;
  readonly type: string;
  readonly messages: MessageMap;
}

/** Sends messages to other servers. Declared here, implemented by the federation slice. */
export interface RemoteDelivery {
  /**
   * Queues messages for users of other servers inside the caller's transaction.
   * @param messageId unique for the sender
   */
  enqueue(
    writer: AnyWriter,
    publish: Publish,
    message: { sender: string; type: string; messageId: string; messages: MessageMap },
  ): Promise<void>;
}

export interface ToDeviceDeps {
  readonly caches: CacheRegistry;
  readonly streams: StreamWriter;
  readonly clock: Clock;
  readonly devices: Devices;
  readonly queues: MessageQueues;
  readonly serverName: string;
  /** Delivers messages to remote users; when absent, these messages are dropped. */
  readonly remote?: RemoteDelivery;
}

/** Maximum number of messages that one request queues; a wildcard can address many devices. */
const maxMessages = 10_000;

/** Maximum number of UTF-16 units of the JSON of all messages of one request. */
const maxTextLength = 32 * 1024 * 1024;

/** Milliseconds that transaction ids are stored. */
const retention = 24 * 3_600_000;

/** Milliseconds between deletions of old transaction ids. */
const cleanupInterval = 3_600_000;

/** Maximum number of stored transactions of an origin without a device id. */
const maxTransactions = 20_000;

/** Number of transactions of an origin without a device id between two checks of `maxTransactions`. */
const checkEvery = 1_000;

/** Maximum number of origins whose numbers of transactions are in memory. */
const maxCachedOrigins = 10_000;

/** Sends messages to devices. Source: client-server API, "Send-to-Device messaging". */
export class ToDevice {
  readonly #deps: ToDeviceDeps;
  #cleanedUpAt = 0;
  /**
   * Number of transactions of each origin without a device id since its stored transactions were last checked, by the
   * name of the origin.
   */
  readonly #transactionCounts: Cache<string, number>;

  constructor(deps: ToDeviceDeps) {
    this.#deps = deps;
    // `fixed`: entries do not expire, and cache factors do not shrink the cache, because a lost number would delay the
    // check of an origin.
    this.#transactionCounts = deps.caches.create('to_device_transaction_counts', {
      size: maxCachedOrigins,
      fixed: true,
    });
  }

  /**
   * Sends messages; resolves when all are committed. Messages to devices that do not exist are dropped.
   * @returns the number of messages that were queued for local devices; 0 for a repeated request
   * @throws MatrixError M_INVALID_PARAM, M_TOO_LARGE
   */
  async send(outgoing: OutgoingMessages): Promise<number> {
    const { sender, origin, txnId, type } = outgoing;
    checkNameLength(type, 'The message type');
    checkNameLength(txnId, 'The transaction id');
    const digest = createHash('sha256')
      .update(JSON.stringify([type, txnId, sender]))
      .digest('base64url');
    const transaction = { origin: origin.name, deviceId: origin.deviceId ?? '', digest };
    const now = this.#deps.clock.now();
    const queued = await this.#deps.streams.write<ToDeviceTables, number>(async (writer, publish) => {
      if (!(await insertTransaction(writer, transaction, now))) return 0;
      if (origin.deviceId === undefined) await this.#boundTransactions(writer, origin.name);
      return this.#sendIn(writer, publish, outgoing, digest);
    });
    await this.#deleteOldTransactions(now);
    return queued;
  }

  /** @returns the number of messages that were queued for local devices */
  async #sendIn(
    writer: Writer<ToDeviceTables>,
    publish: Publish,
    { sender, origin, type, messages }: OutgoingMessages,
    digest: string,
  ): Promise<number> {
    const { devices, queues, serverName, remote } = this.#deps;
    const [local, remoteMessages] = splitByServer(messages, serverName);
    const devicesByUser = await devices.names([...local.keys()], writer);
    const batch: Batch = { queued: [], length: 0 };
    for (const [userId, contents] of local) {
      const deviceIds = devicesByUser.get(userId)?.keys() ?? [];
      const texts = new Map(
        [...contents].map(([deviceId, content]) => [deviceId, messageText(sender, type, content)]),
      );
      for (const deviceId of deviceIds) {
        const message = texts.get(deviceId) ?? texts.get(allDevices);
        if (message !== undefined) addToBatch(batch, { userId, deviceId, message });
      }
    }
    await queues.appendIn(writer, publish, batch.queued);
    const queuedCount = batch.queued.length;
    if (remoteMessages.size === 0) return queuedCount;
    // The batch also counts the messages for remote users, because the limits apply to all messages together.
    for (const [userId, contents] of remoteMessages) {
      for (const [deviceId, content] of contents) {
        addToBatch(batch, { userId, deviceId, message: messageText(sender, type, content) });
      }
    }
    const messageId = createHash('sha256')
      .update(JSON.stringify([origin.deviceId, digest]))
      .digest('base64url');
    await remote?.enqueue(writer, publish, { sender, type, messageId, messages: remoteMessages });
    return queuedCount;
  }

  /**
   * Counts a transaction of an origin without a device id when it is committed. Once per `checkEvery` transactions,
   * deletes the surplus of the stored transactions of the origin.
   */
  async #boundTransactions(writer: Writer<ToDeviceTables>, origin: string): Promise<void> {
    const sent = (this.#transactionCounts.get(origin) ?? 0) + 1;
    const isDue = sent >= checkEvery;
    if (isDue) await deleteAllButNewestTransactions(writer, origin, maxTransactions);
    afterCommit(writer, () => this.#transactionCounts.set(origin, isDue ? 0 : sent));
  }

  async #deleteOldTransactions(now: number): Promise<void> {
    if (now - this.#cleanedUpAt < cleanupInterval) return;
    this.#cleanedUpAt = now;
    await this.#deps.streams.write<ToDeviceTables, void>((writer) =>
      deleteTransactionsBefore(writer, now - retention),
    );
  }
}

/** Splits messages into the messages for local users and the messages for remote users. */
function splitByServer(
  messages: MessageMap,
  serverName: string,
): [local: MessageMap, remoteMessages: MessageMap] {
  const isLocal = (userId: string) => serverOfUser(userId) === serverName;
  const entries = [...messages];
  return [
    new Map(entries.filter(([userId]) => isLocal(userId))),
    new Map(entries.filter(([userId]) => !isLocal(userId))),
  ];
}

interface Batch {
  readonly queued: QueuedMessage[];
  /** Characters of the messages. */
  length: number;
}

function addToBatch(batch: Batch, message: QueuedMessage): void {
  batch.queued.push(message);
  batch.length += message.message.length;
  if (batch.queued.length > maxMessages || batch.length > maxTextLength) {
    throw tooLarge('The request sends too many or too large messages');
  }
}
