import { type CacheRegistry, MiB } from '../kernel/caches/index.ts';
import type { Clock } from '../kernel/clock.ts';
import type { Database } from '../kernel/database/index.ts';
import { RecentChangesByKey } from '../kernel/recent-changes.ts';
import { jsonFacts, Stream, type StreamWriter } from '../kernel/streams/index.ts';
import { whenReady } from '../kernel/when-ready.ts';
import { invalidParam } from '../protocol/index.ts';
import type { RoomReader } from '../room-engine/index.ts';
import type { FullyReadMarkers } from './fully-read.ts';
import { ReadPositions } from './read-positions.ts';
import type { ReadUpTo } from './read-up-to.ts';
import { readableEvent } from './readable-event.ts';
import type { PlacedReceipt, Receipt, ReceiptType } from './receipt.ts';
import { type ReceiptContent, receiptContents } from './receipt-content.ts';
import {
  countReceipts,
  readReceipt,
  readReceipts,
  readReceiptsIn,
  readReceiptsOf,
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
 * Bounds the receipts of a room in a response, the newest first: no user looks at more in a room of ten
 * thousand members, and each takes about a hundred bytes.
 */
const maxInContent = 500;

/**
 * Bounds the rooms whose recent receipts are in memory, and the receipts of each, so that syncs need no
 * query.
 */
const recentReceipts = {
  name: 'recent_receipts',
  maxKeys: 10_000,
  perKey: 500,
  maxBytes: 8 * MiB,
  changeBytes: 300,
};

/** Thrown when a receipt for a later event was written at the same time. */
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
      readReceiptsOf(this.#reader, roomIds, userId);
    this.#positions = new ReadPositions(load, deps.caches);
    this.receiptStream.subscribe((receipt, position) => {
      this.#recent.add(receipt.roomId, { ...receipt, position }, position);
      this.#positions.add(receipt);
    });
  }

  /**
   * Stores the receipt of a local user for an event. A receipt never moves backwards, and one for an event
   * that is unknown in the room is ignored.
   * @throws MatrixError M_INVALID_PARAM when the event is not in the thread, M_FORBIDDEN outside of the room
   */
  async give(request: ReceiptRequest): Promise<void> {
    const { userId, roomId, eventId, threadId } = request;
    const { engine, clock } = this.#deps;
    const stored = await readableEvent(engine, userId, roomId, eventId);
    if (threadId !== undefined && !(stored && (await belongsToThread(engine, stored, threadId)))) {
      throw invalidParam(`The event ${eventId} is not related to the thread ${threadId}`);
    }
    if (stored) await this.record({ ...request, stream: stored.stream, ts: clock.now() });
  }

  /**
   * Sets the fully read marker of a local user, forwards only; an event that is unknown in the room is
   * ignored.
   * @throws MatrixError M_INVALID_PARAM, M_FORBIDDEN
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
   * Stores a checked receipt of a local user, or the receipt of a remote user, unless there is one for a
   * later event. A receipt for an unknown event replaces any.
   */
  async record(receipt: Receipt): Promise<void> {
    try {
      await this.#deps.streams.write<ReceiptTables, void>(async (writer, publish) => {
        const stored = await readReceipt(writer, receipt);
        if (stored && reaches(stored, receipt)) return;
        const position = publish(this.receiptStream, receipt);
        if (!(await writeReceipt(writer, { ...receipt, position }))) throw new NewerReceiptError();
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

  /** Returns the newest receipts of a room, and all of the viewer's own, in the form of `contentsSince`. */
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
    const take = async (roomId: string, receipts: readonly PlacedReceipt[]) => {
      contents.set(roomId, await this.#contents(receipts, viewer));
    };
    for (const [roomId, count] of counts) {
      if (count > maxInContent) await take(roomId, await this.#newest(roomId, viewer));
    }
    for (const together of inGroups(counts, maxInContent)) {
      const receipts = await readReceiptsIn(this.#reader, together, viewer);
      for (const [roomId, ofRoom] of Map.groupBy(receipts, (receipt) => receipt.roomId)) {
        await take(roomId, ofRoom);
      }
    }
    return contents;
  }

  async #newest(roomId: string, viewer: string): Promise<PlacedReceipt[]> {
    const range = { after: 0, upTo: Number.MAX_SAFE_INTEGER, limit: maxInContent };
    const newest = await readReceipts(this.#reader, roomId, viewer, range);
    return [...newest, ...(await readReceiptsOf(this.#reader, [roomId], viewer))];
  }

  /**
   * Leaves out ignored users. Source: client-server API, "Ignoring Users": clients get only state events of
   * them.
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

  /** How far a user has read a room. Returns at once, without a query, for users and rooms that are in use. */
  readUpTo(userId: string, roomId: string): ReadUpTo | Promise<ReadUpTo> {
    return this.#positions.get(userId, roomId);
  }

  get #reader() {
    return this.#deps.database.reader<ReceiptTables>();
  }
}

/** Groups rooms so that each group has at most `max` receipts; rooms with more are left out. */
function inGroups(counts: ReadonlyMap<string, number>, max: number): string[][] {
  const groups: string[][] = [];
  let room = 0;
  for (const [roomId, count] of counts) {
    if (count > max) continue;
    const last = groups.at(-1);
    if (last && count <= room) last.push(roomId);
    else groups.push([roomId]);
    room = (last && count <= room ? room : max) - count;
  }
  return groups;
}

const maySee = ({ type, userId }: { type: ReceiptType; userId: string }, viewer: string): boolean =>
  type === 'm.read' || userId === viewer;

const reaches = (stored: PlacedReceipt, { stream }: Receipt): boolean =>
  stream !== undefined && stored.stream !== undefined && stored.stream >= stream;
