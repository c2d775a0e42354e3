import { forbidden, stateMapKey } from '../../../protocol/index.ts';
import type { PartialState } from '../../partial-state.ts';
import type { GroupChain } from '../../state/group-chain.ts';
import { type StoredEvent, withoutEnd } from '../../stored-event.ts';
import type { PreparedWrite, ReservePlace } from '../../timeline/event-writer.ts';
import type { WritableHead } from '../../timeline/writable-head.ts';
import type { RoomWithVersion } from '../../verified-event.ts';
import { rejectionByAuthEvents, rejectionByState } from '../events/event-authorization.ts';
import { isMissing } from '../events/examine-event.ts';
import { type Outliers, outlierOf } from '../events/outliers.ts';
import { type EventPlacer, hasPlace, type PlacedEvent } from '../events/place-event.ts';
import { MissingEvents } from '../missing-events.ts';
import type { JoinResponse } from '../placement.ts';
import type { PlacementDeps } from '../placement-deps.ts';
import { authIdsOf, withMembersFromAuthEvents } from '../states/auth-state.ts';
import type { BeforeStates, ReceivedState } from '../states/before-state.ts';
import { type AppliedChange, applyCurrentStateChange } from '../states/current-state.ts';
import { PreparedCurrentState } from '../states/prepared-current-state.ts';
import { readOutOfBandMembers } from '../store.ts';
import { withoutAbandonedStates } from './abandoned-states.ts';
import { endOutOfBandMemberships, type OutOfBandMember } from './out-of-band-members.ts';

/** Maximum number of former forward extremities that are stored for a room. */
const maxFormerExtremities = 200;

/** The parts of placement that are needed to enter rooms. */
export interface EnterRoomParts {
  readonly beforeStates: BeforeStates;
  readonly outliers: Outliers;
  readonly placing: EventPlacer;
}

/** The state and the stored events that are needed to authorize and store the join. */
interface JoinContext {
  /** The state before the join, without the members that a partial state omits. */
  readonly state: ReadonlyMap<string, StoredEvent>;
  /** The stored join, if it is stored already, for instance as an outlier. */
  readonly storedJoin: StoredEvent | undefined;
  /** The member event that the join replaces, for instance an invite. */
  readonly replaces: StoredEvent | undefined;
  /** The nids of the auth events of the join. */
  readonly auth: readonly number[];
  /** Ids of the previous events of the join that are missing on the timeline (`isMissing`). */
  readonly missing: readonly string[];
  /** The state before the join, with the state groups that store it. */
  readonly before: ReceivedState;
  /** The out-of-band members of the room; empty while the state is partial, because it may lack their memberships. */
  readonly outOfBandMembers: readonly OutOfBandMember[];
  /**
   * Copies of the events since an earlier join, if the partial state of that join was never completed, see
   * `withoutAbandonedStates`.
   */
  readonly abandoned: ReadonlyMap<number, StoredEvent>;
}

/** The context of a join, and the prepared change to the state before it. */
interface PreparedJoin extends JoinContext {
  readonly prepared: PreparedCurrentState;
}

/** Enters rooms with the response of a resident server to `send_join`. */
export class EnterRoom {
  readonly #deps: PlacementDeps;
  readonly #beforeStates: BeforeStates;
  readonly #outliers: Outliers;
  readonly #placing: EventPlacer;

  constructor(deps: PlacementDeps, { beforeStates, outliers, placing }: EnterRoomParts) {
    this.#deps = deps;
    this.#beforeStates = beforeStates;
    this.#outliers = outliers;
    this.#placing = placing;
  }

