import type { CacheRegistry } from '../../kernel/caches/index.ts';
import type { Clock } from '../../kernel/clock.ts';
import type { LongText } from '../../kernel/http/index.ts';
import {
  type ClientEvent,
  forbidden,
  isMembership,
  membershipOf,
  notFound,
  stateMapKey,
} from '../../protocol/index.ts';
import type { HistoryPlace, RoomReader, StoredEvent } from '../../room-engine/index.ts';
import type { Viewer } from '../event-relations.ts';
import type { ClientEvents } from './client-events.ts';
import { CompleteMembers, type Signalled, type StateCompletion } from './complete-members.ts';
import { decodePlace } from './history-token.ts';
import { type TextOrStream, textOrStream } from './long-answers.ts';
import { RoomView, type VisibleEvent } from './room-view.ts';
import { type StatePart, StateTexts } from './state-texts.ts';

/** Query parameters of `GET /members`. */
export interface MembersRequest {
  readonly at?: string | undefined;
  readonly membership?: string | undefined;
  readonly notMembership?: string | undefined;
}

export interface StateReaderDeps {
  readonly engine: RoomReader;
  readonly clientEvents: ClientEvents;
  readonly completion: StateCompletion;
  readonly caches: CacheRegistry;
  readonly clock: Clock;
}

/**
 * Reads room state for users. Joined users see the current state; users who have left see the state at the time of
 * their leave event, except in world-readable rooms. In a room that was joined without its members, joined users wait
 * until all members are known; when the signal of the parameter `request` aborts, the wait ends with M_UNKNOWN (503).
 * Source: client-server API, "Getting events for a room".
 */
export class StateReader {
  readonly #engine: RoomReader;
  readonly #clientEvents: ClientEvents;
  readonly #members: CompleteMembers;
  readonly #texts: StateTexts;

  constructor({ engine, clientEvents, completion, caches, clock }: StateReaderDeps) {
    this.#engine = engine;
    this.#clientEvents = clientEvents;
    this.#members = new CompleteMembers(engine, completion);
    this.#texts = new StateTexts({ engine, events: clientEvents.texts, caches, clock });
  }

  /** Returns the full state. @throws MatrixError M_FORBIDDEN */
  async all(viewer: Viewer, roomId: string, request?: Signalled): Promise<ClientEvent[]> {
    await this.#members.wait(viewer.userId, roomId, request);
    const view = await this.#view(viewer.userId, roomId);
    return this.#render(await this.#wholeState(view), viewer);
  }

  /** Returns the full state as the text of a JSON array. @throws MatrixError M_FORBIDDEN */
  async allAsText(viewer: Viewer, roomId: string, request?: Signalled): Promise<TextOrStream> {
    await this.#members.wait(viewer.userId, roomId, request);
    const view = await this.#view(viewer.userId, roomId);
    const shared = await this.#sharedText(view, viewer, wholeState);
    return shared ?? textOrStream(this.#pieces(view, viewer, await this.#stateNids(view), wholeState));
  }

  /** Returns one state event. @throws MatrixError M_FORBIDDEN, M_NOT_FOUND */
  async one(
    viewer: Viewer,
    roomId: string,
    type: string,
    stateKey: string,
    request?: Signalled,
  ): Promise<ClientEvent> {
    // A partial state lacks only members.
    const mayBeUnknown = type === 'm.room.member' && stateKey !== viewer.userId;
    if (mayBeUnknown) await this.#members.wait(viewer.userId, roomId, request);
    const view = await this.#view(viewer.userId, roomId);
    const nid = await this.#entryNid(view, stateMapKey(type, stateKey));
    const stored = nid === undefined ? undefined : await this.#engine.events.get(nid);
    const [event] = stored ? await this.#render(await view.asState([stored]), viewer) : [];
    if (!event) throw notFound('State event not found');
    return event;
  }

  /**
   * Returns the JSON text of an object whose `chunk` lists membership events.
   * @throws MatrixError M_FORBIDDEN, M_INVALID_PARAM for a malformed `at`
   */
  async membersAsText(
    viewer: Viewer,
    roomId: string,
    { at, ...filter }: MembersRequest,
    request?: Signalled,
  ): Promise<TextOrStream> {
    await this.#members.wait(viewer.userId, roomId, request);
    const view = await this.#view(viewer.userId, roomId);
    const part = at === undefined ? membersPart(filter) : undefined;
    const shared = part && (await this.#sharedText(view, viewer, part));
    if (shared) return shared;
    const nids = at === undefined ? await this.#nidsWithMembers(view) : await this.#stateNidsAt(view, at);
    const isWanted = ({ event }: StoredEvent) =>
      event.type === 'm.room.member' && isSelected(membershipOf(event.content), filter);
    return textOrStream(this.#pieces(view, viewer, nids, { ...membersAround, isWanted }));
  }

  /**
   * Returns the JSON text of an object whose `joined` has the profiles of joined members by user id; unset profile
   * fields are null, as widely used clients expect.
   * @throws MatrixError M_FORBIDDEN for users who are not joined
   */
  async joinedMembersAsText(userId: string, roomId: string, request?: Signalled): Promise<TextOrStream> {
    await this.#members.wait(userId, roomId, request);
    const head = await this.#engine.heads.get(roomId);
    if (head?.membership(userId) !== 'join') throw forbidden('You are not in this room');
    return this.#texts.joinedMembers(head);
  }

  async #view(userId: string, roomId: string): Promise<RoomView> {
    return RoomView.forReading(this.#engine, await this.#engine.heads.get(roomId), userId);
  }

  /**
   * Returns the leave event of a user who sees the state at this event; `undefined`: the user sees the current state.
   */
  async #leaveEvent(view: RoomView): Promise<StoredEvent | undefined> {
    const { lastLeave } = view;
    return lastLeave && !(await view.isWorldReadable()) ? lastLeave.event : undefined;
  }

  /** Returns the state group that a user who has left sees; `undefined`: the user sees the current state. */
  async #leaveGroup(view: RoomView): Promise<number | undefined> {
    const leave = await this.#leaveEvent(view);
    return leave?.stateGroup ?? leave?.stateBefore;
  }

  async #stateNids(view: RoomView): Promise<Iterable<number>> {
    const group = await this.#leaveGroup(view);
    if (group !== undefined) return (await this.#engine.groups.load(group)).values();
    return [...view.head.state.values()].map(({ nid }) => nid);
  }

  /** Returns nids of state events, among them those of all membership events. */
  async #nidsWithMembers(view: RoomView): Promise<Iterable<number>> {
    const group = await this.#leaveGroup(view);
    if (group !== undefined) return (await this.#engine.groups.load(group)).values();
    return [...view.head.state.values()].filter((entry) => entry.membership).map(({ nid }) => nid);
  }

  /** Returns the nids of the whole state at the place of a token, but not later than the user's leave event. */
  async #stateNidsAt(view: RoomView, token: string): Promise<Iterable<number>> {
    const { events, groups } = this.#engine;
    const decoded = decodePlace(token);
    const { roomNid } = view.head;
    const requestedPlace = 'position' in decoded ? await events.placeAt(roomNid, decoded.position) : decoded;
    const place = earlierPlace(requestedPlace, await this.#leaveEvent(view));
    const [stored] = await events.history(roomNid, place, { limit: 1, direction: 'backward' });
    // The stored history of a remote room may begin after this place, with the state before its first event.
    const [next] = stored ? [] : await events.history(roomNid, place, { limit: 1, direction: 'forward' });
    const group = stored ? stored.stateGroup : next?.stateBefore;
    return group === undefined ? [] : (await groups.load(group)).values();
  }

  async #entryNid(view: RoomView, key: string): Promise<number | undefined> {
    const group = await this.#leaveGroup(view);
    if (group === undefined) return view.head.state.get(key)?.nid;
    const keyNid = await this.#engine.stateKeys.find(key);
    return keyNid === undefined
      ? undefined
      : (await this.#engine.groups.entries([group], [keyNid])).get(group)?.get(keyNid);
  }

  /**
   * Returns a part of the current state as all joined users see it; `undefined` where this user may see another text.
   */
  async #sharedText(view: RoomView, viewer: Viewer, part: StatePart): Promise<LongText | undefined> {
    if (!view.isJoined || (await this.#clientEvents.hasDelayedEvents(viewer))) return undefined;
    return this.#texts.events(view.head, part);
  }

  async #wholeState(view: RoomView): Promise<VisibleEvent[]> {
    const events = await this.#engine.events.getMany(await this.#stateNids(view));
    return view.asState([...events.values()]);
  }

  #render(events: readonly VisibleEvent[], viewer: Viewer): Promise<ClientEvent[]> {
    return this.#clientEvents.render(events, viewer);
  }

