import type { Database } from '../../kernel/database/index.ts';
import type { BackgroundSigner } from '../../kernel/signing/index.ts';
import type { Reservation, Stream, StreamWriter } from '../../kernel/streams/index.ts';
import type { TimeSlices } from '../../kernel/time-slices.ts';
import type { UnsignedEvent } from '../../protocol/index.ts';
import type { EventIndex } from '../event-index.ts';
import type { AuthEdges } from '../state/auth-edges.ts';
import type { StateGroups } from '../state/state-groups.ts';
import type { WritableStateKeys } from '../state/writable-state-keys.ts';
import type { RoomFact, StoredEvent } from '../stored-event.ts';
import type { EventStore } from './event-store.ts';
import type { EventWrite } from './event-write.ts';
import type { WritableHead } from './writable-head.ts';
import type { WritableHeads } from './writable-heads.ts';
import { WriteBatch } from './write-batch.ts';

/** An event that its room's head holds, ready to be staged. */
export interface PreparedWrite extends EventWrite {
  /** The event of a local user; or the JSON of one that is signed already. */
  readonly content: UnsignedEvent | string;
  readonly reservation: Reservation<RoomFact>;
}

/** Reserves the position of an event on the stream of rooms. */
export type ReservePlace = () => Reservation<RoomFact>;

interface Pending {
  readonly write: PreparedWrite;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

/** Events that are signed together. */
interface SigningGroup {
  readonly pending: readonly Pending[];
  /** In the same order; set when they are there, as is `failure` when they never will be. */
  signatures?: readonly string[] | undefined;
  failure?: unknown;
}

/** An event whose signature is there, as JSON. */
interface Signed {
  readonly pending: Pending;
  readonly text: string;
}

/**
 * How many batches may be on their way to the disk: while the answer to one is waiting to be read on this thread, the
 * database is busy with the next.
 */
const maxConcurrentBatches = 2;

/** Writes of a batch whose rows are made in one go. */
const writesAtOnce = 200;

/**
 * So many events are sent to be signed without waiting for the end of the turn of the event loop: when many requests
 * have come at once that is far away, and the signer and the disk would have nothing to do until then.
 */
const minEventsToSign = 16;

/**
 * Signs events and writes them to disk, many at a time. What is staged in one turn of the event loop is signed
 * together, or a part of it when it is much; what has been signed while batches were being committed is the next batch,
 * and shares one flush. Events of one room are committed in the order in which they were staged, and never before those
 * of an earlier batch are on disk.
 */
export class EventWriter {
  readonly #streams: StreamWriter;
  readonly #stream: Stream<RoomFact>;
  readonly #database: Database;
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
  /** With the signer, in order. */
  readonly #signing: SigningGroup[] = [];
  /** Signed, in order. */
  #signed: Signed[] = [];
  /** The rooms of each batch that is on its way, and when it has settled. */
  readonly #committing = new Map<ReadonlySet<WritableHead>, Promise<void>>();
  #idle: (() => void)[] = [];
  /** When state events that were staged are on disk. */
  readonly #durable = new WeakMap<StoredEvent, Promise<void>>();

  constructor(parts: {
    streams: StreamWriter;
    stream: Stream<RoomFact>;
    database: Database;
    stateKeys: WritableStateKeys;
    heads: WritableHeads;
    events: EventStore;
    groups: StateGroups;
    authEdges: AuthEdges;
    index: EventIndex;
    signer: BackgroundSigner;
    slices: TimeSlices;
  }) {
    this.#streams = parts.streams;
    this.#stream = parts.stream;
    this.#database = parts.database;
    this.#stateKeys = parts.stateKeys;
    this.#heads = parts.heads;
    this.#events = parts.events;
    this.#groups = parts.groups;
    this.#authEdges = parts.authEdges;
    this.#index = parts.index;
    this.#signer = parts.signer;
    this.#slices = parts.slices;
  }