  /**
   * Enters a room with the response to `send_join`:
   * 1. stores the auth chain and the state as outliers, each authorized by its auth events;
   * 2. authorizes the join by its auth events and by the state before it;
   * 3. computes the new current state without changing the head, so that other work can run in between;
   * 4. replaces the current state, makes the join the only forward extremity, and ends out-of-band
   * memberships that the state does not confirm.
   * When this server is in the room already, the join is placed like any received event. Calls for one room
   * must be serialized.
   * Source: server-server API, "Joining Rooms", `PUT /send_join`.
   * @throws MatrixError M_FORBIDDEN when the join is not allowed, MissingEvents
   */
  async enter(
    room: RoomWithVersion,
    { event, state, authChain, partial }: JoinResponse,
  ): Promise<PlacedEvent> {
    const { heads, writer, signer } = this.#deps;
    const { resolver } = this.#deps.states;
    await this.#outliers.add(room, distinct([...authChain, ...state]));
    const stateIds = [...new Set(state.map((verified) => verified.event.eventId))];
    for (;;) {
      const head = (await heads.get(room.roomId)) ?? (await this.#outliers.headOf(room));
      if (head.servers.has(signer.serverName)) {
        return this.#placing.place(room.roomId, event, {
          stateBefore: stateIds,
          refuse: true,
          acceptedElsewhere: true,
        });
      }
      const extremities = head.extremities;
      const group = head.chain.id;
      const context = await this.#checkJoin(head, event, stateIds, partial !== undefined);
      const chain = await context.before.chain();
      const prepared = await this.#prepare(head, context, chain, event);
      // Nothing may be awaited from here until the event is staged: the head must not change in between.
      if (
        head.broken ||
        head.extremities !== extremities ||
        head.chain.id !== group ||
        !prepared.isValidFor(head)
      ) {
        this.#beforeStates.drop(context.before.newGroups);
        continue;
      }
      const partialState = partial && { ...partial, joinEventId: event.event.eventId };
      const joinWithState = { ...context, prepared };
      try {
        const { stored, durable } = writer.extend(head, (reserve) => {
          const write = this.#extend(head, event, joinWithState, chain, partialState, reserve);
          return { stored: write.stored, durable: writer.stage(write) };
        });
        durable.catch(() => resolver.forgetAll());
        await this.#replaceAbandoned(head, context.abandoned, durable);
        return { stored, durable, nextEventWaitsForDisk: true };
      } catch (error) {
        this.#beforeStates.drop(context.before.newGroups);
        throw error;
      }
    }
  }

  /** Replaces cached events by copies without states, once the copies are on disk. */
  async #replaceAbandoned(
    head: WritableHead,
    abandoned: ReadonlyMap<number, StoredEvent>,
    durable: Promise<void>,
  ): Promise<void> {
    if (abandoned.size === 0) return;
    const { events } = this.#deps;
    const { resolver } = this.#deps.states;
    for (const copy of abandoned.values()) head.revise(copy);
    events.beginRevision(abandoned);
    resolver.forgetAll();
    let isRevisionSaved = false;
    try {
      await durable;
      isRevisionSaved = true;
    } finally {
      await events.endRevision(abandoned, isRevisionSaved);
    }
  }

  /**
   * Authorizes the join, and reads the state and the events that are needed to store it.
   * @throws MatrixError M_FORBIDDEN when the join is not allowed, MissingEvents
   */
  async #checkJoin(
    head: WritableHead,
    { event }: JoinResponse['event'],
    stateIds: readonly string[],
    isPartial: boolean,
  ): Promise<JoinContext> {
    const { events } = this.#deps;
    const { stateKeys } = this.#deps.states;
    const storedJoin = await events.getById(event.eventId);
    if (storedJoin && storedJoin.roomNid !== head.roomNid)
      throw forbidden('The event belongs to another room');
    if (storedJoin && hasPlace(storedJoin)) throw forbidden('The room was entered with this event before');
    const authById = await events.getManyById(authIdsOf(event));
    const missingAuth = authIdsOf(event).filter((eventId) => !authById.has(eventId));
    if (missingAuth.length > 0) throw new MissingEvents(missingAuth);
    const stateEvents = await events.getManyById(stateIds);
    const state = await this.#beforeStates.acceptedState(head, stateEvents.values());
    if (!state.has(stateMapKey('m.room.create', ''))) throw forbidden('The state has no create event');
    const authState = isPartial ? withMembersFromAuthEvents(state, authById.values()) : state;
    const rejection = rejectionByAuthEvents(event, authById) ?? rejectionByState(event, authState);
    if (rejection !== undefined) throw forbidden(rejection);
    const prev = await events.getManyById(event.prevEventIds);
    await stateKeys.prepare(stateMapKey(event.type, event.stateKey ?? ''));
    const auth = event.authEventIds.map((eventId) => authById.get(eventId)?.nid);
    return {
      state,
      storedJoin,
      replaces: authState.get(stateMapKey(event.type, event.stateKey ?? '')),
      auth: [...new Set(auth.filter((nid) => nid !== undefined))],
      missing: event.prevEventIds.filter((eventId) => isMissing(prev.get(eventId))),
      before: await this.#beforeStates.ofState(head, state),
      outOfBandMembers: isPartial
        ? []
        : await readOutOfBandMembers(this.#deps.database.reader(), head.roomNid),
      abandoned: await withoutAbandonedStates(this.#deps, head),
    };
  }

  /** Prepares the change from the current state to the state before the join; the join itself is applied afterwards. */
  async #prepare(
    head: WritableHead,
    { state, before: { keyNids } }: JoinContext,
    chain: GroupChain,
    { event }: JoinResponse['event'],
  ): Promise<PreparedCurrentState> {
    const { slices } = this.#deps;
    const joinKey = stateMapKey(event.type, event.stateKey ?? '');
    const entries = new Map<string, number>();
    const events = new Map<number, StoredEvent>();
    await slices.each(head.state.keys(), (key) => {
      if (!state.has(key) && key !== joinKey) entries.set(key, 0);
    });
    await slices.each(state, ([key, stored]) => {
      if (key === joinKey || head.state.get(key)?.nid === stored.nid) return;
      entries.set(key, stored.nid);
      events.set(stored.nid, stored);
    });
    return PreparedCurrentState.prepare(head, { chain, entries, events, keyNids }, slices);
  }

  /** Makes the join the only forward extremity of the head in memory, and returns the rows to write. */
  #extend(
    head: WritableHead,
    { event, json }: JoinResponse['event'],
    context: PreparedJoin,
    chain: GroupChain,
    partial: PartialState | undefined,
    reserve: ReservePlace,
  ): PreparedWrite {
    const { storedJoin, before } = context;
    const joinKey = stateMapKey(event.type, event.stateKey ?? '');
    const keyNid = this.#deps.states.stateKeys.peek(joinKey);
    if (keyNid === undefined) throw new Error('a state key has no nid: prepare() was not called');
    const groupId = this.#deps.states.groupIds.next();
    const reservation = reserve();
    const { position } = reservation;
    const nid = storedJoin?.nid ?? position;
    const rows = chain.advance(groupId, new Map([[keyNid, nid]]));
    const stored: StoredEvent = {
      ...outlierOf(head, event, nid),
      stream: position,
      stateGroup: rows.id,
      stateBefore: before.id,
      replaces: context.replaces?.nid,
      resolves: true,
      followsGap: true,
      acceptedElsewhere: true,
    };
    const { stateChanges, membershipChanges, stripped } = applyJoin(head, stored, context, chain);
    const formerExtremities = moveToJoin(head, stored, partial);
    return {
      head,
      stored,
      rowAction: storedJoin ? 'known' : 'new',
      fact: {
        roomId: head.roomId,
        position,
        onTimeline: true,
        stored,
        stateChanges,
        membershipChanges,
        ...withoutEnd,
      },
      content: json,
      end: { extremities: head.extremities, group: rows.id },
      groups: [...before.newGroups, rows],
      auth: storedJoin ? [] : context.auth,
      redacts: undefined,
      reservation,
      remote: {
        stateKeys: [...before.newGroupKeys, joinKey],
        place: nid === position ? undefined : position,
        missing: context.missing,
        fillsGap: true,
        stripped: stripped.set(event.stateKey ?? '', undefined),
        formerExtremities: formerExtremities.length > 0 ? formerExtremities : undefined,
        revised: context.abandoned,
        partialState: partial ? JSON.stringify(partial) : null,
      },
    };
  }
}