  /** Renders events of a state as the viewer sees them, some at a time, so that a large state is never in memory. */
  async *#pieces(
    view: RoomView,
    viewer: Viewer,
    nids: Iterable<number>,
    { start, end, isWanted = () => true }: ListOfEvents,
  ): AsyncGenerator<string> {
    const all = [...nids];
    let separator = start;
    for (let first = 0; first < all.length; first += eventsAtOnce) {
      const stored = await this.#engine.events.list(all.slice(first, first + eventsAtOnce));
      const events = await view.asState(stored.filter(isWanted));
      const texts = await this.#clientEvents.texts.render(events, viewer, view.head.roomId);
      if (texts.length === 0) continue;
      yield separator + texts.join(',');
      separator = ',';
    }
    yield separator === start ? start + end : end;
  }
}

/**
 * The text around a list of events, and the condition for an event to be listed; without a condition, all events are
 * listed.
 */
interface ListOfEvents {
  readonly start: string;
  readonly end: string;
  readonly isWanted?: (stored: StoredEvent) => boolean;
}

/** Number of events that are in memory together. */
const eventsAtOnce = 100;

const wholeState: StatePart = { name: 'whole state', start: '[', end: ']', includes: () => true };

/** The text around a list of members. */
const membersAround = { start: '{"chunk":[', end: ']}' };

type MembersFilter = Omit<MembersRequest, 'at'>;

/**
 * Returns the part of the state with the members that a filter selects; `undefined` where the filter names a membership
 * that does not exist.
 */
function membersPart(filter: MembersFilter): StatePart | undefined {
  const { membership, notMembership } = filter;
  const isUnsetOrMembership = (value: string | undefined) => value === undefined || isMembership(value);
  if (!isUnsetOrMembership(membership) || !isUnsetOrMembership(notMembership)) return undefined;
  return {
    name: `members ${membership ?? 'any'} ${notMembership ?? 'none'}`,
    ...membersAround,
    includes: (entry) => entry.membership !== undefined && isSelected(entry.membership, filter),
  };
}

/** Whether the membership is the wanted one or differs from the unwanted one: where both are given, one suffices. */
function isSelected(actual: string, { membership, notMembership }: MembersFilter): boolean {
  if (actual === membership) return true;
  return notMembership === undefined ? membership === undefined : actual !== notMembership;
}

/** Returns the place, or the place after the event `last` if that is earlier. */
function earlierPlace(place: HistoryPlace, last: StoredEvent | undefined): HistoryPlace {
  if (last?.stream === undefined) return place;
  const { depth } = last.event;
  const isBeyond = place.depth > depth || (place.depth === depth && place.stream > last.stream);
  return isBeyond ? { depth, stream: last.stream } : place;
}
