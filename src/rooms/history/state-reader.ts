import {
  type ClientEvent,
  forbidden,
  type JsonObject,
  membershipOf,
  notFound,
  stateMapKey,
} from '../../protocol/index.ts';
import type { HistoryPlace, RoomReader } from '../../room-engine/index.ts';
import { type StoredEvent, visibleContent } from '../../room-engine/index.ts';
import type { Viewer } from '../event-relations.ts';
import type { ClientEvents } from './client-events.ts';
import { CompleteMembers, type Signalled, type StateCompletion } from './complete-members.ts';
import { decodePlace } from './history-token.ts';
import { RoomView, type VisibleEvent } from './room-view.ts';

/** Query parameters of `GET /members`. */
export interface MembersRequest {
  readonly at?: string | undefined;
  readonly membership?: string | undefined;
  readonly notMembership?: string | undefined;
}

/**
 * Reads room state for users. Joined users see the current state; users who have left see the state at the time of their
 * leave event, except in world-readable rooms. Joined users of a room that was joined without its members wait for these;
 * `request` ends the wait.
 * Source: client-server API, "Getting events for a room".
 */
export class StateReader {
  readonly #engine: RoomReader;
  readonly #clientEvents: ClientEvents;
  readonly #members: CompleteMembers;

  constructor(engine: RoomReader, clientEvents: ClientEvents, completion: StateCompletion) {
    this.#engine = engine;
    this.#clientEvents = clientEvents;
    this.#members = new CompleteMembers(engine, completion);
  }

  /** Returns the full state. @throws MatrixError M_FORBIDDEN */
  async all(viewer: Viewer, roomId: string, request?: Signalled): Promise<ClientEvent[]> {
    return this.#render(await this.#all(viewer, roomId, request), viewer);
  }

  /** Returns the full state as a JSON array. @throws MatrixError M_FORBIDDEN */
  async allAsText(viewer: Viewer, roomId: string, request?: Signalled): Promise<string> {
    return this.#text(await this.#all(viewer, roomId, request), viewer, roomId);
  }

  /** Returns one state event. @throws MatrixError M_FORBIDDEN, M_NOT_FOUND */
  async one(
    viewer: Viewer,
    roomId: string,
    type: string,
    stateKey: string,
    request?: Signalled,
  ): Promise<ClientEvent> {
    // Partial state contains all state but members.
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
   * Returns membership events as a JSON array. @throws MatrixError M_FORBIDDEN, M_INVALID_PARAM for a malformed `at`
   */
  async membersAsText(
    viewer: Viewer,
    roomId: string,
    { at, ...wanted }: MembersRequest,
    request?: Signalled,
  ): Promise<string> {
    await this.#members.wait(viewer.userId, roomId, request);
    const view = await this.#view(viewer.userId, roomId);
    const nids = at === undefined ? await this.#memberNids(view) : await this.#memberNidsAt(view, at);
    const events = [...(await this.#engine.events.getMany(nids)).values()].filter(({ event }) => {
      const membership = membershipOf(event.content);
      return (
        event.type === 'm.room.member' &&
        (wanted.membership === undefined || membership === wanted.membership) &&
        membership !== wanted.notMembership
      );
    });
    return this.#text(await view.asState(events), viewer, roomId);
  }

  /**
   * Returns joined members with their profiles, by user id; unset profile fields are null, as widely used clients expect.
   * @throws MatrixError M_FORBIDDEN for users who are not joined
   */
  async joinedMembers(
    userId: string,
    roomId: string,
    request?: Signalled,
  ): Promise<Record<string, JsonObject>> {
    await this.#members.wait(userId, roomId, request);
    const head = await this.#engine.heads.get(roomId);
    if (head?.membership(userId) !== 'join') throw forbidden('You are not in this room');
    const nids = [...head.state.values()]
      .filter((entry) => entry.membership === 'join')
      .map(({ nid }) => nid);
    const joined: Record<string, JsonObject> = {};
    for (const stored of (await this.#engine.events.getMany(nids)).values()) {
      const { displayname, avatar_url } = visibleContent(stored);
      joined[stored.event.stateKey ?? ''] = {
        display_name: typeof displayname === 'string' ? displayname : null,
        avatar_url: typeof avatar_url === 'string' ? avatar_url : null,
      };
    }
    return joined;
  }

  async #view(userId: string, roomId: string): Promise<RoomView> {
    return RoomView.forReading(this.#engine, await this.#engine.heads.get(roomId), userId);
  }

  /** The leave event whose state a user sees instead of the current one; `undefined`: the user sees the current state. */
  async #leaveEvent(view: RoomView): Promise<StoredEvent | undefined> {
    const { lastLeave } = view;
    return lastLeave && !(await view.isWorldReadable()) ? lastLeave.event : undefined;
  }

  /** The state group that a user who has left sees; `undefined`: the current state. */
  async #leaveGroup(view: RoomView): Promise<number | undefined> {
    const leave = await this.#leaveEvent(view);
    return leave?.stateGroup ?? leave?.stateBefore;
  }

  async #stateNids(view: RoomView): Promise<Iterable<number>> {
    const group = await this.#leaveGroup(view);
    if (group !== undefined) return (await this.#engine.groups.load(group)).values();
    return [...view.head.state.values()].map(({ nid }) => nid);
  }

  async #memberNids(view: RoomView): Promise<Iterable<number>> {
    const group = await this.#leaveGroup(view);
    if (group !== undefined) return (await this.#engine.groups.load(group)).values();
    return [...view.head.state.values()].filter((entry) => entry.membership).map(({ nid }) => nid);
  }

  async #memberNidsAt(view: RoomView, token: string): Promise<Iterable<number>> {
    const { events, groups } = this.#engine;
    const decoded = decodePlace(token);
    const { roomNid } = view.head;
    const asked = 'position' in decoded ? await events.placeAt(roomNid, decoded.position) : decoded;
    const place = earlier(asked, await this.#leaveEvent(view));
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

  async #all(viewer: Viewer, roomId: string, request: Signalled | undefined): Promise<VisibleEvent[]> {
    await this.#members.wait(viewer.userId, roomId, request);
    const view = await this.#view(viewer.userId, roomId);
    const events = await this.#engine.events.getMany(await this.#stateNids(view));
    return view.asState([...events.values()]);
  }

  #render(events: readonly VisibleEvent[], viewer: Viewer): Promise<ClientEvent[]> {
    return this.#clientEvents.render(events, viewer);
  }

  async #text(events: readonly VisibleEvent[], viewer: Viewer, roomId: string): Promise<string> {
    const texts = await this.#clientEvents.texts.render(events, viewer, roomId);
    return `[${texts.join(',')}]`;
  }
}

/** The earlier of the place and the place after `last`. */
function earlier(place: HistoryPlace, last: StoredEvent | undefined): HistoryPlace {
  if (last?.stream === undefined) return place;
  const { depth } = last.event;
  const isBeyond = place.depth > depth || (place.depth === depth && place.stream > last.stream);
  return isBeyond ? { depth, stream: last.stream } : place;
}
