import { type RoomEvent, stateMapKey } from '../../../protocol/index.ts';
import type { StoredEvent } from '../../stored-event.ts';
import { redactionTakesEffect } from '../../timeline/redaction.ts';
import type { WritableHead } from '../../timeline/writable-head.ts';
import { MissingEvents } from '../missing-events.ts';
import type { PlacementDeps } from '../placement-deps.ts';
import {
  type AuthState,
  authIdsOf,
  authStateInGroup,
  currentAuthState,
  stateLookup,
  withMembersFromAuthEvents,
} from '../states/auth-state.ts';
import { type BeforeStates, extremityGroups, type GroupState } from '../states/before-state.ts';
import { readBackwardExtremities, readPendingRedactionsOf } from '../store.ts';
import { rejectionByAuthEvents, rejectionByState } from './event-authorization.ts';

/** What is found out about an event before it gets its place. */
export interface EventExamination {
  readonly stateBefore: GroupState;
  /** Why it is not allowed; `undefined` when it is. */
  readonly rejected: string | undefined;
  /** Why it would not be allowed now. */
  readonly softFailed: string | undefined;
  /** The state event before it whose place it takes. */
  readonly replaces: number | undefined;
  /** The nids of its auth events. */
  readonly auth: readonly number[];
  /** Its previous events as far as they are known. */
  readonly prev: readonly StoredEvent[];
  /** Ids of previous events that are not on the timeline and should be. */
  readonly missing: readonly string[];
  /** The timeline names it already. */
  readonly fills: boolean;
  /** The event that it redacts. */
  readonly redacts: StoredEvent | undefined;
  /** The id of the event that it redacts, when that is not known. */
  readonly pendingTarget: string | undefined;
  /** The redaction that was here before it and takes effect. */
  readonly redactedBy: StoredEvent | undefined;
}

export interface ExamineOptions {
  readonly stateBefore?: readonly string[] | undefined;
  /** Whether the current state may object. */
  readonly softFails: boolean;
  /** The event, when it is stored already. */
  readonly known: StoredEvent | undefined;
}

/** Looks at received events and at what is authState them. */
export class EventExaminer {
  readonly #deps: PlacementDeps;
  readonly #before: BeforeStates;

  constructor(deps: PlacementDeps, before: BeforeStates) {
    this.#deps = deps;
    this.#before = before;
  }