/** Makes the join the only forward extremity of a head, and sets its partial state. @returns the former extremities, newest last */
function moveToJoin(
  head: WritableHead,
  join: StoredEvent,
  partial: PartialState | undefined,
): readonly number[] {
  const { nid, stateGroup, event } = join;
  const former = [...head.formerExtremities, ...head.extremities.map((end) => end.nid)];
  const formerExtremities = former.slice(-maxFormerExtremities);
  if (head.extremities.length > 0) head.formerExtremities = formerExtremities;
  head.setExtremities([{ nid, eventId: event.eventId, depth: event.depth, stateGroup }]);
  head.remember(join);
  head.partial = partial;
  return formerExtremities;
}

/** Changes the current state of a head in memory to the state after the join, and ends out-of-band memberships. */
function applyJoin(
  head: WritableHead,
  join: StoredEvent,
  { prepared, before, outOfBandMembers }: PreparedJoin,
  chain: GroupChain,
): ReturnType<typeof endOutOfBandMemberships> & Pick<AppliedChange, 'stateChanges'> {
  const { nid, event, stream = 0 } = join;
  const entries = new Map([[stateMapKey(event.type, event.stateKey ?? ''), nid]]);
  const change = { chain, entries, events: new Map(), keyNids: before.keyNids };
  const toStateBefore = prepared.apply(head, join, stream);
  const byJoin = applyCurrentStateChange(head, change, join, stream);
  const applied = {
    stateChanges: [...toStateBefore.stateChanges, ...byJoin.stateChanges],
    membershipChanges: [...toStateBefore.membershipChanges, ...byJoin.membershipChanges],
  };
  return {
    ...endOutOfBandMemberships(head, outOfBandMembers, applied, join),
    stateChanges: applied.stateChanges,
  };
}

function distinct(events: JoinResponse['state']): JoinResponse['state'] {
  return [...new Map(events.map((verified) => [verified.event.eventId, verified])).values()];
}