  /**
   * Runs `work`, which reserves positions, puts events into `head` and stages them, all without waiting. When it throws,
   * nothing of it is written, the positions are given back, and a head that may hold a part of an event is abandoned.
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
      for (const { write } of this.#staged.splice(stagedBefore)) this.#undo(write);
      if (hasReserved) this.#abandon(head);
      throw error;
    }
  }

  /**
   * Takes an event that the head holds already. Resolves when it is on disk and published; rejects when it is not,
   * and then the head is broken and everything staged on it after this event rejects as well.
   */
  stage(write: PreparedWrite): Promise<void> {
    const { stored } = write;
    try {
      if (write.row !== 'untouched') this.#events.add(stored);
      for (const group of write.groups) this.#groups.add(group);
      if (stored.event.stateKey !== undefined && write.row === 'new')
        this.#authEdges.add(stored.nid, write.auth);
      if (this.#isSigning) this.#signer.poll();
    } catch (error) {
      this.#undo(write);
      throw error;
    }
    const durable = new Promise<void>((resolve, reject) => {
      this.#staged.push({ write, resolve, reject });
    });
    if (this.#staged.length === 1) setImmediate(() => this.#signStaged());
    // Not before those are here, too, that are staged in one go, as a new room's first events.
    if (this.#staged.length === minEventsToSign) queueMicrotask(() => this.#signStaged());
    if (stored.event.stateKey !== undefined) this.#durable.set(stored, durable);
    return durable;
  }

  /** A copy of an event that was staged before is on disk when `durable` resolves. */
  follow(stored: StoredEvent, durable: Promise<void>): void {
    if (stored.event.stateKey !== undefined) this.#durable.set(stored, durable);
  }

  /** Resolves when a state event that some head holds is on disk; rejects when it could not be stored. */
  async durable(stored: StoredEvent): Promise<void> {
    await this.#durable.get(stored);
  }

  /** Resolves when everything that was staged has settled. */
  async settled(): Promise<void> {
    if (!this.#isIdle()) await new Promise<void>((resolve) => this.#idle.push(resolve));
  }

  /** One request at a time is with the signer: what is staged in the meantime is the next one. */
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

  /** A signature for each event, empty for those that have theirs. */
  async #sign(pending: readonly Pending[]): Promise<string[]> {
    const texts = pending.map(({ write }) => write.content).filter((content) => typeof content !== 'string');
    const signatures =
      texts.length === 0 ? [] : await this.#signer.sign(texts.map(({ signingInput }) => signingInput));
    let next = 0;
    return pending.map(({ write }) => (typeof write.content === 'string' ? '' : (signatures[next++] ?? '')));
  }

  /** Sends the signed events of all rooms that no batch on its way holds. */
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

  /** What can be committed now, and what has to wait for earlier events of its room. */
  #split(): [Signed[], Signed[]] {
    const batch: Signed[] = [];
    const rest: Signed[] = [];
    for (const one of this.#signed) (this.#committed(one.pending.write.head) ? rest : batch).push(one);
    return [batch, rest];
  }

  /** Resolves when the batch has settled that holds events of this room; `undefined` when there is none. */
  #committed(head: WritableHead): Promise<void> | undefined {
    for (const [heads, settled] of this.#committing) if (heads.has(head)) return settled;
    return undefined;
  }

  /** Breaks a head. It is loaded again when its events that are on their way to the disk have settled, not before. */
  #abandon(head: WritableHead): void {
    const committed = this.#committed(head);
    if (committed) this.#heads.abandonAfter(head, committed);
    else this.#heads.abandon(head);
  }

  #isIdle(): boolean {
    const queued = this.#staged.length + this.#signing.length + this.#signed.length;
    return queued === 0 && this.#committing.size === 0;
  }

  /** Takes the groups at the front that the signer has answered. */
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

  /** Commits signed events together; when that fails, each room by itself, so that none suffers for another. */
  async #commit(signed: readonly Signed[]): Promise<void> {
    const kept = signed.filter(({ pending }) => {
      const isLost = pending.write.head.broken;
      if (isLost) this.#fail(pending, lostWithEarlier());
      return !isLost;
    });
    if (kept.length === 0) return;
    const batch = new WriteBatch(this.#stateKeys, this.#index.batch());
    try {
      for (const [index, { pending, text }] of kept.entries()) {
        if (index % writesAtOnce === writesAtOnce - 1) await this.#slices.pauseIfDue();
        const adding = batch.add(pending.write, text);
        // Few have more rows than one step takes, and those that have not are not to be waited for.
        if (!adding.next().done) await this.#slices.run(adding);
      }
      await this.#database.batch(await this.#slices.run(batch.statements()));
    } catch (error) {
      const rooms = Map.groupBy(kept, ({ pending }) => pending.write.head);
      if (rooms.size > 1) for (const ofRoom of rooms.values()) await this.#commit(ofRoom);
      else for (const { pending } of kept) this.#fail(pending, error);
      return;
    }
    this.#stateKeys.saved(batch.newStateKeys);
    for (const { pending } of kept) this.#succeed(pending);
  }

  #succeed({ write, resolve }: Pending): void {
    const { head, stored, fact, redacts, reservation } = write;
    if (write.row !== 'untouched') this.#events.markSaved(stored);
    this.#settled(write);
    if (redacts) this.#events.markRedacted(redacts.nid, stored.nid);
    if (fact && fact.stateChanges.length > 0) this.#heads.resized(head);
    if (fact) {
      reservation.complete(fact, resolve);
      return;
    }
    reservation.abandon();
    resolve();
  }

  /** The disk has what it will have of these. */
  #settled({ stored, groups, row }: PreparedWrite): void {
    for (const group of groups) this.#groups.settled(group);
    if (row === 'new') this.#authEdges.settled(stored.nid);
  }

  #fail({ write, reject }: Pending, error: unknown): void {
    this.#undo(write);
    reject(error);
  }

  /** Makes memory forget an event that is not written. */
  #undo(write: PreparedWrite): void {
    const { head, stored, redacts, reservation } = write;
    this.#abandon(head);
    if (write.row !== 'untouched') this.#events.forget(stored);
    this.#settled(write);
    if (redacts) head.redact(redacts, undefined);
    reservation.abandon();
  }
}

/** The PDU as JSON. */
function textOf({ content }: PreparedWrite, signature: string): string {
  return typeof content === 'string' ? content : content.complete(signature);
}

const lostWithEarlier = () => new Error('an earlier event of the room could not be stored');
