import { type CacheRegistry, MiB } from '../kernel/caches/index.ts';
import type { Clock } from '../kernel/clock.ts';
import type { Database, Writer } from '../kernel/database/index.ts';
import { RecentChangesByKey } from '../kernel/recent-changes.ts';
import { jsonFacts, Stream, type StreamWriter } from '../kernel/streams/index.ts';
import { whenReady } from '../kernel/when-ready.ts';
import { invalidParam, MAIN_TIMELINE } from '../protocol/index.ts';
import type { RoomReader } from '../room-engine/index.ts';
import type { FullyReadMarkers } from './fully-read.ts';
import { ReadPositions } from './read-positions.ts';
import type { ReadUpTo } from './read-up-to.ts';
import { readableEvent } from './readable-event.ts';
import type { PlacedReceipt, Receipt, ReceiptType } from './receipt.ts';
import { type ReceiptContent, receiptContents } from './receipt-content.ts';
import {
  countReceipts,
  deleteOldestThreads,
  readReceipt,
  readReceipts,
  readReceiptsInRooms,
  readReceiptsOfUser,
  writeReceipt,
} from './store.ts';
import type { ReceiptTables } from './tables.ts';
import { belongsToThread } from './threads.ts';

export interface ReceiptsDeps {
  readonly caches: CacheRegistry;
  readonly database: Database;
  readonly streams: StreamWriter;
  readonly clock: Clock;
  readonly engine: RoomReader;
  readonly markers: FullyReadMarkers;
}

/** A receipt that a local user sends. */
export type ReceiptRequest = Pick<Receipt, 'userId' | 'roomId' | 'type' | 'eventId' | 'threadId'>;

/**
 * Maximum number of receipts of a room in a response: the newest receipts. Clients show no more in a large room, and
 * each receipt takes about a hundred bytes.
 */
const maxInContent = 500;

/** Maximum number of stored receipts of one type of a remote user for threads of one room. */
const maxThreadsOfRemoteUser = 100;

/** The cache of recent receipts: syncs read them without a query. */
const recentReceipts = {
  name: 'recent_receipts',
  /** Maximum number of rooms. */
  maxKeys: 10_000,
  /** Maximum number of receipts of one room. */
  perKey: 500,
  maxBytes: 8 * MiB,
  /** Estimated bytes of a receipt. */
  changeBytes: 300,
};

/** Thrown when a receipt for the same or a later event was written at the same time. */
class NewerReceiptError extends Error {}

/** The receipts of all users. Source: client-server API, "Receipts" and "Read and unread markers". */
export class Receipts {
  readonly receiptStream = new Stream<Receipt>(
    'receipts',
    jsonFacts({ threadId: undefined, stream: undefined }),
  );
  readonly #deps: ReceiptsDeps;
  readonly #recent: RecentChangesByKey<PlacedReceipt>;
  readonly #positions: ReadPositions;

