import type { Database } from '../../kernel/database/index.ts';
import type { BackgroundSigner } from '../../kernel/signing/index.ts';
import type { Reservation } from '../../kernel/streams/index.ts';
import type { UnsignedEvent } from '../../protocol/index.ts';
import type { EventRelations } from '../event-relations.ts';
import type { AuthEdges } from '../state/auth-edges.ts';
import type { StateGroups } from '../state/state-groups.ts';
import type { StateKeys } from '../state/state-keys.ts';
import type { RoomFact, StoredEvent } from '../stored-event.ts';
import type { EventStore } from './event-store.ts';
import type { EventWrite } from './event-write.ts';
import type { RoomHeads } from './room-heads.ts';
import { WriteBatch } from './write-batch.ts';

/** An event that its room's head holds, ready to be staged. */
export interface PreparedWrite extends EventWrite {
  /** The event of a local user; or the JSON of one that is signed already. */
  readonly content: UnsignedEvent | string;
  readonly reservation: Reservation<RoomFact>;
}

interface Pending {
  readonly write: PreparedWrite;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

/** Events that are signed together. */
interface SigningGroup {
  readonly pending: readonly Pending[];
  /** In the same order; set when they are there, as is `failure` when they never will be. */
  signatures?: readonly string[];
  failure?: unknown;
  readonly settled: Promise<void>;
}

/** An event whose signature is there, as JSON. */
interface Signed {
  readonly pending: Pending;
  readonly text: string;
}

/**
 * Signs events and writes them to disk, many at a time. What is staged in one turn of the event loop is signed
 * together; what has been signed while a batch was being committed is the next batch, and shares one flush. Events of
 * one room are committed in the order in which they were staged.
 */
export class EventWriter {
  readonly #database: Database;
  readonly #stateKeys: StateKeys;
  readonly #heads: RoomHeads;
  readonly #events: EventStore;
  readonly #groups: StateGroups;
  readonly #authEdges: AuthEdges;
  readonly #relations: EventRelations;
  readonly #signer: BackgroundSigner;
  #isSigning = false;
  #staged: Pending[] = [];
  readonly #signing: SigningGroup[] = [];
  #committing: Promise<void> | undefined;
  /** When state events that were staged are on disk. */
  readonly #durable = new WeakMap<StoredEvent, Promise<void>>();

  constructor(parts: {
    database: Database;
    stateKeys: StateKeys;
    heads: RoomHeads;
    events: EventStore;
    groups: StateGroups;
    authEdges: AuthEdges;
    relations: EventRelations;
    signer: BackgroundSigner;
  }) {
    this.#database = parts.database;
    this.#stateKeys = parts.stateKeys;
    this.#heads = parts.heads;
    this.#events = parts.events;
    this.#groups = parts.groups;
    this.#authEdges = parts.authEdges;
    this.#relations = parts.relations;
    this.#signer = parts.signer;
  }

