import { type RoomEvent, serverOfUser, stateMapKey } from '../../../protocol/index.ts';
import { isExpired } from '../../retention/message-retention.ts';
import type { StoredEvent } from '../../stored-event.ts';
import { redactionTakesEffect } from '../../timeline/redaction.ts';
import type { WritableHead } from '../../timeline/writable-head.ts';
import { MissingEvents } from '../missing-events.ts';
import type { SuppliedState } from '../placement.ts';
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
import { readBackwardExtremities } from '../store.ts';
import { rejectionByAuthEvents, rejectionByState } from './event-authorization.ts';
import { effectivePendingRedactions } from './pending-redactions.ts';

/** The results of the checks of a received event, before it is placed. */
export interface EventExamination {
  readonly stateBefore: GroupState;
  /** Why the event is rejected; `undefined` when it is allowed. */
  readonly rejected: string | undefined;
  /** Why the event is soft-failed; `undefined` when it is not. */
  readonly softFailed: string | undefined;
  /** The nid of the state event with the same state key in the state before the event, which the event replaces. */
  readonly replaces: number | undefined;
  /** The nids of the auth events of the event. */
  readonly auth: readonly number[];
  /** The previous events that are stored. */
  readonly prev: readonly StoredEvent[];
  /** Ids of the previous events that are missing on the timeline (`isMissing`): the gaps before the event. */
  readonly missing: readonly string[];
  /** The event is a backward extremity: an event of the timeline already refers to it as a previous event. */
  readonly isBackwardExtremity: boolean;
  /** The stored event that the event redacts. */
  readonly redacts: StoredEvent | undefined;
  /** The id of the event that the event redacts, when it is not stored. */
  readonly pendingTarget: string | undefined;
  /** The event is not shown to clients, because it is a redaction that takes no effect, or whose target is unknown. */
  readonly withheld: boolean;
  /** The redactions that arrived before the event and take effect; the first redacts it. */
  readonly redactedBy: readonly StoredEvent[];
}

export interface ExamineOptions extends SuppliedState {
  /** Whether the event is soft-failed when the current state does not allow it. */
  readonly softFails: boolean;
  /** The event as it is stored already, for instance as an outlier; `undefined` when it is not stored. */
  readonly storedEvent: StoredEvent | undefined;
}

/** Checks received events against their auth events, the state before them and the current state. */
export class EventExaminer {
  readonly #deps: PlacementDeps;
  readonly #beforeStates: BeforeStates;

  constructor(deps: PlacementDeps, before: BeforeStates) {
    this.#deps = deps;
    this.#beforeStates = before;
  }

