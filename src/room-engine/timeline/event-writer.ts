import type { Database } from '../../kernel/database/index.ts';
import type { BackgroundSigner } from '../../kernel/signing/index.ts';
import type { Reservation, Stream, StreamWriter } from '../../kernel/streams/index.ts';
import type { TimeSlices } from '../../kernel/time-slices.ts';
import { stateMapKey, type UnsignedEvent } from '../../protocol/index.ts';
import type { EventIndex } from '../event-index.ts';
import type { Attempt } from '../state/attempts.ts';
import type { AuthEdges } from '../state/auth-edges.ts';
import type { StateGroups } from '../state/state-groups.ts';
import type { WritableStateKeys } from '../state/writable-state-keys.ts';
import type { RoomFact, StoredEvent } from '../stored-event.ts';
import type { EventStore } from './event-store.ts';
import type { EventWrite } from './event-write.ts';
import type { WritableHead } from './writable-head.ts';
import type { WritableHeads } from './writable-heads.ts';
import { WriteBatch } from './write-batch.ts';

/** An event that is part of its room's head and ready to be staged. */
export interface PreparedWrite extends EventWrite {
  /** The unsigned event of a local user, or the JSON of a signed event. */
  readonly content: UnsignedEvent | string;
  readonly reservation: Reservation<RoomFact>;
}

/** Reserves the position of an event on the stream of rooms. */
export type ReservePlace = () => Reservation<RoomFact>;

/** A staged event. It waits for its signature or the disk. */
interface Pending {
  readonly write: PreparedWrite;
  /** Keeps the state keys of the write in memory until it has settled. */
  readonly attempt: Attempt;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

/** Events that are signed together. */
interface SigningGroup {
  readonly pending: readonly Pending[];
  /** In the order of `pending`; set when the signer has responded. */
  signatures?: readonly string[] | undefined;
  /** Set when the signer has failed. */
  failure?: unknown;
}

/** A signed event as JSON. */
interface Signed {
  readonly pending: Pending;
  readonly text: string;
}

/**
 * Maximum number of batches that are committed at the same time: while this thread has not read the answer to a batch,
 * the database works on the next batch.
 */
const maxConcurrentBatches = 2;

/** Number of writes of a batch whose rows are prepared between two pauses. */
const writesAtOnce = 200;

/**
 * When this number of events is staged, they are sent to the signer before the turn of the event loop ends. After a
 * burst of requests the turn is long, and signer and disk would be idle until its end.
 */
const minEventsToSign = 16;

/**
 * Signs events and writes them to disk in batches. The events that are staged in one turn of the event loop are signed
 * together, in parts when they are many; events that were signed while batches were committing form the next batch and
 * share one flush. Events of one room are committed in the order of their staging, and never before an earlier batch
 * with events of the room is on disk.
 */
export class EventWriter {
  readonly #streams: StreamWriter;
  readonly #stream: Stream<RoomFact>;
  readonly #database: Database;
  /** The database of the state groups; the same as `#database` unless state groups have a database of their own. */
  readonly #stateDatabase: Database;
  readonly #stateKeys: WritableStateKeys;
  readonly #heads: WritableHeads;
  readonly #events: EventStore;
  readonly #groups: StateGroups;
  readonly #authEdges: AuthEdges;
  readonly #index: EventIndex;
  readonly #signer: BackgroundSigner;
  readonly #slices: TimeSlices;
  #isSigning = false;
  #staged: Pending[] = [];
  /** Groups that are being signed, in order. */
  readonly #signing: SigningGroup[] = [];
  /** Signed events, in order. */
  #signed: Signed[] = [];
  /** The rooms of each batch that is being committed, with a promise that resolves when the batch has settled. */
  readonly #committing = new Map<ReadonlySet<WritableHead>, Promise<void>>();
  /** Resolve the waiting calls of `settled`. */
  #idle: (() => void)[] = [];
  /** For each broken head: why the first event that failed could not be stored. */
  readonly #failures = new WeakMap<WritableHead, unknown>();
  /** For each staged state event, a promise that resolves when the event is on disk. */
  readonly #durable = new WeakMap<StoredEvent, Promise<void>>();

  constructor(deps: {
    streams: StreamWriter;
    stream: Stream<RoomFact>;
    database: Database;
    stateDatabase: Database;
    stateKeys: WritableStateKeys;
    heads: WritableHeads;
    events: EventStore;
    groups: StateGroups;
    authEdges: AuthEdges;
    index: EventIndex;
    signer: BackgroundSigner;
    slices: TimeSlices;
  }) {
    this.#streams = deps.streams;
    this.#stream = deps.stream;
    this.#database = deps.database;
    this.#stateDatabase = deps.stateDatabase;
    this.#stateKeys = deps.stateKeys;
    this.#heads = deps.heads;
    this.#events = deps.events;
    this.#groups = deps.groups;
    this.#authEdges = deps.authEdges;
    this.#index = deps.index;
    this.#signer = deps.signer;
    this.#slices = deps.slices;
  }

