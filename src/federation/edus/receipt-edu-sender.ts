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

/** Lifetime of an EDU in milliseconds. */
const lifetime = 3_600_000;

/** Maximum number of receipts pending for a room's next round; further receipts are dropped. */
const maxPending = 1_000;

/**
 * Sends read receipts of local users to the servers of the room. The receipts of a room are sent in rounds of one
 * transaction to each server. Receipts that arrive during the pause after a round are collected and sent together.
 * Source: server-server API, "Receipts".
 */
export class ReceiptEduSender {
  readonly #deps: ReceiptEduSenderDeps;
  /**
   * Receipts that wait for the next round, by room id, then by user and thread. A room has an entry from the start of a
   * round to the end of the pause after it.
   */
  readonly #rooms = new Map<string, Map<string, Receipt>>();
  readonly #timers = new Set<Timer>();

  constructor(deps: ReceiptEduSenderDeps) {
    this.#deps = deps;
    deps.receipts.receiptStream.subscribe((receipt) => this.#received(receipt));
  }

  /** Drops the pending receipts. */
  stop(): void {
    for (const timer of this.#timers) timer.cancel();
  }

  #received(receipt: Receipt): void {
    const { roomId, userId, type, threadId = '' } = receipt;
    if (type !== 'm.read' || serverOfUser(userId) !== this.#deps.serverName) return;
    const key = `${userId}\0${threadId}`;
    const pending = this.#rooms.get(roomId);
    if (pending) {
      if (pending.has(key) || pending.size < maxPending) pending.set(key, receipt);
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
      log.error({ err: error }, 'Receipts could not be sent to other servers');
    }
    this.#pause(roomId, transactions);
  }

  /** Collects receipts of the room for the time that the given number of transactions takes at the configured rate. */
  #pause(roomId: string, transactions: number): void {
    const { clock, transactionsPerSecond } = this.#deps;
    if (transactions === 0) {
      this.#rooms.delete(roomId);
      return;
    }
    const timer = clock.setTimer((1_000 * transactions) / transactionsPerSecond, () => {
      this.#timers.delete(timer);
      const pending = this.#rooms.get(roomId);
      this.#rooms.delete(roomId);
      if (pending && pending.size > 0) void this.#send(roomId, pending);
    });
    this.#timers.add(timer);
  }
}

function contentOf({ roomId, userId, eventId, threadId, ts }: Receipt): JsonObject {
  const data = { ts, ...(threadId === undefined ? undefined : { thread_id: threadId }) };
  return { [roomId]: { 'm.read': { [userId]: { data, event_ids: [eventId] } } } };
}

/** Receipts by room id, receipt type and user id. */
type Content = Record<string, Record<string, Record<string, JsonObject>>>;

/** Combines receipts into as few EDU contents as possible. A content has at most one receipt per room and user. */
export function combine(contents: readonly JsonObject[]): JsonObject[] {
  const combined: Content[] = [];
  for (const content of contents as readonly Content[]) {
    for (const [roomId, { 'm.read': read = {} }] of Object.entries(content)) {
      for (const [userId, receipt] of Object.entries(read)) put(combined, roomId, userId, receipt);
    }
  }
  return combined;
}

/**
 * Adds a receipt to the first content without a receipt of the user for the room; appends a content if there is none.
 */
function put(combined: Content[], roomId: string, userId: string, receipt: JsonObject): void {
  const content = combined.find((candidate) => candidate[roomId]?.['m.read']?.[userId] === undefined) ?? {};
  if (!combined.includes(content)) combined.push(content);
  content[roomId] ??= { 'm.read': {} };
  content[roomId]['m.read'] = { ...content[roomId]['m.read'], [userId]: receipt };
}