  /** @throws MissingEvents */
  async examine(head: WritableHead, event: RoomEvent, options: ExamineOptions): Promise<EventExamination> {
    const { database, events } = this.#deps;
    const [named, prevById, backward] = await Promise.all([
      events.getManyById(authIdsOf(event)),
      events.getManyById(event.prevEventIds),
      readBackwardExtremities(database.reader(), head.roomNid, [event.eventId]),
    ]);
    const prev = [...prevById.values()].filter(({ roomNid }) => roomNid === head.roomNid);
    this.#requireReferences(event, named, prevById, options);
    const before = await this.#stateBefore(head, event, prev, options);
    const complete = (state: AuthState) =>
      head.isPartial ? withMembersFromAuthEvents(state, named.values()) : state;
    const authState = await authStateInGroup(this.#deps, event, before.id);
    const rejected =
      rejectionByAuthEvents(event, named) ??
      (options.known?.rejected ? 'it was rejected before' : rejectionByState(event, complete(authState)));
    const isEnd = before.id === head.stateGroup;
    const softFailed =
      rejected === undefined && options.softFails
        ? ((isEnd
            ? undefined
            : rejectionByState(event, await this.#authStateNow(head, event, before, options))) ??
          (await this.#policyRejection(head, event)))
        : undefined;
    const own =
      event.stateKey === undefined ? undefined : authState.get(stateMapKey(event.type, event.stateKey));
    const isHidden = rejected !== undefined || softFailed !== undefined;
    const auth = event.authEventIds.map((eventId) => named.get(eventId)?.nid);
    return {
      stateBefore: before,
      rejected,
      softFailed,
      replaces: own?.nid,
      auth: [...new Set(auth.filter((nid) => nid !== undefined))],
      prev,
      missing: event.prevEventIds.filter((eventId) => isMissing(prevById.get(eventId))),
      fills: backward.has(event.eventId),
      ...(isHidden ? nothingRedacted : await this.#redaction(event, authState)),
      redactedBy:
        isHidden || options.known?.redactedBy !== undefined ? undefined : await this.#redactedBy(event),
    };
  }

  #requireReferences(
    event: RoomEvent,
    named: ReadonlyMap<string, StoredEvent>,
    prev: ReadonlyMap<string, StoredEvent>,
    { stateBefore }: ExamineOptions,
  ): void {
    const missing = authIdsOf(event).filter((eventId) => !named.has(eventId));
    if (stateBefore === undefined) {
      missing.push(...event.prevEventIds.filter((eventId) => prev.get(eventId)?.stateGroup === undefined));
    }
    if (missing.length > 0) throw new MissingEvents([...new Set(missing)]);
  }

  #stateBefore(
    head: WritableHead,
    event: RoomEvent,
    prev: readonly StoredEvent[],
    { stateBefore }: ExamineOptions,
  ): Promise<GroupState> {
    if (stateBefore !== undefined) return this.#before.ofEventIds(head, stateBefore);
    const groups = prev.map(({ stateGroup }) => stateGroup).filter((group) => group !== undefined);
    // Without previous events there is nothing that could allow it.
    return groups.length === 0
      ? this.#before.ofEventIds(head, [])
      : this.#before.afterGroups(event.version, groups, head);
  }

  /**
   * What is authState the event now. Who was told the state before it has missed events, and may have missed what changed
   * the current state: so that state takes part, as if the history had parted. Gaps are easily made up, therefore it
   * does not stand alone.
   */
  async #authStateNow(
    head: WritableHead,
    event: RoomEvent,
    before: GroupState,
    { stateBefore }: ExamineOptions,
  ): Promise<AuthState> {
    if (stateBefore === undefined) return currentAuthState(this.#deps, event, head);
    const resolved = await this.#before.afterGroups(
      event.version,
      [...extremityGroups(head), before.id],
      head,
    );
    try {
      return await authStateInGroup(this.#deps, event, resolved.id);
    } finally {
      this.#before.drop(resolved.newGroups);
    }
  }

  /** Source: server-server API, "Checks performed on receipt of a PDU", check 7. */
  async #policyRejection(head: WritableHead, event: RoomEvent): Promise<string | undefined> {
    const { policies } = this.#deps;
    if (!policies.isLoaded(head)) await policies.load(head);
    const isVouched = !policies.isLoaded(head) || policies.hasRequiredSignature(head, event);
    return isVouched ? undefined : 'the policy server of the room has not signed it';
  }

  async #redaction(
    event: RoomEvent,
    authState: AuthState,
  ): Promise<Pick<EventExamination, 'redacts' | 'pendingTarget'>> {
    if (event.type !== 'm.room.redaction' || event.redacts === undefined) return nothingRedacted;
    const target = await this.#deps.events.getById(event.redacts);
    if (!target) return { redacts: undefined, pendingTarget: event.redacts };
    const takesEffect =
      target.redactedBy === undefined && redactionTakesEffect(event, target.event, stateLookup(authState));
    return { redacts: takesEffect ? target : undefined, pendingTarget: undefined };
  }

  /** The redaction that came before its target and takes effect, the first one if there are several. */
  async #redactedBy(event: RoomEvent): Promise<StoredEvent | undefined> {
    const { database, events } = this.#deps;
    const pending = await readPendingRedactionsOf(database.reader(), [event.eventId]);
    if (pending.length === 0) return undefined;
    for (const redaction of (await events.getMany(pending.map(({ nid }) => nid))).values()) {
      const { stateBefore, rejected, softFailed } = redaction;
      if (stateBefore === undefined || rejected || softFailed) continue;
      const authState = await authStateInGroup(this.#deps, redaction.event, stateBefore);
      if (redactionTakesEffect(redaction.event, event, stateLookup(authState))) return redaction;
    }
    return undefined;
  }
}

const nothingRedacted = { redacts: undefined, pendingTarget: undefined };

/** Whether an event should be on the timeline and is not: one that is hidden has no place there. */
export const isMissing = (stored: StoredEvent | undefined) =>
  !stored || (stored.stream === undefined && !stored.rejected && !stored.softFailed);
