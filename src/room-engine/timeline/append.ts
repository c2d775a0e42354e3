import { isDeepStrictEqual } from 'node:util';
import type { Sequence } from '../../kernel/streams/index.ts';
import { authorize, forbidden, type RoomEvent, type RoomVersion, stateMapKey } from '../../protocol/index.ts';
import type { EventChecks } from '../event-checks.ts';
import { checkStorable, type EventToSend } from '../event-to-send.ts';
import type { WritableStateKeys } from '../state/writable-state-keys.ts';
import type { RoomFact, SentTransaction, StoredEvent } from '../stored-event.ts';
import {
  type ComposedEvent,
  type ComposerDeps,
  composeCreation,
  composeEvent,
  maxPrevEvents,
} from './compose-event.ts';
import type { EventStore } from './event-store.ts';
import type { EventWriter, PreparedWrite, ReservePlace } from './event-writer.ts';
import type { Extremity } from './extremity.ts';
import { membershipChanges } from './membership-changes.ts';
import { redactionTakesEffect } from './redaction.ts';
import type { RoomHead } from './room-head.ts';
import { SendContext } from './send-context.ts';
import { UnauthorizedEvent } from './unauthorized-event.ts';
import type { WritableHead } from './writable-head.ts';
import type { WritableHeads } from './writable-heads.ts';

export interface AppendOptions {
  /** The transaction of the client that sends the event, see `TransactionIds`. */
  readonly transaction?: SentTransaction | undefined;
}

/** Sends events of local users that `EventAppender` cannot add synchronously. */
export interface SlowSends {
  /**
   * Sends into a room that has more forward extremities than an event may have previous events, when the states after
   * these extremities differ.
   */
  readonly sendOverManyExtremities: Send;
  /** Sends after the room's policy server has signed the event. */
  readonly sendWithPolicySignature: Send;
}

type Send = (roomId: string, draft: EventToSend, options: AppendOptions) => Promise<StoredEvent>;

/** The policy servers of rooms (`PolicyServers`). */
export interface RoomPolicies {
  /** Returns whether `needsSignature` can be called. */
  isLoaded(head: RoomHead): boolean;
  load(head: RoomHead): Promise<void>;
  /** Returns whether an event of a local user needs the signature of a policy server. */
  needsSignature(head: RoomHead, draft: EventToSend): boolean;
}

export interface EventAppenderDeps extends ComposerDeps, SlowSends {
  readonly heads: WritableHeads;
  readonly events: EventStore;
  readonly stateKeys: WritableStateKeys;
  readonly groupIds: Sequence;
  readonly roomNids: Sequence;
  readonly writer: EventWriter;
  readonly policies: RoomPolicies;
  readonly checks: EventChecks;
}

/** An event that is in the head of its room and will be written. */
interface Staged {
  readonly stored: StoredEvent;
  /** Resolves when the event is on disk. */
  readonly durable: Promise<void>;
}

/**
 * Maximum milliseconds that the time of a create event may be ahead of the clock. A larger difference means that the
 * clock was set back.
 */
const maxCreationLead = 1_000;

/**
 * Adds the events of local users to their rooms. The authorization, hash and place in the history of an event are
 * computed synchronously; then the event waits for its signature and the disk, together with other events. So senders
 * in one room do not queue for each other's flush.
 */
export class EventAppender {
  readonly #deps: EventAppenderDeps;
  /** The time of the last create event whose hash is the room id, in milliseconds since the epoch. */
  #lastCreationTs = 0;

  constructor(deps: EventAppenderDeps) {
    this.#deps = deps;
  }

  /**
   * Sends an event; resolves when it is on disk and syncs return it:
   * 1. loads the auth events and the events that the new event refers to;
   * 2. returns the current state event if the new event would change nothing;
   * 3. selects `prev_events` and `auth_events`, and fills in depth, time and hash;
   * 4. authorizes the event by the current state, and runs the checks of modules;
   * 5. makes the event a forward extremity in memory, then signs and writes it.
   * Source: client-server API, `PUT /rooms/{roomId}/send/{eventType}/{txnId}`; server-server API, "PDUs",
   * "Auth events selection".
   * @throws MatrixError M_FORBIDDEN for an unknown room and by the authorization rules, M_TOO_LARGE, M_BAD_JSON, and
   * the errors of the checks and of the room's policy server
   */
  async append(roomId: string, draft: EventToSend, options: AppendOptions = {}): Promise<StoredEvent> {
    const { stored, durable } = await this.#stage(roomId, draft, options);
    await durable;
    return stored;
  }

