import type { RoomEventFilter } from '../../filters/index.ts';
import { type ClientEvent, stateMapKey } from '../../protocol/index.ts';
import type { RoomReader, StoredEvent } from '../../room-engine/index.ts';
import type { Viewer } from '../event-relations.ts';
import type { ClientEvents } from './client-events.ts';
import type { RoomView, VisibleEvent } from './room-view.ts';

/** State events in the responses of `/messages` and `/context`. */
export class PageState {
  readonly #engine: RoomReader;
  readonly #clientEvents: ClientEvents;

  constructor(engine: RoomReader, clientEvents: ClientEvents) {
    this.#engine = engine;
    this.#clientEvents = clientEvents;
  }

  /**
   * Returns the membership events of the senders, from the state after the first of `events`, if the filter lazy-loads
   * members; otherwise `undefined`.
   */
  async ofSenders(
    view: RoomView,
    viewer: Viewer,
    events: readonly VisibleEvent[],
    filter: RoomEventFilter,
  ): Promise<ClientEvent[] | undefined> {
    if (!filter.lazyLoadMembers) return undefined;
    const group = events[0]?.stored.stateGroup;
    if (group === undefined) return [];
    const { stateKeys, groups, events: store } = this.#engine;
    const senders = new Set(events.map(({ stored }) => stored.event.sender));
    const keys = await Promise.all(
      [...senders].map((sender) => stateKeys.find(stateMapKey('m.room.member', sender))),
    );
    const keyNids = keys.filter((nid) => nid !== undefined);
    const state = (await groups.entries([group], keyNids)).get(group);
    const members = await store.getMany(state?.values() ?? []);
    return this.#render(view, viewer, [...members.values()]);
  }

  /**
   * Returns the state after an event, restricted to the state events that the filter passes.
   * @param senders the members to include if the filter lazy-loads members
   */
  async after(
    view: RoomView,
    viewer: Viewer,
    { stateGroup }: StoredEvent,
    { filter, senders }: { filter: RoomEventFilter; senders: ReadonlySet<string> },
  ): Promise<ClientEvent[]> {
    if (stateGroup === undefined) return [];
    const state = await this.#engine.groups.load(stateGroup);
    const events = await this.#engine.events.getMany(state.values());
    const isWanted = ({ event }: StoredEvent) =>
      filter.passes(event) &&
      (!filter.lazyLoadMembers || event.type !== 'm.room.member' || senders.has(event.stateKey ?? ''));
    return this.#render(view, viewer, [...events.values()].filter(isWanted));
  }

  async #render(view: RoomView, viewer: Viewer, events: readonly StoredEvent[]): Promise<ClientEvent[]> {
    return this.#clientEvents.render(await view.asState(events), viewer);
  }
}