  /**
   * Runs `work`, which reserves positions, extends `head` and stages events, all synchronously. When `work` throws,
   * none of these events is written, the positions are released, and a head that may contain a part of an event is
   * marked as broken.
   */
  extend<T>(head: WritableHead, work: (reserve: ReservePlace) => T): T {
    const stagedBefore = this.#staged.length;
    let hasReserved = false;
    try {
      return this.#streams.reserving((reserve) =>
        work(() => {
          hasReserved = true;
          return reserve(this.#stream);
        }),
      );
    } catch (error) {
      for (const { write, attempt } of this.#staged.splice(stagedBefore)) {
        this.#undo(write);
        this.#stateKeys.end(attempt);
      }
      if (hasReserved) this.#abandon(head);
      throw error;
    }
  }

  /**
   * Stages an event that the head contains. Resolves when it is on disk and published; rejects when it could not
   * be written: then the head is broken, and all later events staged on it reject as well.
   */
  stage(write: PreparedWrite): Promise<void> {
    const { stored } = write;
    try {
      if (write.rowAction !== 'untouched') this.#events.add(stored);
      for (const group of write.groups) this.#groups.add(group);
      if (stored.event.stateKey !== undefined && write.rowAction === 'new')
        this.#authEdges.add(stored.nid, write.auth);
      if (this.#isSigning) this.#signer.poll();
    } catch (error) {
      this.#undo(write);
      throw error;
    }
    const attempt = this.#beginWrite(write);
    const durable = new Promise<void>((resolve, reject) => {
      this.#staged.push({ write, attempt, resolve, reject });
    });
    if (this.#staged.length === 1) setImmediate(() => this.#signStaged());
    // Waits for a microtask, so that events that are staged together, like the first events of a room, are signed
    // together.
    if (this.#staged.length === minEventsToSign) queueMicrotask(() => this.#signStaged());
    if (stored.event.stateKey !== undefined) this.#durable.set(stored, durable);
    return durable;
  }

  /** Keeps the unsaved state keys of a write in memory. */
  #beginWrite({ fact, remote }: PreparedWrite): Attempt {
    if (fact) this.#stateKeys.use(stateMapKeysOf(fact));
    if (remote?.stateKeys) this.#stateKeys.use(remote.stateKeys);
    return this.#stateKeys.begin();
  }

  /** Makes `durable` return this promise for a new copy of a staged state event. */
  setDurable(stored: StoredEvent, durable: Promise<void>): void {
    if (stored.event.stateKey !== undefined) this.#durable.set(stored, durable);
  }

  /** Resolves when a state event of a head is on disk; rejects when it could not be stored. */
  async durable(stored: StoredEvent): Promise<void> {
    await this.#durable.get(stored);
  }

  /** Resolves when all staged events have settled. */
  async settled(): Promise<void> {
    if (!this.#isIdle()) await new Promise<void>((resolve) => this.#idle.push(resolve));
  }

  /**
   * Sends staged events to the signer; only one request at a time, so that events staged meanwhile form the next
   * request.
   */
  #signStaged(): void {
    if (this.#staged.length === 0 || this.#isSigning) return;
    const pending = this.#staged;
    this.#staged = [];
    this.#isSigning = true;
    const group: SigningGroup = { pending };
    this.#signing.push(group);
    const signing = this.#sign(pending);
    const settle = (signatures: readonly string[] | undefined, failure?: unknown) => {
      group.signatures = signatures;
      group.failure = failure;
      this.#isSigning = false;
      if (this.#staged.length >= minEventsToSign) this.#signStaged();
      else if (this.#staged.length > 0) setImmediate(() => this.#signStaged());
      this.#commitNext();
    };
    signing.then(settle, (error) => settle(undefined, error));
  }

  /** Returns a signature for each event; empty for signed events. */
  async #sign(pending: readonly Pending[]): Promise<string[]> {
    const texts = pending.map(({ write }) => write.content).filter((content) => typeof content !== 'string');
    const signatures =
      texts.length === 0 ? [] : await this.#signer.sign(texts.map(({ signingInput }) => signingInput));
    let next = 0;
    return pending.map(({ write }) => (typeof write.content === 'string' ? '' : (signatures[next++] ?? '')));
  }

  /** Commits the signed events, except those of rooms that have events in a batch that is being committed. */
  #commitNext(): void {
    this.#takeSigned();
    while (this.#signed.length > 0 && this.#committing.size < maxConcurrentBatches) {
      const [batch, rest] = this.#split();
      if (batch.length === 0) return;
      this.#signed = rest;
      const heads = new Set(batch.map(({ pending }) => pending.write.head));
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#committing.set(heads, promise);
      void this.#commit(batch).then(() => {
        this.#committing.delete(heads);
        resolve();
        this.#commitNext();
      });
    }
    if (this.#isIdle()) for (const resolve of this.#idle.splice(0)) resolve();
  }

  /**
   * Splits the signed events into events that can be committed now, and events that wait for earlier events of their
   * room.
   */
  #split(): [batch: Signed[], rest: Signed[]] {
    const batch: Signed[] = [];
    const rest: Signed[] = [];
    for (const signed of this.#signed)
      (this.#commitInProgress(signed.pending.write.head) ? rest : batch).push(signed);
    return [batch, rest];
  }

  /** Resolves when the batch that is being committed with events of this room has settled; `undefined` if there is none. */
  #commitInProgress(head: WritableHead): Promise<void> | undefined {
    for (const [heads, settled] of this.#committing) if (heads.has(head)) return settled;
    return undefined;
  }

  /** Marks a head as broken. The room is loaded again when no batch with its events is being committed. */
  #abandon(head: WritableHead): void {
    const commit = this.#commitInProgress(head);
    if (commit) this.#heads.abandonAfter(head, commit);
    else this.#heads.abandon(head);
  }

  #isIdle(): boolean {
    const queued = this.#staged.length + this.#signing.length + this.#signed.length;
    return queued === 0 && this.#committing.size === 0;
  }

  /** Takes the signed groups from the front of the queue. */
  #takeSigned(): void {
    for (let group = this.#signing[0]; group?.signatures ?? group?.failure; group = this.#signing[0]) {
      this.#signing.shift();
      for (const [index, pending] of group.pending.entries()) {
        const signature = group.signatures?.[index];
        try {
          if (signature === undefined) throw group.failure;
          this.#signed.push({ pending, text: textOf(pending.write, signature) });
        } catch (error) {
          this.#fail(pending, error);
        }
      }
    }
  }