  /** Resolves when a state event of a head is on disk; rejects when it could not be stored. */
  durable(stored: StoredEvent): Promise<void> {
    return this.#deps.writer.durable(stored);
  }

  /**
   * Creates a room with its first events; if one of them is not allowed, nothing is created.
   * @param roomId absent for a room whose id is the hash of its create event
   * @param drafts `m.room.create` and the events after it
   * @param options apply to `m.room.create`
   * @returns the room id
   * @throws UnauthorizedEvent by the authorization rules; MatrixError M_TOO_LARGE, M_BAD_JSON, and the errors of the checks
   */
  async create(
    version: RoomVersion,
    roomId: string | undefined,
    drafts: readonly [EventToSend, ...EventToSend[]],
    options: AppendOptions = {},
  ): Promise<string> {
    const { stateKeys } = this.#deps;
    for (const draft of drafts) checkStorable(draft);
    return stateKeys.attempt(async () => {
      await stateKeys.prepareMany(drafts.map((draft) => stateMapKey(draft.type, draft.stateKey ?? '')));
      return this.#create(version, roomId, drafts, options);
    });
  }

  async #create(
    version: RoomVersion,
    roomId: string | undefined,
    requestedDrafts: readonly [EventToSend, ...EventToSend[]],
    { transaction }: AppendOptions,
  ): Promise<string> {
    const { heads, events, roomNids, writer, checks } = this.#deps;
    const drafts = checks.isEmpty ? requestedDrafts : await checks.passAll(requestedDrafts, roomId);
    // Nothing is awaited from here until all events are staged, so they are committed together.
    const [requestedCreateDraft, ...otherDrafts] = drafts;
    const createDraft =
      roomId === undefined ? this.#atUniqueTime(requestedCreateDraft) : requestedCreateDraft;
    const created = composeCreation(this.#deps, createDraft, version, roomId);
    const head = heads.createHead(roomNids.next(), created.unsigned.event.roomId, version);
    const durable = writer.extend(head, (reserve) => {
      const roomCreatedTs = created.unsigned.event.originServerTs;
      const creationContext = new SendContext(events, createDraft);
      const createWrite = this.#extend(head, createDraft, created, creationContext, reserve, transaction);
      const writes: PreparedWrite[] = [{ ...createWrite, roomCreatedTs }];
      const before = new Map<number, StoredEvent>();
      for (const draft of otherDrafts) {
        const previous = writes.at(-1)?.stored;
        if (previous) before.set(previous.nid, previous);
        const context = new SendContext(events, draft, before);
        const composed = composeEvent(this.#deps, draft, head, context);
        writes.push(this.#extend(head, draft, composed, context, reserve));
      }
      heads.register(head);
      return writes.map((write) => writer.stage(write));
    });
    await Promise.all(durable);
    return head.roomId;
  }

  /**
   * Sets a unique time in a create event whose hash is the room id: two create events of one sender with the same content
   * and time would have the same hash.
   */
  #atUniqueTime(createDraft: EventToSend): EventToSend {
    if (createDraft.originServerTs !== undefined) return createDraft;
    const now = this.#deps.clock.now();
    const isUnique = now > this.#lastCreationTs || now < this.#lastCreationTs - maxCreationLead;
    this.#lastCreationTs = isUnique ? now : this.#lastCreationTs + 1;
    return { ...createDraft, originServerTs: this.#lastCreationTs };
  }

  async #stage(roomId: string, draft: EventToSend, options: AppendOptions): Promise<Staged> {
    const { stateKeys } = this.#deps;
    checkStorable(draft);
    if (draft.stateKey === undefined) return this.#stageInAttempt(roomId, draft, options);
    return stateKeys.attempt(() => this.#stageInAttempt(roomId, draft, options));
  }

  async #stageInAttempt(
    roomId: string,
    requestedDraft: EventToSend,
    { transaction }: AppendOptions,
  ): Promise<Staged> {
    const { heads, events, stateKeys, writer, policies, checks } = this.#deps;
    let isUnchecked = !checks.isEmpty;
    let draft = requestedDraft;
    const context = new SendContext(events, requestedDraft);
    for (;;) {
      const head = await heads.get(roomId);
      // The error for an unknown room is the same as for a room that the sender is not in, so that the error does not
      // reveal which rooms exist.
      if (!head) throw forbidden('You are not in this room');
      await context.load(head, stateKeys);
      if (!policies.isLoaded(head)) await policies.load(head);
      // Nothing may be awaited from here until the event is staged: the head must not change in between.
      if (head.broken || !context.isComplete(head) || !policies.isLoaded(head)) continue;
      const isForked = hasForkedState(head);
      const unchanged = isForked ? undefined : unchangedEntry(head, draft, context);
      if (unchanged) return { stored: unchanged, durable: writer.durable(unchanged) };
      if (isUnchecked) {
        // The event is authorized before the checks of modules, because a module may send requests to another server.
        if (!isForked) requireAuthorized(composeEvent(this.#deps, draft, head, context), head, context);
        draft = await checks.pass(draft, { roomId });
        if (draft !== requestedDraft) checkStorable(draft);
        isUnchecked = false;
        continue;
      }
      if (isForked) return this.#sendSlowly('sendOverManyExtremities', roomId, draft, transaction);
      if (policies.needsSignature(head, draft))
        return this.#sendSlowly('sendWithPolicySignature', roomId, draft, transaction);
      const composed = composeEvent(this.#deps, draft, head, context);
      return writer.extend(head, (reserve) => {
        const write = this.#extend(head, draft, composed, context, reserve, transaction);
        return { stored: write.stored, durable: writer.stage(write) };
      });
    }
  }

  async #sendSlowly(
    send: keyof SlowSends,
    roomId: string,
    draft: EventToSend,
    transaction: AppendOptions['transaction'],
  ): Promise<Staged> {
    const options = transaction === undefined ? {} : { transaction };
    const stored = await this.#deps[send](roomId, draft, options);
    return { stored, durable: Promise.resolve() };
  }

  /**
   * Authorizes an event and makes it the forward extremity of the room, in memory.
   * @throws MatrixError M_FORBIDDEN
   */
  #extend(
    head: WritableHead,
    draft: EventToSend,
    composed: ComposedEvent,
    context: SendContext,
    reserve: ReservePlace,
    transaction?: SentTransaction,
  ): PreparedWrite {
    requireAuthorized(composed, head, context);
    const { unsigned, prev, auth } = composed;
    const { event } = unsigned;
    const memberBefore = draft.stateKey === undefined ? undefined : head.membership(draft.stateKey);
    const { redacts, withheld } = redactionBy(draft, unsigned.event, head, context);
    const newGroup = this.#newGroup(draft);
    // After this line, an error could leave a part of an event in the head. Then the head must be loaded again.
    const reservation = reserve();
    const stateBefore = head.chain.id;
    const group =
      newGroup && head.chain.advance(newGroup.id, new Map([[newGroup.keyNid, reservation.position]]));
    const stored = storedLocalEvent(head, event, { position: reservation.position, stateBefore, withheld });
    const stateChanges = head.append(stored, nextExtremities(head, prev, stored));
    const { redacts: targetId } = event;
    if (redacts) head.redact(redacts, stored.nid);
    const end = { extremities: head.extremities, group: head.chain.id };
    const fact: RoomFact = {
      roomId: head.roomId,
      position: reservation.position,
      onTimeline: true,
      stored,
      stateChanges,
      membershipChanges: membershipChanges(stateChanges, stored, () => memberBefore),
      end,
      redacts: redacts?.nid,
      transaction,
    };
    return {
      head,
      stored,
      rowAction: 'new',
      fact,
      content: unsigned,
      end,
      groups: group ? [group] : [],
      auth: event.stateKey === undefined ? [] : auth,
      redacts,
      reservation,
      transaction,
      ...(targetId !== undefined && !context.target && { remote: { pendingTarget: targetId } }),
    };
  }

  /** Allocates the state group of a state event, and finds the state key nid of the entry that it sets. */
  #newGroup({ type, stateKey }: EventToSend): { id: number; keyNid: number } | undefined {
    if (stateKey === undefined) return undefined;
    const keyNid = this.#deps.stateKeys.peek(stateMapKey(type, stateKey));
    if (keyNid === undefined) throw new Error('a state key has no nid: prepare() was not called');
    return { id: this.#deps.groupIds.next(), keyNid };
  }
}

/**
 * Returns an event of a local user as it is stored.
 * @param head its `chain` already ends in the state group after the event; its entries are those before the event
 */
function storedLocalEvent(
  head: WritableHead,
  event: RoomEvent,
  {
    position,
    stateBefore,
    withheld,
  }: { readonly position: number; readonly stateBefore: number | undefined; readonly withheld: boolean },
): StoredEvent {
  const { type, stateKey } = event;
  return {
    nid: position,
    roomNid: head.roomNid,
    event,
    stream: position,
    stateGroup: head.chain.id,
    stateBefore,
    replaces: stateKey === undefined ? undefined : head.entry(type, stateKey)?.nid,
    rejected: false,
    softFailed: false,
    distribute: false,
    acceptedElsewhere: false,
    resolves: false,
    followsGap: false,
    withheld,
    outOfBand: false,
    redactedBy: undefined,
  };
}

/** @throws UnauthorizedEvent when the authorization rules reject the event by the current state */
function requireAuthorized({ unsigned }: ComposedEvent, head: WritableHead, context: SendContext): void {
  const verdict = authorize(unsigned.event, (type, key) => context.state(head, type, key)?.event);
  if (!verdict.allowed) throw new UnauthorizedEvent(verdict.reason);
}

/**
 * Returns whether a room has more forward extremities than an event may have previous events, and the states after
 * these extremities differ. Then the state before the event is not the current state.
 */
function hasForkedState({ extremities }: WritableHead): boolean {
  if (extremities.length <= maxPrevEvents) return false;
  return extremities.some(({ stateGroup }) => stateGroup !== extremities[0]?.stateGroup);
}

/** Returns the current state event when the draft has the same sender and content, and the event is not redacted. */
function unchangedEntry(
  head: WritableHead,
  draft: EventToSend,
  context: SendContext,
): StoredEvent | undefined {
  if (draft.stateKey === undefined) return undefined;
  const current = context.state(head, draft.type, draft.stateKey);
  if (current?.event.sender !== draft.sender || current.redactedBy !== undefined) return undefined;
  return isDeepStrictEqual(current.event.content, draft.content) ? current : undefined;
}

/**
 * Returns the event that a draft redacts, unless an earlier redaction took effect on it; and whether the draft is a
 * redaction that clients do not see (`StoredEvent.withheld`).
 */
function redactionBy(
  draft: EventToSend,
  redaction: ComposedEvent['unsigned']['event'],
  head: WritableHead,
  context: SendContext,
): { redacts: StoredEvent | undefined; withheld: boolean } {
  if (draft.type !== 'm.room.redaction') return nothingRedacted;
  const { target } = context;
  const state = (type: string, key: string) => context.state(head, type, key)?.event;
  const takesEffect =
    target !== undefined && !target.rejected && redactionTakesEffect(redaction, target.event, state);
  const isFirst = takesEffect && target.redactedBy === undefined;
  return { redacts: isFirst ? target : undefined, withheld: !takesEffect };
}

const nothingRedacted = { redacts: undefined, withheld: false };

function nextExtremities(head: WritableHead, prev: readonly Extremity[], stored: StoredEvent): Extremity[] {
  const { eventId, depth } = stored.event;
  const remaining = head.extremities.filter((extremity) => !prev.includes(extremity));
  return [...remaining, { nid: stored.nid, eventId, depth, stateGroup: stored.stateGroup }];
}