  constructor(deps: ReceiptsDeps) {
    this.#deps = deps;
    this.#recent = new RecentChangesByKey(deps.streams.current, deps.caches, recentReceipts);
    const load = (userId: string, roomIds: readonly string[]) =>
      readReceiptsOfUser(this.#reader, roomIds, userId);
    this.#positions = new ReadPositions(load, deps.caches);
    this.receiptStream.subscribe((receipt, position) => {
      this.#recent.add(receipt.roomId, { ...receipt, position }, position);
      this.#positions.add(receipt);
    });
  }

  /**
   * Stores the receipt of a local user for an event. A receipt never moves backwards. A receipt without a thread for an
   * event that is unknown in the room is ignored.
   * @throws MatrixError M_INVALID_PARAM for an invalid event id, and for an event that is unknown in the room or does not
   * belong to the thread when the receipt has a thread;
   * M_FORBIDDEN for a user who is not in the room or must not see the event
   */
  async send(request: ReceiptRequest): Promise<void> {
    const { userId, roomId, eventId, threadId } = request;
    const { engine, clock } = this.#deps;
    const stored = await readableEvent(engine, userId, roomId, eventId);
    if (threadId !== undefined && !(stored && (await belongsToThread(engine, stored, threadId)))) {
      throw invalidParam(`The event ${eventId} is unknown, or not related to the thread ${threadId}`);
    }
    if (stored) await this.record({ ...request, stream: stored.stream, ts: clock.now() });
  }

  /**
   * Sets the fully read marker of a local user, forwards only; an event that is unknown in the room is
   * ignored.
   * @throws MatrixError as `readableEvent`
   */
  async markFullyRead(userId: string, roomId: string, eventId: string): Promise<void> {
    const { engine, markers } = this.#deps;
    const stored = await readableEvent(engine, userId, roomId, eventId);
    if (!stored) return;
    const markedId = await markers.find(userId, roomId);
    const before = markedId === undefined ? undefined : await engine.events.getById(markedId);
    if (before?.roomNid === stored.roomNid && (before.stream ?? 0) >= stored.stream) return;
    await markers.set(userId, roomId, eventId);
  }

  /**
   * Stores a checked receipt of a local user, unless a receipt for the same or a later event is stored. Where one of
   * the two events is unknown, the new receipt replaces the stored one.
   */
  record(receipt: Receipt): Promise<void> {
    return this.#write(receipt, async () => undefined);
  }

  /**
   * Stores the receipt of a remote user as `record` does. Keeps the newest `maxThreadsOfRemoteUser` receipts for
   * threads of each user, room and type, and deletes the others: other servers may name any threads, also unknown ones.
   */
  recordRemote(receipt: Receipt): Promise<void> {
    return this.#write(receipt, (writer) => deleteOldestThreads(writer, receipt, maxThreadsOfRemoteUser));
  }

  /** @param bound deletes surplus receipts; runs after the first receipt of a user for a thread was stored */
  async #write(receipt: Receipt, bound: (writer: Writer<ReceiptTables>) => Promise<void>): Promise<void> {
    try {
      await this.#deps.streams.write<ReceiptTables, void>(async (writer, publish) => {
        const stored = await readReceipt(writer, receipt);
        if (stored && isAtOrAfter(stored, receipt)) return;
        const position = publish(this.receiptStream, receipt);
        if (!(await writeReceipt(writer, { ...receipt, position }))) throw new NewerReceiptError();
        if (!stored && isOfThread(receipt)) await bound(writer);
      });
    } catch (error) {
      if (!(error instanceof NewerReceiptError)) throw error;
    }
  }

  /**
   * Returns the receipts of a room that were stored in `(after, upTo]`, as contents of `m.receipt` events:
   * usually none or one. Receipts of users whom the viewer ignores are left out. Costs no query for recent
   * positions.
   */
  contentsSince(
    roomId: string,
    after: number,
    upTo: number,
    viewer: string,
  ): ReceiptContent[] | Promise<ReceiptContent[]> {
    const recent = this.#recent.between(roomId, after, upTo)?.reverse();
    if (recent)
      return this.#contents(
        recent.filter((receipt) => maySee(receipt, viewer)),
        viewer,
      );
    const range = { after, upTo, limit: maxInContent };
    return readReceipts(this.#reader, roomId, viewer, range).then((stored) => this.#contents(stored, viewer));
  }

  /** Returns the newest receipts of a room, and all receipts of the viewer, in the form of `contentsSince`. */
  async contentsAll(roomId: string, viewer: string): Promise<ReceiptContent[]> {
    return (await this.contentsOfRooms([roomId], viewer)).get(roomId) ?? [];
  }

  /**
   * Returns `contentsAll` of many rooms, with a few queries. Rooms without receipts are absent.
   * @param roomIds at most 30,000
   */
  async contentsOfRooms(roomIds: readonly string[], viewer: string): Promise<Map<string, ReceiptContent[]>> {
    const contents = new Map<string, ReceiptContent[]>();
    if (roomIds.length === 0) return contents;
    const counts = await countReceipts(this.#reader, roomIds);
    const addContents = async (roomId: string, receipts: readonly PlacedReceipt[]) => {
      contents.set(roomId, await this.#contents(receipts, viewer));
    };
    for (const [roomId, count] of counts) {
      if (count > maxInContent) await addContents(roomId, await this.#newest(roomId, viewer));
    }
    for (const groupRoomIds of groupRooms(counts, maxInContent)) {
      const receipts = await readReceiptsInRooms(this.#reader, groupRoomIds, viewer);
      for (const [roomId, roomReceipts] of Map.groupBy(receipts, (receipt) => receipt.roomId)) {
        await addContents(roomId, roomReceipts);
      }
    }
    return contents;
  }

  async #newest(roomId: string, viewer: string): Promise<PlacedReceipt[]> {
    const range = { after: 0, upTo: Number.MAX_SAFE_INTEGER, limit: maxInContent };
    const newest = await readReceipts(this.#reader, roomId, viewer, range);
    return [...newest, ...(await readReceiptsOfUser(this.#reader, [roomId], viewer))];
  }

  /**
   * Returns the contents without receipts of ignored users. Source: client-server API, "Ignoring Users": clients receive
   * only state events of ignored users.
   */
  #contents(
    receipts: readonly PlacedReceipt[],
    viewer: string,
  ): ReceiptContent[] | Promise<ReceiptContent[]> {
    if (receipts.length === 0) return [];
    const { ignored } = this.#deps.engine;
    return whenReady(ignored.of(viewer), (users) =>
      receiptContents(receipts.filter(({ userId }) => !users.has(userId))),
    );
  }

  /** Returns how far a user has read a room: synchronously, without a query, when it is cached. */
  readUpTo(userId: string, roomId: string): ReadUpTo | Promise<ReadUpTo> {
    return this.#positions.get(userId, roomId);
  }

  get #reader() {
    return this.#deps.database.reader<ReceiptTables>();
  }
}

/** Groups rooms so that each group has at most `max` receipts; rooms with more are left out. */
function groupRooms(counts: ReadonlyMap<string, number>, max: number): string[][] {
  const groups: string[][] = [];
  let free = 0;
  for (const [roomId, count] of counts) {
    if (count > max) continue;
    const last = groups.at(-1);
    if (last && count <= free) last.push(roomId);
    else groups.push([roomId]);
    free = (last && count <= free ? free : max) - count;
  }
  return groups;
}

const maySee = ({ type, userId }: { type: ReceiptType; userId: string }, viewer: string): boolean =>
  type === 'm.read' || userId === viewer;

/** Whether a receipt is for a thread other than the main timeline. */
const isOfThread = ({ threadId }: Receipt): boolean => threadId !== undefined && threadId !== MAIN_TIMELINE;

/** Whether a stored receipt is for the same event as a new one, or for a later event. */
const isAtOrAfter = (stored: PlacedReceipt, { stream }: Receipt): boolean =>
  stream !== undefined && stored.stream !== undefined && stored.stream >= stream;
