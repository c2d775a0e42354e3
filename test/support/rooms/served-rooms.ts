import { historyRoutes, RoomAccess, stateRoutes } from '../../../src/federation/index.ts';
import {
  getRoomVersion,
  type JsonObject,
  type ReceivedEvent,
  receivePdu,
} from '../../../src/protocol/index.ts';
import { openServing } from '../../../src/room-federation/index.ts';
import type { OpenDatabase } from '../databases/databases.ts';
import { type Answer, alice, type RoomsTuning, RoomsUnderTest } from './rooms.ts';
import { ServerRoutesUnderTest } from './server-routes.ts';

export const far = 'far.example';
export const fay = `@fay:${far}`;
export const finn = `@finn:${far}`;

/**
 * Rooms and the federation routes that serve them to other servers. Events of remote users are appended
 * without federation.
 */
export class ServedRooms {
  readonly rooms: RoomsUnderTest;
  readonly http: ServerRoutesUnderTest;

  private constructor(rooms: RoomsUnderTest, http: ServerRoutesUnderTest) {
    this.rooms = rooms;
    this.http = http;
  }

  static async open(open: OpenDatabase, tuning?: RoomsTuning): Promise<ServedRooms> {
    const fixture = await RoomsUnderTest.open(open, [], tuning);
    const { rooms, clock, database } = fixture;
    const access = new RoomAccess({ ...rooms, serverName: 'test' });
    const { history, state } = openServing(rooms.engine, database);
    const http = await ServerRoutesUnderTest.start(
      [
        ...historyRoutes({ access, history, serverName: 'test', clock }),
        ...stateRoutes({ access, state, history }),
      ],
      clock,
    );
    return new ServedRooms(fixture, http);
  }

  /** Makes a room of Alice with this history visibility. */
  room(visibility = 'shared', more: readonly { type: string; content: JsonObject }[] = []): Promise<string> {
    const content = { history_visibility: visibility };
    const initial_state = [{ type: 'm.room.history_visibility', content }, ...more];
    return this.rooms.rooms.creation.create(alice, { preset: 'public_chat', initial_state });
  }

  /** Changes the membership of a local or remote user. @returns the event id */
  async member(roomId: string, userId: string, membership: string, sender = userId): Promise<string> {
    return this.state(roomId, 'm.room.member', userId, { membership }, sender);
  }

  async state(
    roomId: string,
    type: string,
    stateKey: string,
    content: JsonObject,
    sender = alice,
  ): Promise<string> {
    this.rooms.clock.advance(1);
    const { event } = await this.rooms.engine.timeline.append(roomId, { type, stateKey, sender, content });
    return event.eventId;
  }

  say(roomId: string, body: string): Promise<string> {
    this.rooms.clock.advance(1);
    return this.rooms.say(alice, roomId, body);
  }

  /** Sends a request as `far.example`. */
  get(path: string): Promise<Answer> {
    return this.http.request(far, 'GET', path);
  }

  post(path: string, body: JsonObject): Promise<Answer> {
    return this.http.request(far, 'POST', path, body);
  }

  async stop(): Promise<void> {
    await this.http.stop();
    await this.rooms.engine.close();
  }
}

/** Returns the events of a list in a response. @param roomVersion of their room */
export function eventsIn({ body }: Answer, list: string, roomVersion = '10'): ReceivedEvent[] {
  const version = getRoomVersion(roomVersion);
  if (!version) throw new Error(`there is no room version ${roomVersion}`);
  return (body[list] as JsonObject[]).map((json) => receivePdu(json, version));
}

/** Returns the ids of the events of a list in a response. */
export const idsIn = (answer: Answer, list: string, roomVersion?: string): string[] =>
  eventsIn(answer, list, roomVersion).map(({ event }) => event.eventId);
