import { createHash } from 'node:crypto';
import type { Devices } from '../devices/index.ts';
import { RecentlyUsed } from '../kernel/caches/index.ts';
import type { Clock } from '../kernel/clock.ts';
import type { AnyWriter, Writer } from '../kernel/database/index.ts';
import type { Publish, StreamWriter } from '../kernel/streams/index.ts';
import { serverOfUser, tooLarge } from '../protocol/index.ts';
import { allDevices, checkNameLength, type MessageMap, messageText } from './message-map.ts';
import type { MessageQueues, QueuedMessage } from './queues.ts';
import { deleteAllButNewestTransactions, deleteTransactionsBefore, insertTransaction } from './store.ts';
import type { ToDeviceTables } from './tables.ts';

/** Messages of one type from one sender. */
export interface OutgoingMessages {
  readonly sender: string;
  /** Whose transaction ids these are: a device of this server, or another server. */
  readonly origin: { readonly name: string; readonly deviceId: string | undefined };
  /** Sent with this id before, they are not sent again. */
  readonly txnId: string;
  readonly type: string;
  readonly messages: MessageMap;
}

/** Takes messages to other servers; declared here, supplied by the federation at composition. */
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
  readonly streams: StreamWriter;
  readonly clock: Clock;
  readonly devices: Devices;
  readonly queues: MessageQueues;
  readonly serverName: string;
  /** Without it, users of other servers get nothing. */
  readonly remote?: RemoteDelivery;
}

/** Messages and UTF-16 units of JSON that one request may cause: a wildcard can mean many. */
const [maxMessages, maxText] = [10_000, 32 * 1024 * 1024];

/** Milliseconds for which a transaction id is remembered, and between two rounds of forgetting. */
const [memory, forgettingInterval] = [24 * 3_600_000, 3_600_000];

/** Transactions of a server that are remembered, and after how many of them that is seen to. */
const [remembered, checkEvery] = [20_000, 1_000];

/** Of how many servers it is known how much they sent lately. */
const serversInMemory = 10_000;

/** Sends messages to devices. Source: client-server API, "Send-to-Device messaging". */
export class ToDevice {
  readonly #deps: ToDeviceDeps;
  #forgotten = 0;
  /** What servers have sent since it was checked how much is remembered of them. */
  readonly #sent = new RecentlyUsed<string, number>({ max: serversInMemory });

  constructor(deps: ToDeviceDeps) {
    this.#deps = deps;
  }

  /**
   * Resolves when every message is on disk; devices that do not exist get none.
   * @throws MatrixError M_INVALID_PARAM, M_TOO_LARGE
   */
  async send(outgoing: OutgoingMessages): Promise<void> {
    const { sender, origin, txnId, type } = outgoing;
    checkNameLength(type, 'A type');
    checkNameLength(txnId, 'A transaction id');
    const digest = createHash('sha256')
      .update(JSON.stringify([type, txnId, sender]))
      .digest('base64url');
    const transaction = { origin: origin.name, deviceId: origin.deviceId ?? '', digest };
    const now = this.#deps.clock.now();
    await this.#deps.streams.write<ToDeviceTables, void>(async (writer, publish) => {
      if (!(await insertTransaction(writer, transaction, now))) return;
      if (origin.deviceId === undefined && this.#isDue(origin.name)) {
        await deleteAllButNewestTransactions(writer, origin.name, remembered);
      }
      await this.#sendIn(writer, publish, outgoing, digest);
    });
    await this.#forgetOld(now);
  }

  async #sendIn(
    writer: Writer<ToDeviceTables>,
    publish: Publish,
    { sender, origin, type, messages }: OutgoingMessages,
    digest: string,
  ): Promise<void> {
    const { devices, queues, serverName, remote } = this.#deps;
    const [local, elsewhere] = divide(messages, serverName);
    const known = await devices.names([...local.keys()], writer);
    const batch: Batch = { queued: [], size: 0 };
    for (const [userId, contents] of local) {
      const deviceIds = known.get(userId)?.keys() ?? [];
      const texts = new Map(
        [...contents].map(([deviceId, content]) => [deviceId, messageText(sender, type, content)]),
      );
      for (const deviceId of deviceIds) {
        const message = texts.get(deviceId) ?? texts.get(allDevices);
        if (message !== undefined) add(batch, { userId, deviceId, message });
      }
    }
    await queues.appendIn(writer, publish, batch.queued);
    if (elsewhere.size === 0) return;
    for (const [userId, contents] of elsewhere) {
      for (const [deviceId, content] of contents) {
        add(batch, { userId, deviceId, message: messageText(sender, type, content) });
      }
    }
    const messageId = createHash('sha256')
      .update(JSON.stringify([origin.deviceId, digest]))
      .digest('base64url');
    await remote?.enqueue(writer, publish, { sender, type, messageId, messages: elsewhere });
  }

  /** Whether it is time to see how much is remembered of a server. */
  #isDue(server: string): boolean {
    const sent = (this.#sent.get(server) ?? 0) + 1;
    this.#sent.set(server, sent % checkEvery);
    return sent === checkEvery;
  }

  async #forgetOld(now: number): Promise<void> {
    if (now - this.#forgotten < forgettingInterval) return;
    this.#forgotten = now;
    await this.#deps.streams.write<ToDeviceTables, void>((writer) =>
      deleteTransactionsBefore(writer, now - memory),
    );
  }
}

/** Splits messages into those for users of this server and those for others. */
function divide(messages: MessageMap, serverName: string): [local: MessageMap, elsewhere: MessageMap] {
  const isLocal = (userId: string) => serverOfUser(userId) === serverName;
  const entries = [...messages];
  return [
    new Map(entries.filter(([userId]) => isLocal(userId))),
    new Map(entries.filter(([userId]) => !isLocal(userId))),
  ];
}

interface Batch {
  readonly queued: QueuedMessage[];
  size: number;
}

function add(batch: Batch, message: QueuedMessage): void {
  batch.queued.push(message);
  batch.size += message.message.length;
  if (batch.queued.length > maxMessages || batch.size > maxText) {
    throw tooLarge('These are too many messages');
  }
}
