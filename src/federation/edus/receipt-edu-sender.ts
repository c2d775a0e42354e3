import type { Clock, Timer } from '../../kernel/clock.ts';
import type { Logger } from '../../kernel/observability/index.ts';
import { type JsonObject, serverOfUser } from '../../protocol/index.ts';
import type { Receipt, Receipts } from '../../receipts/index.ts';
import type { RoomReader } from '../../room-engine/index.ts';
import type { FederationSender } from '../sender/federation-sender.ts';

export interface ReceiptEduSenderDeps {
  readonly serverName: string;
  readonly engine: Pick<RoomReader, 'heads'>;
  readonly receipts: Pick<Receipts, 'receiptStream'>;
  readonly sender: Pick<FederationSender, 'sendEdu'>;
  readonly clock: Clock;
  readonly log: Logger;
  /** `federation_rr_transactions_per_room_per_second` */
  readonly transactionsPerSecond: number;
}

/** Milliseconds for which a receipt is worth sending. */
const lifetime = 3_600_000;

/** Receipts that wait for the next round of a room; further ones wait for their users' next. */
const maxWaiting = 1_000;

/**
 * Tells the servers of a room how far users of this one have read. Each receipt is a transaction to every server, so
 * that those of a room which come too fast are collected and sent together.
 * Source: server-server API, "Receipts".
 */
export class ReceiptEduSender {
  readonly #deps: ReceiptEduSenderDeps;
  /** Rooms of which receipts have just been sent: what waits for the next time, by user and thread. */
  readonly #rooms = new Map<string, Map<string, Receipt>>();
  readonly #timers = new Set<Timer>();

  constructor(deps: ReceiptEduSenderDeps) {
    this.#deps = deps;
    deps.receipts.receiptStream.subscribe((receipt) => this.#received(receipt));
  }

  /** Nothing that waits is told any more. */
  stop(): void {
    for (const timer of this.#timers) timer.cancel();
  }

  #received(receipt: Receipt): void {
    const { roomId, userId, type, threadId = '' } = receipt;
    if (type !== 'm.read' || serverOfUser(userId) !== this.#deps.serverName) return;
    const key = `${userId}\0${threadId}`;
    const waiting = this.#rooms.get(roomId);
    if (waiting) {
      if (waiting.has(key) || waiting.size < maxWaiting) waiting.set(key, receipt);
    } else void this.#send(roomId, new Map([[key, receipt]]));
  }

  async #send(roomId: string, receipts: ReadonlyMap<string, Receipt>): Promise<void> {
    const { engine, sender, serverName, log } = this.#deps;
    this.#rooms.set(roomId, new Map());
    let transactions = 0;
    try {
      const head = await engine.heads.get(roomId);
      const servers = [...(head?.servers.keys() ?? [])].filter((server) => server !== serverName);
      transactions = servers.length;
      for (const [key, receipt] of receipts) {
        const content = contentOf(receipt);
        sender.sendEdu(servers, { type: 'm.receipt', key: `${roomId}\0${key}`, lifetime, content, combine });
      }
    } catch (error) {
      log.error({ err: error }, 'Receipts could not be told to other servers');
    }
    this.#pause(roomId, transactions);
  }

  /** Sends no receipts of the room for as long as that many transactions take. */
  #pause(roomId: string, transactions: number): void {
    const { clock, transactionsPerSecond } = this.#deps;
    if (transactions === 0) {
      this.#rooms.delete(roomId);
      return;
    }
    const timer = clock.setTimer((1_000 * transactions) / transactionsPerSecond, () => {
      this.#timers.delete(timer);
      const waiting = this.#rooms.get(roomId);
      this.#rooms.delete(roomId);
      if (waiting && waiting.size > 0) void this.#send(roomId, waiting);
    });
    this.#timers.add(timer);
  }
}

function contentOf({ roomId, userId, eventId, threadId, ts }: Receipt): JsonObject {
  const data = { ts, ...(threadId === undefined ? undefined : { thread_id: threadId }) };
  return { [roomId]: { 'm.read': { [userId]: { data, event_ids: [eventId] } } } };
}

/** Room to type to user to receipt. */
type Content = Record<string, Record<string, Record<string, JsonObject>>>;

/** As few contents as possible: each says one thing of a room and user. */
export function combine(contents: readonly JsonObject[]): JsonObject[] {
  const combined: Content[] = [];
  for (const content of contents as readonly Content[]) {
    for (const [roomId, { 'm.read': read = {} }] of Object.entries(content)) {
      for (const [userId, receipt] of Object.entries(read)) put(combined, roomId, userId, receipt);
    }
  }
  return combined;
}

function put(combined: Content[], roomId: string, userId: string, receipt: JsonObject): void {
  const room = combined.find((one) => one[roomId]?.['m.read']?.[userId] === undefined) ?? {};
  if (!combined.includes(room)) combined.push(room);
  room[roomId] ??= { 'm.read': {} };
  room[roomId]['m.read'] = { ...room[roomId]['m.read'], [userId]: receipt };
}