  /**
   * Commits signed events together; when that fails, each room by itself, so that one room's error does not
   * fail the events of other rooms.
   */
  async #commit(signed: readonly Signed[]): Promise<void> {
    const committable = signed.filter(({ pending }) => {
      const isBroken = pending.write.head.broken;
      if (isBroken) this.#fail(pending, earlierEventFailed(this.#failures.get(pending.write.head)));
      return !isBroken;
    });
    if (committable.length === 0) return;
    const batch = new WriteBatch(
      this.#stateKeys,
      this.#index.batch(),
      this.#stateDatabase !== this.#database,
    );
    try {
      for (const [index, { pending, text }] of committable.entries()) {
        if (index % writesAtOnce === writesAtOnce - 1) await this.#slices.pauseIfDue();
        const adding = batch.add(pending.write, text);
        // Most writes need one step only and are not awaited.
        if (!adding.next().done) await this.#slices.run(adding);
      }
      const statements = await this.#slices.run(batch.statements());
      if (this.#stateDatabase !== this.#database) {
        // The groups are written first: an event without its group could not be read, but a group without events is
        // harmless.
        const groups = batch.groupStatements();
        if (groups.length > 0) await this.#stateDatabase.batch(groups);
      }
      await this.#database.batch(statements);
    } catch (error) {
      const rooms = Map.groupBy(committable, ({ pending }) => pending.write.head);
      if (rooms.size > 1) for (const roomEvents of rooms.values()) await this.#commit(roomEvents);
      else for (const { pending } of committable) this.#fail(pending, error);
      return;
    }
    this.#stateKeys.saved(batch.newStateKeys);
    for (const { pending } of committable) this.#succeed(pending);
  }

  #succeed({ write, attempt, resolve }: Pending): void {
    this.#stateKeys.end(attempt);
    const { head, stored, fact, redacts, reservation } = write;
    if (write.rowAction !== 'untouched') this.#events.markSaved(stored);
    this.#dropFromUnsaved(write);
    if (redacts) this.#events.markRedacted(redacts.nid, stored.nid);
    if (fact) {
      this.#heads.resized(head);
      reservation.complete(fact, resolve);
      return;
    }
    reservation.abandon();
    resolve();
  }

  /** Drops the groups and auth edges of a settled write from the unsaved groups and edges. */
  #dropFromUnsaved({ stored, groups, rowAction }: PreparedWrite): void {
    for (const group of groups) this.#groups.settled(group);
    if (rowAction === 'new') this.#authEdges.settled(stored.nid);
  }

  #fail({ write, attempt, reject }: Pending, error: unknown): void {
    if (!this.#failures.has(write.head)) this.#failures.set(write.head, error);
    this.#undo(write);
    this.#stateKeys.end(attempt);
    reject(error);
  }

  /** Removes from memory an event that is not written, and marks its head as broken. */
  #undo(write: PreparedWrite): void {
    const { head, stored, redacts, reservation } = write;
    this.#abandon(head);
    if (write.rowAction !== 'untouched') this.#events.forget(stored);
    this.#dropFromUnsaved(write);
    if (redacts) head.redact(redacts, undefined);
    reservation.abandon();
  }
}

function* stateMapKeysOf({ stateChanges }: RoomFact): Generator<string> {
  for (const { type, stateKey } of stateChanges) yield stateMapKey(type, stateKey);
}

/** Returns the PDU as JSON. */
function textOf({ content }: PreparedWrite, signature: string): string {
  return typeof content === 'string' ? content : content.complete(signature);
}

/**
 * Creates the error of an event that fails because an earlier event of its room could not be stored.
 * @param cause why the earlier event could not be stored: clients receive the same status for both
 */
const earlierEventFailed = (cause: unknown) =>
  new Error('an earlier event of the room could not be stored', { cause });
