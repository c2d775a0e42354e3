import { noFilter } from '../filters/index.ts';
import { type JsonObject, type JsonValue, stateMapKey } from '../protocol/index.ts';
import { type RoomReader, type StoredEvent, visibleContent } from '../room-engine/index.ts';
import {
  type ClientEvents,
  encodePlace,
  placeBefore,
  RoomView,
  readPage,
  type Viewer,
  type VisibleEvent,
} from '../rooms/index.ts';

/** The field `event_context` of a search. */
export interface ContextRequest {
  readonly beforeLimit: number;
  readonly afterLimit: number;
  readonly includeProfile: boolean;
}

/** Reads the events before and after a result. */
export class ResultContexts {
  readonly #engine: RoomReader;
  readonly #clientEvents: ClientEvents;

  constructor({ engine, clientEvents }: { engine: RoomReader; clientEvents: ClientEvents }) {
    this.#engine = engine;
    this.#clientEvents = clientEvents;
  }

  /** Returns the `context` of a result: the events before and after it, and tokens to paginate further. */
  async around({ stored }: VisibleEvent, viewer: Viewer, request: ContextRequest): Promise<JsonObject> {
    const head = await this.#engine.heads.get(stored.event.roomId);
    if (!head) throw new Error('the room of a search result is unknown');
    const view = await RoomView.open(this.#engine, head, viewer.userId);
    const { depth } = stored.event;
    const stream = stored.stream ?? 0;
    const { timeline: filter } = noFilter.room;
    const start = placeBefore(stored.event, stream);
    const end = { depth, stream };
    const source = { engine: this.#engine, relations: this.#clientEvents.relations };
    const [before, after] = await Promise.all([
      readPage(source, view, start, { direction: 'backward', limit: request.beforeLimit, filter }),
      readPage(source, view, end, { direction: 'forward', limit: request.afterLimit, filter }),
    ]);
    const [eventsBefore, eventsAfter] = await Promise.all(
      [before, after].map(({ events }) => this.#clientEvents.render(events, viewer)),
    );
    const shownEvents = [stored, ...[...before.events, ...after.events].map((one) => one.stored)];
    const last = after.events.at(-1)?.stored;
    return {
      start: encodePlace(before.next ?? start),
      end: encodePlace(after.next ?? (last ? { depth: last.event.depth, stream: last.stream ?? 0 } : end)),
      events_before: eventsBefore as unknown as JsonValue,
      events_after: eventsAfter as unknown as JsonValue,
      ...(request.includeProfile
        ? { profile_info: await this.#profiles(view, stored, shownEvents) }
        : undefined),
    };
  }

  /** Returns the profiles that the senders had in the room when `at` was sent. */
  async #profiles(view: RoomView, at: StoredEvent, events: readonly StoredEvent[]): Promise<JsonObject> {
    const { groups, stateKeys, events: store } = this.#engine;
    if (at.stateGroup === undefined) return {};
    const senders = new Set(events.map(({ event }) => event.sender));
    const keys = await Promise.all(
      [...senders].map((userId) => stateKeys.find(stateMapKey('m.room.member', userId))),
    );
    const known = keys.filter((key) => key !== undefined);
    const state = (await groups.entries([at.stateGroup], known)).get(at.stateGroup);
    const members = await view.asState([...(await store.getMany(state?.values() ?? [])).values()]);
    return Object.fromEntries(
      members.map(({ stored, isErased }) => [
        stored.event.stateKey ?? '',
        isErased ? {} : profileIn(visibleContent(stored)),
      ]),
    );
  }
}

function profileIn({ displayname, avatar_url }: JsonObject): JsonObject {
  return {
    ...(typeof displayname === 'string' ? { displayname } : undefined),
    ...(typeof avatar_url === 'string' ? { avatar_url } : undefined),
  };
}