  /**
   * Takes an event that the head holds already. Resolves when it is on disk and published; rejects when it is not,
   * and then the head is broken and everything staged on it after this event rejects as well.
   */
  stage(write: PreparedWrite): Promise<void> {
    const { stored } = write;
    if (write.row !== 'untouched') this.#events.add(stored);
    for (const group of write.groups) this.#groups.add(group);
    if (stored.event.stateKey !== undefined && write.row === 'new')
      this.#authEdges.add(stored.nid, write.auth);
    const durable = new Promise<void>((resolve, reject) => {
      if (this.#staged.length === 0 && !this.#isSigning) setImmediate(() => this.#signStaged());
      this.#staged.push({ write, resolve, reject });
    });
    if (stored.event.stateKey !== undefined) this.#durable.set(stored, durable);
    return durable;
  }

  /** Resolves when a state event that some head holds is on disk; rejects when it could not be stored. */
  async durable(stored: StoredEvent): Promise<void> {
    await this.#durable.get(stored);
  }

  /** Resolves when everything that was staged has settled. */
  async settled(): Promise<void> {
    while (this.#staged.length > 0 || this.#committing) {
      if (this.#committing) await this.#committing;
      else await new Promise(setImmediate);
    }
  }

  /** One request at a time is with the signer: what is staged in the meantime is the next one. */
  #signStaged(): void {
    const pending = this.#staged;
    this.#staged = [];
    this.#isSigning = true;
    const signed = () => {
      this.#isSigning = false;
      if (this.#staged.length > 0) this.#signStaged();
    };
    const signing = this.#sign(pending);
    const group: SigningGroup = {
      pending,
      settled: signing.then(
        (signatures) => {
          group.signatures = signatures;
          signed();
        },
        (error) => {
          group.failure = error;
          signed();
        },
      ),
    };
    this.#signing.push(group);
    this.#committing ??= this.#commitAll();
  }

  /** A signature for each event, empty for those that have theirs. */
  async #sign(pending: readonly Pending[]): Promise<string[]> {
    const texts = pending.map(({ write }) => write.content).filter((content) => typeof content !== 'string');
    const signatures =
      texts.length === 0 ? [] : await this.#signer.sign(texts.map(({ signedText }) => signedText));
    let next = 0;
    return pending.map(({ write }) => (typeof write.content === 'string' ? '' : (signatures[next++] ?? '')));
  }

  async #commitAll(): Promise<void> {
    for (let first = this.#signing[0]; first; first = this.#signing[0]) {
      await first.settled;
      await this.#commit(this.#takeSigned());
    }
    this.#committing = undefined;
  }

  /** The groups at the front that are signed. */
  #takeSigned(): Signed[] {
    const signed: Signed[] = [];
    for (let group = this.#signing[0]; group?.signatures ?? group?.failure; group = this.#signing[0]) {
      this.#signing.shift();
      for (const [index, pending] of group.pending.entries()) {
        const signature = group.signatures?.[index];
        if (signature === undefined) this.#fail(pending, group.failure);
        else signed.push({ pending, text: textOf(pending.write, signature) });
      }
    }
    return signed;
  }

  /** Commits signed events together; when that fails, each room by itself, so that none suffers for another. */
  async #commit(signed: readonly Signed[]): Promise<void> {
    const kept = signed.filter(({ pending }) => {
      const isLost = pending.write.head.broken;
      if (isLost) this.#fail(pending, lostWithEarlier());
      return !isLost;
    });
    if (kept.length === 0) return;
    const batch = new WriteBatch(this.#stateKeys, this.#relations.batch());
    try {
      for (const { pending, text } of kept) batch.add(pending.write, text);
      await this.#database.batch(batch.statements());
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
    if (write.row !== 'untouched') this.#events.saved(stored);
    this.#settled(write);
    if (redacts) this.#events.redacted(redacts.nid, stored.nid);
    if (fact && fact.stateChanges.length > 0) this.#heads.resized(head);
    if (fact) reservation.complete(fact);
    else reservation.abandon();
    resolve();
  }

  /** The disk has what it will have of these. */
  #settled({ stored, groups, row }: PreparedWrite): void {
    for (const group of groups) this.#groups.settled(group);
    if (row === 'new') this.#authEdges.settled(stored.nid);
  }

  #fail({ write, reject }: Pending, error: unknown): void {
    const { head, stored, redacts, reservation } = write;
    this.#heads.abandon(head);
    if (write.row !== 'untouched') this.#events.forget(stored);
    this.#settled(write);
    if (redacts) head.redact(redacts, undefined);
    reservation.abandon();
    reject(error);
  }
}

/** The PDU as JSON. */
function textOf({ content }: PreparedWrite, signature: string): string {
  return typeof content === 'string' ? content : content.complete(signature);
}

const lostWithEarlier = () => new Error('an earlier event of the room could not be stored');