  /**
   * Performs the checks on receipt of a PDU: 1. to 7. of the specification, in its order, and then two more checks:
   * 1. to 3. format, signatures and hash are checked before (`VerifiedEvent`);
   * 4. the auth events allow the event, else it is rejected;
   * 5. the state before the event allows it, else it is rejected;
   * 6. the current state allows it, else it is soft-failed;
   * 7. the policy server of the room has signed it, else it is soft-failed;
   * 8. it has not expired by the retention policy of the room, else it is soft-failed: it does not appear on the
   * timeline, but later events can refer to it;
   * 9. no module denies an event of a remote user, else it is soft-failed.
   * Then looks up the event that this event redacts, and redactions of this event that arrived before it.
   * Source: server-server API, "Checks performed on receipt of a PDU", "Soft failure".
   * @throws MissingEvents when auth events, or previous events without a supplied state, are missing
   */
  async examine(head: WritableHead, event: RoomEvent, options: ExamineOptions): Promise<EventExamination> {
    const { database, events } = this.#deps;
    const [authById, prevById, backward] = await Promise.all([
      events.getManyById(authIdsOf(event)),
      events.getManyById(event.prevEventIds),
      readBackwardExtremities(database.reader(), head.roomNid, [event.eventId]),
    ]);
    const prev = [...prevById.values()].filter(({ roomNid }) => roomNid === head.roomNid);
    this.#requireReferences(event, authById, prevById, options);
    const before = await this.#stateBefore(head, event, prev, options);
    const authState = await authStateInGroup(this.#deps, event, before.id);
    const completeAuthState = head.isPartial
      ? withMembersFromAuthEvents(authState, authById.values())
      : authState;
    const rejected =
      rejectionByAuthEvents(event, authById) ??
      (options.storedEvent?.rejected ? 'it was rejected before' : rejectionByState(event, completeAuthState));
    const followsCurrentState = before.id === head.stateGroup;
    const softFailed =
      rejected === undefined && options.softFails
        ? ((followsCurrentState
            ? undefined
            : rejectionByState(event, await this.#currentAuthState(head, event, before, options))) ??
          (await this.#policyRejection(head, event)) ??
          (await this.#expirationReason(head, event)) ??
          (await this.#denialByModule(event)))
        : undefined;
    const replaced =
      event.stateKey === undefined
        ? undefined
        : completeAuthState.get(stateMapKey(event.type, event.stateKey));
    const isHidden = rejected !== undefined || softFailed !== undefined;
    const auth = event.authEventIds.map((eventId) => authById.get(eventId)?.nid);
    return {
      stateBefore: before,
      rejected,
      softFailed,
      replaces: replaced?.nid,
      auth: [...new Set(auth.filter((nid) => nid !== undefined))],
      prev,
      missing: event.prevEventIds.filter((eventId) => isMissing(prevById.get(eventId))),
      isBackwardExtremity: backward.has(event.eventId),
      ...(isHidden ? nothingRedacted : await this.#redaction(event, authState)),
      redactedBy:
        isHidden || options.storedEvent?.redactedBy !== undefined ? [] : await this.#redactedBy(event),
    };
  }

  #requireReferences(
    event: RoomEvent,
    authById: ReadonlyMap<string, StoredEvent>,
    prev: ReadonlyMap<string, StoredEvent>,
    { stateBefore, statesAfterPrev = [] }: ExamineOptions,
  ): void {
    const missing = authIdsOf(event).filter((eventId) => !authById.has(eventId));
    if (stateBefore === undefined) {
      const supplied = new Set(statesAfterPrev.map(({ eventId }) => eventId));
      const needed = event.prevEventIds.filter((eventId) => !supplied.has(eventId));
      missing.push(...needed.filter((eventId) => prev.get(eventId)?.stateGroup === undefined));
    }
    if (missing.length > 0) throw new MissingEvents([...new Set(missing)]);
  }

  #stateBefore(
    head: WritableHead,
    event: RoomEvent,
    prev: readonly StoredEvent[],
    options: ExamineOptions,
  ): Promise<GroupState> {
    const groups = prev.map(({ stateGroup }) => stateGroup).filter((group) => group !== undefined);
    if (isSupplied(options)) return this.#beforeStates.supplied(head, options, groups);
    // The state before an event without previous events is empty, and allows nothing but a create event.
    return groups.length === 0
      ? this.#beforeStates.ofEventIds(head, [])
      : this.#beforeStates.afterGroups(event.version, groups, head);
  }

  /**
   * Returns the auth state for the soft-failure check. Where a remote server supplied the state before the event, this
   * server missed events, which may have changed the current state. The supplied state is therefore resolved together
   * with the states of the extremities. It does not replace these states, because a gap is easy to forge.
   */
  async #currentAuthState(
    head: WritableHead,
    event: RoomEvent,
    before: GroupState,
    options: ExamineOptions,
  ): Promise<AuthState> {
    if (!isSupplied(options)) return currentAuthState(this.#deps, event, head);
    const resolved = await this.#beforeStates.afterGroups(
      event.version,
      [...extremityGroups(head), before.id],
      head,
    );
    try {
      return await authStateInGroup(this.#deps, event, resolved.id);
    } finally {
      this.#beforeStates.drop(resolved.newGroups);
    }
  }

  /**
   * Returns why the event is soft-failed by the room's policy server. Source: server-server API, "Checks
   * performed on receipt of a PDU", step 7.
   */
  async #policyRejection(head: WritableHead, event: RoomEvent): Promise<string | undefined> {
    const { policies } = this.#deps.checks;
    if (!policies.isLoaded(head)) await policies.load(head);
    const isSignedOrUnknown = !policies.isLoaded(head) || policies.hasRequiredSignature(head, event);
    return isSignedOrUnknown ? undefined : 'the policy server of the room has not signed it';
  }

  /** Returns why the event is soft-failed by the retention policy of the room. */
  async #expirationReason(head: WritableHead, event: RoomEvent): Promise<string | undefined> {
    const expiredBefore = await this.#deps.checks.retention.expiredBefore(head);
    return isExpired({ event }, expiredBefore)
      ? 'it has expired by the retention policy of the room'
      : undefined;
  }

  /** Returns why the event of a remote user is soft-failed by a module. */
  async #denialByModule(event: RoomEvent): Promise<string | undefined> {
    const { signer, checks } = this.#deps;
    if (serverOfUser(event.sender) === signer.serverName) return undefined;
    return checks.received?.softFailure?.(event);
  }

  async #redaction(
    event: RoomEvent,
    authState: AuthState,
  ): Promise<Pick<EventExamination, 'redacts' | 'pendingTarget' | 'withheld'>> {
    if (event.type !== 'm.room.redaction') return nothingRedacted;
    if (event.redacts === undefined) return { ...nothingRedacted, withheld: true };
    // In room versions 1 and 2, whose servers choose the ids of their events, an event can name itself.
    if (event.redacts === event.eventId) return nothingRedacted;
    const target = await this.#deps.events.getById(event.redacts);
    if (!target) return { redacts: undefined, pendingTarget: event.redacts, withheld: true };
    const takesEffect = !target.rejected && redactionTakesEffect(event, target.event, stateLookup(authState));
    const isFirst = takesEffect && target.redactedBy === undefined;
    return { redacts: isFirst ? target : undefined, pendingTarget: undefined, withheld: !takesEffect };
  }

  async #redactedBy(event: RoomEvent): Promise<readonly StoredEvent[]> {
    return (await effectivePendingRedactions(this.#deps, [event])).get(event.eventId) ?? [];
  }
}

const isSupplied = ({ stateBefore, statesAfterPrev }: SuppliedState): boolean =>
  stateBefore !== undefined || statesAfterPrev !== undefined;

const nothingRedacted = { redacts: undefined, pendingTarget: undefined, withheld: false };

/** Returns whether an event is absent from the timeline although it is neither rejected nor soft-failed. */
export const isMissing = (stored: StoredEvent | undefined) =>
  !stored || (stored.stream === undefined && !stored.rejected && !stored.softFailed);
