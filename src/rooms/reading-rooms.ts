import { RoomReader, type RoomReaderDeps } from '../room-engine/index.ts';
import { ClientEvents, type OpenRelations } from './history/client-events.ts';
import { FollowedCompletion } from './history/followed-completion.ts';
import { HistoryReader } from './history/history-reader.ts';
import { StateReader } from './history/state-reader.ts';
import type { PublishedRooms } from './published-rooms.ts';
import { isPublished } from './published-rooms.ts';

/** The part of `Rooms` that only reads: syncs and reading endpoints need no more. */
export interface ReadingRooms {
  readonly engine: RoomReader;
  readonly clientEvents: ClientEvents;
  readonly historyReader: HistoryReader;
  readonly stateReader: StateReader;
  readonly published: Pick<PublishedRooms, 'isPublished'>;
}

export interface ReadingRoomsDeps extends RoomReaderDeps {
  /** By default events have no relations. */
  readonly relations?: OpenRelations;
}

/** Opens rooms in a process that does not write: they follow the facts on the stream of rooms. */
export function openReadingRooms(deps: ReadingRoomsDeps): ReadingRooms {
  const engine = RoomReader.follow(deps);
  const clientEvents = new ClientEvents(engine, deps.clock, deps.relations);
  return {
    engine,
    clientEvents,
    historyReader: new HistoryReader(engine, clientEvents),
    stateReader: new StateReader({
      engine,
      clientEvents,
      completion: new FollowedCompletion(engine),
      caches: deps.caches,
      clock: deps.clock,
    }),
    published: { isPublished: (roomId) => isPublished(deps.database, roomId) },
  };
}
